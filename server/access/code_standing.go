package access

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A change that was refused for good leaves a code on its device as it was before. So it counts, and opens, until it is changed again.

// statusOn is the status of a code that is on its device as it is wanted.
func statusOn(c dbsqlc.AccessCode, now time.Time) Status {
	if c.StartsAt != nil && c.StartsAt.After(now) {
		return StatusUnset
	}
	return StatusSet
}

// stand gives a code whose change was refused the status of what its device has.
func (t *deviceTx) stand(c *dbsqlc.AccessCode) error {
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

// opens says whether a code opens now as its device has it. What keeps no time frames lets it in until it is taken off.
func (t *deviceTx) opens(c *dbsqlc.AccessCode, has *codeState) bool {
	over := nativeSchedule(*c, t.caps) && has.EndsAt != nil && !has.EndsAt.After(t.now)
	return !over && (has.StartsAt == nil || !has.StartsAt.After(t.now))
}

// asBefore is what the device has of a code whose change was refused; nil of any other, and where that is not known.
func (s *Service) asBefore(c dbsqlc.AccessCode) *codeState {
	if c.AppliedGen == 0 || c.BlockedGen < c.DesiredGen {
		return nil
	}
	has, err := s.appliedOf(c)
	if err != nil {
		return nil
	}
	return has
}

// asBeforeDue is when a code whose change was refused begins or ceases to open, or is over; nil: never.
func (s *Service) asBeforeDue(c dbsqlc.AccessCode, now time.Time) *time.Time {
	due := c.EndsAt
	if has := s.asBefore(c); has != nil {
		for _, at := range []*time.Time{has.StartsAt, has.EndsAt} {
			if at != nil && at.After(now) {
				due = earlier(due, *at)
			}
		}
	}
	return due
}

// begin tells that a code whose change was refused opens from now on, as its device has it, or has it not be told to open any more.
func (t *deviceTx) begin(ctx context.Context, c *dbsqlc.AccessCode) error {
	has := t.s.asBefore(*c)
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
	a := aboutCode(t.d, *c)
	if has.PIN == nil {
		return t.s.emit(ctx, t.tx, "access_code.set_on_device", a.with("code", nil))
	}
	return t.s.emit(ctx, t.tx, "access_code.set_on_device", a.hiding("code", *has.PIN))
}
