package reconcile_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// holding is a lease that is always held.
type holding struct{}

func (holding) Check(context.Context, store.Tx) error { return nil }

// The list of an account that was erased while its vendor answered is nobody's any more, and nothing has gone wrong.
func TestListOfAnErasedAccountIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	if err := b.access.RecordDevices(t.Context(), holding{}, uuid.New(), []access.FoundDevice{{Ref: "1", Name: "Front door"}}); err != nil {
		t.Error(err)
	}
}

// Nor has anything gone wrong when a device of such an account is told to have left.
func TestDeviceOfAnErasedAccountMayLeave(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	if err := b.access.RecordLeft(t.Context(), uuid.New(), "1", 0); err != nil {
		t.Error(err)
	}
}
