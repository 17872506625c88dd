package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// holding is a lease that is always held.
type holding struct{}

func (holding) Check(context.Context, store.Tx) error { return nil }

// The list of an account that was erased meanwhile is ignored without an error.
func TestErasedAccount_ListIsIgnored(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	if err := b.access.RecordDevices(t.Context(), holding{}, uuid.New(), []access.FoundDevice{{Ref: "1", Name: "Front door"}}); err != nil {
		t.Error(err)
	}
}

// The removal event of a device of such an account is no error either.
func TestErasedAccount_DeviceRemoval(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	if err := b.access.RecordLeft(t.Context(), uuid.New(), "1", 0); err != nil {
		t.Error(err)
	}
}

// looks reports the result of each look at a device.
type looks struct {
	worker.Lane
	ended chan error
}

func (l looks) Drain(ctx context.Context, lease *worker.Lease, id uuid.UUID) (time.Duration, error) {
	again, err := l.Lane.Drain(ctx, lease, id)
	select {
	case l.ended <- err:
	default:
	}
	return again, err
}

// If an account is disconnected during a look at its device, the look is repeated.
func TestDisconnectedAccount_DuringLook(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.stopEngine()
	b.create("730158")
	_, err := b.db.Pool.Exec(t.Context(), "update connected_accounts set deleted_at = now()") // as if after the read of the device
	b.must(err)
	ended := make(chan error, 1)
	b.watch = func(l worker.Lane) worker.Lane {
		if l.Name() == access.DeviceLane {
			return looks{l, ended}
		}
		return l
	}
	b.startEngine()
	if err := <-ended; err != nil {
		t.Errorf("the look at the device: %v", err)
	}
}

// A simulation on such a device fails with NotFound.
func TestDisconnectedAccount_Simulation(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	_, err := b.db.Pool.Exec(t.Context(), "update connected_accounts set deleted_at = now()") // as if after the read of the device
	b.must(err)
	var e *access.Error
	if err := b.rec.SetOnline(t.Context(), b.p, b.device, false); !errors.As(err, &e) || e.Kind != access.NotFound {
		t.Errorf("simulation: %v", err)
	}
}
