package device

import (
	"time"
)

// EmptyListGrace returns how long an unexpectedly empty list of a vendor is ignored.
func (s *Service) EmptyListGrace() time.Duration { return s.opt.EmptyListGrace }

// gracePeriodMemory is how much longer than the grace period its start is remembered.
const gracePeriodMemory = 10 * time.Minute

// GracePeriodStart returns the start of the grace period for an empty list. since is the stored start, if any. A
// start that is too old, for example from before a stop of the server, or in the future after a clock step, is
// replaced by now.
func (s *Service) GracePeriodStart(since *time.Time, now time.Time) *time.Time {
	if since == nil || since.After(now) || now.Sub(*since) > s.opt.EmptyListGrace+gracePeriodMemory {
		return &now
	}
	return since
}

// ConfirmTimeout returns when an unconfirmed write counts as lost.
func (s *Service) ConfirmTimeout() time.Duration { return s.opt.ConfirmTimeout }
