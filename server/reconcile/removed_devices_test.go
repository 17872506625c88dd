package reconcile_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// A vendor may reuse references. A device under a reused reference is a new device, and a repeated
// removal event does not affect it.
func TestRemovedDevice_ReferenceIsReused(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "r1")
	old := b.device
	dev, err := b.access.Devices.GetDevice(t.Context(), b.p, old, "")
	b.must(err)
	heard := time.Now()
	for range 2 {
		b.must(b.access.Devices.RecordRemovedByRef(t.Context(), b.account, dev.Ref, time.Since(heard)))
	}
	b.look()
	if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "device_removed" {
		t.Errorf("code errors %v", got.Errors)
	}
	found := device.FoundDevice{
		Ref:          dev.Ref,
		Name:         "Door",
		Type:         dev.Type,
		Provider:     dev.Provider,
		Online:       true,
		SerialNumber: "one",
		Capabilities: dev.Capabilities,
	}
	list := func() string {
		t.Helper()
		b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{found}))
		ds, _, err := b.access.Devices.ListDevices(t.Context(), b.p, device.Filter{}, domain.Page{Limit: 10})
		b.must(err)
		if len(ds) != 1 {
			t.Fatalf("%d devices are listed", len(ds))
		}
		return ds[0].ID.String()
	}
	another := list()
	b.must(b.access.Devices.RecordRemovedByRef(t.Context(), b.account, dev.Ref, time.Since(heard)))
	if got := list(); got != another || got == old {
		t.Fatalf("got device %s after %s and %s", got, old, another)
	}

	found.SerialNumber = "" // not reported yet
	if got := list(); got != another {
		t.Errorf("device without a serial number: got %s, want %s", got, another)
	}
	found.SerialNumber = "two"
	if got := list(); got == another {
		t.Error("another serial number counts as the same device")
	}
}

// A read in progress when a device is removed does not count.
func TestRemovedDevice_ReadIsIgnored(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	before := len(b.tales("access_code.unmanaged.created"))
	b.must(b.access.Devices.DeleteDevice(t.Context(), b.p, b.device))
	b.must(
		b.observed(0,
			[]shown{{Ref: "late", PIN: "975310", Confirmed: true}}),
	)
	if n := len(b.tales("access_code.unmanaged.created")) - before; n > 0 {
		t.Errorf("%d code events", n)
	}
	// A device erased with its workspace does not exist at all.
	b.device = uuid.NewString()
	b.must(b.observed(0, []shown{{Ref: "late", PIN: "975310", Confirmed: true}}))
}

// A lock that leaves its account temporarily comes back with its codes. A pending removal continues
// then.
func TestRemoval_SurvivesDeviceAbsence(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b byHand){
		"temporarily":              func(b byHand) { b.must(b.access.Devices.RecordRemoved(b.Context(), holder{}, b.id(), false)) },
		"permanently":              func(b byHand) { b.must(b.access.Devices.RecordRemoved(b.Context(), holder{}, b.id(), true)) },
		"deleted":                  func(b byHand) { b.must(b.access.Devices.DeleteDevice(b.Context(), b.p, b.device)) },
		"its account disconnected": func(b byHand) { b.must(b.access.Accounts.DisconnectAccount(b.Context(), b.account)) },
		"removed, and then its account disconnected": func(b byHand) {
			b.must(b.access.Devices.RecordRemoved(b.Context(), holder{}, b.id(), false))
			b.must(b.access.Accounts.DisconnectAccount(b.Context(), b.account))
		},
	} {
		forGood := name != "temporarily"
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "smartthings"})
			c := b.on("2580", "k1")
			a := b.deleteCode(c)
			dev, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
			b.must(err)
			leave(b)
			b.look()
			a, err = b.access.Devices.GetAttempt(t.Context(), b.p, a.ID.String())
			b.must(err)
			if forGood {
				var left int
				b.must(b.db.Pool.QueryRow(t.Context(), "select count(*) from access_codes").Scan(&left))
				if a.Status != device.Succeeded || left != 0 {
					t.Errorf("removal %s, %d codes left", a.Status, left)
				}
				if got := b.told("access_code.removed_from_device", "access_code.deleted"); !slices.Equal(got,
					[]string{"access_code.deleted"}) { // the code still opens
					t.Errorf("events %v", got)
				}
				return
			}
			if a.Status != device.Failed || a.ErrorType != "device_removed" {
				t.Errorf("removal %s (%s)", a.Status, a.ErrorType)
			}
			b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{
				{
					Ref:          dev.Ref,
					Name:         "Door",
					Type:         dev.Type,
					Provider:     dev.Provider,
					Online:       true,
					Capabilities: dev.Capabilities,
				},
			}))
			b.read(found("k1", "2580"))
			w := b.work(c)
			if w.Action != lockstate.Delete || w.Ref != "k1" || len(b.unmanaged()) > 0 {
				t.Fatalf("planned action %q of %q, %d unmanaged codes", w.Action, w.Ref, len(b.unmanaged()))
			}
			b.must(b.removal(w, true, nil))
			b.read()
			if len(b.managed()) != 0 {
				t.Error("the code still exists")
			}
		})
	}
}

// Unknown properties, for example while a gateway starts, keep their known values.
func TestDevice_UnknownCapabilitiesAreKept(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "r1")
	before, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
	b.must(err)
	b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{{
		Ref:                 before.Ref,
		Name:                "Back door",
		Type:                before.Type,
		Provider:            before.Provider,
		Online:              true,
		Capabilities:        capability.Set{Lock: true},
		CapabilitiesUnknown: true,
	}}))
	b.look()
	after, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
	b.must(err)
	if after.Name != "Back door" || !reflect.DeepEqual(after.Capabilities, before.Capabilities) {
		t.Errorf("name %q, capabilities %+v", after.Name, after.Capabilities)
	}
	b.create("1470")
	if got := b.code(c.ID); len(got.Errors) != 0 {
		t.Errorf("code errors %v", got.Errors)
	}
}

// What a vendor reports about the door and the keypad follows each report.
func TestDevice_DoorAndKeypad(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	was, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
	b.must(err)
	for _, want := range []struct {
		open    *bool
		battery *float64
	}{{new(true), new(0.4)}, {new(false), new(0.3)}, {}} {
		b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{{
			Ref:           was.Ref,
			Name:          was.VendorName,
			Type:          was.Type,
			Provider:      was.Provider,
			Online:        true,
			Capabilities:  was.Capabilities,
			DoorOpen:      want.open,
			KeypadBattery: want.battery,
		}}))
		got, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
		b.must(err)
		if !reflect.DeepEqual(got.DoorOpen, want.open) || !reflect.DeepEqual(got.KeypadBattery, want.battery) {
			t.Errorf("door %v, keypad %v; want %v, %v", got.DoorOpen, got.KeypadBattery, want.open, want.battery)
		}
	}
}

// An unmanaged device leaves its account like any other, and a look at its account alone does not
// remove it.
func TestUnmanagedDevice_LeavesAccount(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.must(b.access.Devices.UpdateDevice(t.Context(), b.p, b.device, device.Change{Managed: new(bool)}))
	id := uuid.MustParse(b.device)
	b.must(b.access.Accounts.Resync(t.Context(), b.account))
	b.until("the account was listed", func() bool {
		d, err := b.db.GetDeviceByID(t.Context(), id)
		b.must(err)
		return !d.ReadNeeded
	})
	if _, err := b.access.Devices.GetUnmanagedDevice(t.Context(), b.p, b.device, ""); err != nil {
		t.Fatalf("the device exists but was announced as removed: %v", err)
	}
	b.control(http.MethodPost, "remove", map[string]any{})
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("the removal is announced", func() bool { return len(b.told("device.removed")) == 1 })
}

// A code of a removed device ends at its time, like any other code. If the device may come back
// with the code, the code is removed then.
func TestRemovedDevice_CodeEnds(t *testing.T) {
	t.Parallel()
	var c clock
	var away atomic.Bool
	b := start(
		t,
		options{
			profile: "august",
			access:  access.Options{Now: c.now, ReadLag: time.Nanosecond},
			vendor: func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case !away.Load() || !strings.HasPrefix(r.URL.Path, "/locks"):
					return false
				case r.URL.Path == "/locks":
					_, _ = io.WriteString(w, `{"locks":[]}`)
				default:
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, `{"error":{"code":"NOT_FOUND","message":"There is no such lock."}}`)
				}
				return true
			},
		},
	)
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	on, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID: b.device,
		PIN:      "2580",
		EndsAt:   soon,
		StartsAt: time.Now().UTC().Format(time.RFC3339),
	})
	b.must(err)
	b.succeeded(a)
	later, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID: b.device,
		PIN:      "2581",
		StartsAt: time.Now().Add(90 * time.Minute).UTC().Format(time.RFC3339),
		EndsAt:   time.Now().Add(100 * time.Minute).UTC().Format(time.RFC3339),
	})
	b.must(err)
	b.succeeded(a)
	away.Store(true)
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("the removal of the device is announced", func() bool { return len(b.told("device.removed")) == 1 })
	b.until("the status of the code is unknown", func() bool { return b.code(on.ID).Status == device.StatusUnknown })
	c.ahead.Store(int64(2 * time.Hour))
	// The skipped time has passed.
	_, err = b.db.Pool.Exec(t.Context(), "update devices set due_at = now() where due_at is not null")
	b.must(err)
	b.until("the code that is not on the device is gone", func() bool { return !b.exists(later.ID) })
	b.until("the other code is being removed", func() bool { return b.code(on.ID).Status == device.StatusRemoving })
	away.Store(false)
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("the code is gone from the lock, too", func() bool { return !b.exists(on.ID) && !b.onLock("2580") })
}

func (b *bed) exists(code uuid.UUID) bool {
	b.Helper()
	_, err := b.access.Devices.GetCode(b.Context(), b.p, true, code.String(), "", "")
	var e *domain.Error
	if err != nil && (!errors.As(err, &e) || e.Kind != domain.NotFound) {
		b.Fatal(err)
	}
	return err == nil
}

// holding is a lease that is always held.
type holding struct{}

func (holding) Check(context.Context, store.Tx) error { return nil }

// The list of an account that was erased meanwhile is ignored without an error.
func TestErasedAccount_ListIsIgnored(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	if err := b.access.Devices.RecordDevices(
		t.Context(),
		holding{},
		uuid.New(),
		[]device.FoundDevice{{Ref: "1", Name: "Front door"}},
	); err != nil {
		t.Error(err)
	}
}

// The removal event of a device of such an account is no error either.
func TestErasedAccount_DeviceRemoval(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	if err := b.access.Devices.RecordRemovedByRef(t.Context(), uuid.New(), "1", 0); err != nil {
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
	// As if after the read of the device.
	_, err := b.db.Pool.Exec(t.Context(), "update connected_accounts set deleted_at = now()")
	b.must(err)
	ended := make(chan error, 1)
	b.watch = func(l worker.Lane) worker.Lane {
		if l.Name() == domain.DeviceLane {
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
	// As if after the read of the device.
	_, err := b.db.Pool.Exec(t.Context(), "update connected_accounts set deleted_at = now()")
	b.must(err)
	var e *domain.Error
	if err := b.rec.SetOnline(t.Context(), b.p, b.device, false); !errors.As(err, &e) || e.Kind != domain.NotFound {
		t.Errorf("simulation: %v", err)
	}
}
