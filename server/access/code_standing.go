package access

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// A change that was refused for good leaves a code on its device as it was before. So it counts, and opens, until it is changed again.

// stand gives a code whose change was refused the status of what its device has.
func (t *deviceTx) stand(c *store.AccessCode) error {
	c.Status = string(StatusUnset)
	if c.AppliedGen == 0 {
		return nil
	}
	has, err := t.s.appliedOf(*c)
	if err == nil && (has == nil || has.StartsAt == nil || !has.StartsAt.After(t.now)) {
		c.Status = string(StatusSet)
	}
	return err
}

// asBefore is what the device has of a code whose change was refused and that has still to begin to open; nil of any other, and where that
// is not known.
func (s *Service) asBefore(c store.AccessCode) *codeState {
	if c.AppliedGen == 0 || c.BlockedGen < c.DesiredGen || c.Status != string(StatusUnset) {
		return nil
	}
	has, err := s.appliedOf(c)
	if err != nil || has == nil || has.StartsAt == nil {
		return nil
	}
	return has
}

// begin tells that a code whose change was refused opens from now on, as its device has it.
func (t *deviceTx) begin(ctx context.Context, c *store.AccessCode) error {
	has := t.s.asBefore(*c)
	if has == nil || has.StartsAt.After(t.now) {
		return nil
	}
	c.Status = string(StatusSet)
	a := aboutCode(t.d, *c)
	if has.PIN == nil {
		return t.s.emit(ctx, t.tx, "access_code.set_on_device", a.with("code", nil))
	}
	return t.s.emit(ctx, t.tx, "access_code.set_on_device", a.hiding("code", *has.PIN))
}
