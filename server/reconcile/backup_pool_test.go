package reconcile_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// backed creates a code with a backup pool.
func (b *bed) backed() device.Code {
	b.Helper()
	c, _ := b.backedAttempt("2580")
	return c
}

func (b *bed) backedAttempt(pin string) (device.Code, device.Attempt) {
	b.Helper()
	c, a, err := b.access.Devices.CreateCode(b.Context(), b.p, device.NewCode{
		DeviceID:         b.device,
		PIN:              pin,
		NativeScheduling: true,
		EvenIfOffline:    true,
		BackupPool:       true,
		StartsAt:         time.Now().Format(time.RFC3339),
		EndsAt:           time.Now().Add(5 * time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	return c, a
}

// Some locks reject a start in the past, so the pulled code gets a later one.
func TestPulledCode_LockRejectsPastStart(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "kwikset"})
	guest := b.backed()
	b.until("a backup code can be pulled", func() bool { return b.code(guest.ID).BackupAvailable })
	pulled, err := b.access.Devices.PullBackupCode(t.Context(), b.p, guest.ID.String())
	b.must(err)
	b.until("the lock has its time frame", func() bool { return len(b.code(pulled.ID).Mutations) == 0 })
	if got := b.code(pulled.ID); got.Status != device.StatusSet || len(got.Errors) > 0 ||
		!got.StartsAt.Equal(*guest.StartsAt) ||
		!got.EndsAt.Equal(*guest.EndsAt) {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// inPool counts the pool codes on the lock.
func (b *bed) inPool() (n int) {
	b.Helper()
	for _, c := range b.memory() {
		if c.Name == "Backup code" {
			n++
		}
	}
	return n
}

// Pool codes leave an unmanaged lock.
func TestBackupPool_LeavesUnmanagedLock(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "yale"})
	others := len(b.memory())
	_, a := b.create("1379")
	b.succeeded(a)
	_, a = b.backedAttempt("2580")
	b.succeeded(a)
	b.until("the pool is full", func() bool { return b.inPool() == 3 })
	b.must(b.access.Devices.UpdateDevice(t.Context(), b.p, b.device, device.Change{Managed: new(bool)}))
	b.until("the pool is gone", func() bool { return b.inPool() == 0 })
	if n := len(b.memory()); n != others+2 {
		t.Errorf("%d codes on the lock, want %d unmanaged and two of ours", n, others)
	}
	managed := true
	b.must(b.access.Devices.UpdateUnmanagedDevice(t.Context(), b.p, b.device, device.Change{Managed: &managed}))
	b.until("the pool is full again", func() bool { return b.inPool() == 3 })
}

// A deleted device, or one of a disconnected account, comes back as another device. Its pool codes
// are recognized and removed.
func TestBackupPool_LeavesDeviceThatCameBack(t *testing.T) {
	t.Parallel()
	for how, giveUp := range map[string]func(b *bed){
		"deleted": func(b *bed) { b.must(b.access.Devices.DeleteDevice(b.Context(), b.p, b.device)) },
		"its account was disconnected": func(b *bed) {
			b.must(b.access.Accounts.DisconnectAccount(b.Context(), b.account))
			_, err := b.access.Accounts.ConnectAccount(b.Context(), account.NewAccount{
				WorkspaceID: b.p.WorkspaceID,
				Adapter:     account.SandboxAdapter,
				DisplayName: "again",
				Config:      json.RawMessage(`{}`),
			})
			b.must(err)
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := start(t, options{profile: "yale"})
			others := len(b.memory())
			guest, a := b.backedAttempt("2580")
			b.succeeded(a)
			b.until("the pool is full", func() bool { return b.inPool() == 3 })
			b.until("the pool is available", func() bool { return b.code(guest.ID).BackupAvailable })
			old := b.device
			giveUp(b)
			b.until("the device is back", func() bool {
				ds, _, err := b.access.Devices.ListDevices(
					t.Context(),
					b.p,
					device.Filter{},
					domain.Page{Limit: 10},
				)
				b.must(err)
				if len(ds) == 1 {
					b.device = ds[0].ID.String()
				}
				return len(ds) == 1 && b.device != old
			})
			b.until("the pool is gone", func() bool { return b.inPool() == 0 })
			b.until("its codes are read", func() bool { return len(b.unmanaged()) == others+1 })
			// First listing and second listing, which includes the guest's code.
			if n := len(b.told("access_code.unmanaged.created")); n != others+others+1 {
				t.Errorf("%d events about unmanaged codes", n)
			}
		})
	}
}

// A pass plans a new pool code and starts to set it in one transaction. After a crash, the code must be recognized.
func TestBackupPool_NewCodeIsStartedAtOnce(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	guest := b.backed()
	_, started := b.advance(device.Report{}, func(w device.Work) device.Next {
		for _, op := range w.Operations {
			if op.Code != guest.ID {
				return device.Next{Start: &op}
			}
		}
		return device.Next{}
	})
	if started == nil {
		t.Fatal("no pool code is started")
	}
	for _, w := range b.look().Codes {
		if w.ID == started.Code && !w.WriteUncertain {
			t.Error("the start of the write was not recorded")
		}
	}
}
