package device

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A device that lists no codes cannot show the result of an uncertain creation. To remove such a code, the server
// repeats the creation under the same idempotency key. The vendor answers with the existing code or creates it now, and
// either way returns its reference, so that the server can remove it. The server retries for about ten minutes while
// the vendor fails. A refusal ends the search, and the write counts as failed after its confirmation timeout.

// maxFindAttempts is how often the server repeats an uncertain creation whose vendor fails, with growing backoff.
const maxFindAttempts = 8

// canRepeatCreate reports whether the server must repeat the creation of an uncertain code before it counts as gone.
func canRepeatCreate(c dbsqlc.AccessCode, caps capability.Set) bool {
	return !caps.ListCodes && c.IsManaged && c.VendorRef == nil && c.WriteGen > 0 && int(c.Attempts) < maxFindAttempts
}

// findExhausted reports whether the search for an uncertain code that must leave failed and the code cannot arrive.
func (t *deviceTx) findExhausted(c *dbsqlc.AccessCode) bool {
	return !t.caps.ListCodes && c.VendorRef == nil && t.leaving(c) && !canRepeatCreate(*c, t.caps) && !t.onItsWay(c)
}

// RecordFindStarted records that the server is about to repeat an uncertain creation to find its code, which may arrive
// from then on. It reports whether the code still must leave that way.
func (s *Service) RecordFindStarted(
	ctx context.Context, h domain.Fence, device uuid.UUID, w CodeWork,
) (still bool, err error) {
	err = s.onDevice(ctx, h, device, "record the search of a code", func(t *deviceTx) error {
		c := t.code(w.ID)
		still = c != nil && t.leaving(c) && canRepeatCreate(*c, t.caps) && t.d.RemovedAt == nil &&
			(t.d.IsManaged || c.InPool)
		if still {
			c.WriteAt = &t.now
		}
		return nil
	})
	return still, err
}

// RecordFound records the vendor's answer to a repeated creation.
func (s *Service) RecordFound(ctx context.Context, h domain.Fence, device uuid.UUID, w CodeWork, o PutOutcome) error {
	return s.onDevice(ctx, h, device, "record where a code is", func(t *deviceTx) error {
		c := t.code(w.ID)
		if c == nil || c.VendorRef != nil {
			return nil
		}
		o.check()
		switch {
		case o.Ref != "":
			if err := t.claim(ctx, o.Ref); err != nil {
				return err
			}
			c.VendorRef, c.WriteGen, c.WriteAt, c.WriteAccepted = &o.Ref, 0, nil, false
			c.Attempts, c.NextAttemptAt = 0, nil
		case o.Failure.Class == FailedForNow:
			c.Attempts++
			next := t.now.Add(max(backoff(int(c.Attempts)), o.Failure.RetryAfter))
			c.NextAttemptAt = &next
		default:
			c.Attempts, c.NextAttemptAt = maxFindAttempts, nil
		}
		return nil
	})
}
