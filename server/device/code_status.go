package device

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// After a permanently refused change, the device keeps the last confirmed state of the code. That state determines the
// code's status until its next change.

// statusOn returns the status of a code whose desired state is on its device.
func statusOn(c dbsqlc.AccessCode, now time.Time) Status {
	if c.StartsAt != nil && c.StartsAt.After(now) {
		return StatusUnset
	}
	return StatusSet
}

// setFallbackStatus sets the status of a code with a refused change according to its confirmed state.
func (t *deviceTx) setFallbackStatus(c *dbsqlc.AccessCode) error {
	c.Status = string(StatusUnset)
	if c.AppliedGen == 0 {
		return nil
	}
	has, err := t.s.appliedOf(*c)
	if err == nil && (has == nil || t.opens(c, has)) {
		c.Status = string(StatusSet)
	}
	return err
}

// opens reports whether the confirmed state of a code opens now. A device without native schedules accepts a code until
// its removal.
func (t *deviceTx) opens(c *dbsqlc.AccessCode, has *codeState) bool {
	over := nativeSchedule(*c, t.caps) && has.EndsAt != nil && !has.EndsAt.After(t.now)
	return !over && (has.StartsAt == nil || !has.StartsAt.After(t.now))
}

// fallbackState returns the confirmed state of a code with a refused change, nil if unknown or for any other code.
func (s *Service) fallbackState(c dbsqlc.AccessCode) *codeState {
	if c.AppliedGen == 0 || c.BlockedGen < c.DesiredGen {
		return nil
	}
	has, err := s.appliedOf(c)
	if err != nil {
		return nil
	}
	return has
}

// asBeforeDue returns when a code with a refused change next starts or stops opening or ends; nil means never.
func (s *Service) asBeforeDue(c dbsqlc.AccessCode, now time.Time) *time.Time {
	due := c.EndsAt
	if has := s.fallbackState(c); has != nil {
		for _, at := range []*time.Time{has.StartsAt, has.EndsAt} {
			if at != nil && at.After(now) {
				due = earlier(due, *at)
			}
		}
	}
	return due
}

// startDue updates the status of a code with a refused change when its confirmed state starts or stops opening. It
// emits an event when the code starts to open.
func (t *deviceTx) startDue(ctx context.Context, c *dbsqlc.AccessCode) error {
	has := t.s.fallbackState(*c)
	if has == nil {
		return nil
	}
	switch opens := t.opens(c, has); {
	case !opens && c.Status == string(StatusSet):
		c.Status = string(StatusUnset)
		return nil
	case !opens || c.Status != string(StatusUnset):
		return nil
	}
	c.Status = string(StatusSet)
	a := event.AboutCode(t.d, *c)
	if has.PIN == nil {
		return t.s.events.Emit(ctx, t.tx, "access_code.set_on_device", a.With("code", nil))
	}
	return t.s.events.Emit(ctx, t.tx, "access_code.set_on_device", a.WithSecret("code", *has.PIN))
}
