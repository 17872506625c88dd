package reconcile_test

import (
	"encoding/json"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

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
	b.must(b.access.UpdateDevice(t.Context(), b.p, b.device, access.DeviceChange{Managed: new(bool)}))
	b.until("the pool is gone", func() bool { return b.inPool() == 0 })
	if n := len(b.memory()); n != others+2 {
		t.Errorf("%d codes on the lock, want %d unmanaged and two of ours", n, others)
	}
	managed := true
	b.must(b.access.UpdateUnmanagedDevice(t.Context(), b.p, b.device, access.DeviceChange{Managed: &managed}))
	b.until("the pool is full again", func() bool { return b.inPool() == 3 })
}

// A deleted device, or one of a disconnected account, comes back as another device. Its pool codes
// are recognized and removed.
func TestBackupPool_LeavesDeviceThatCameBack(t *testing.T) {
	t.Parallel()
	for how, giveUp := range map[string]func(b *bed){
		"deleted": func(b *bed) { b.must(b.access.DeleteDevice(b.Context(), b.p, b.device)) },
		"its account was disconnected": func(b *bed) {
			b.must(b.access.DisconnectAccount(b.Context(), b.account))
			_, err := b.access.ConnectAccount(b.Context(), access.NewAccount{
				WorkspaceID: b.p.WorkspaceID,
				Adapter:     access.SandboxAdapter,
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
				ds, _, err := b.access.ListDevices(t.Context(), b.p, access.DeviceFilter{}, access.Page{Limit: 10})
				b.must(err)
				if len(ds) == 1 {
					b.device = ds[0].ID.String()
				}
				return len(ds) == 1 && b.device != old
			})
			b.until("the pool is gone", func() bool { return b.inPool() == 0 })
			b.until("its codes are read", func() bool { return len(b.unmanaged()) == others+1 })
			if n := len(b.told("access_code.unmanaged.created")); n != others+others+1 { // first listing and second listing, which includes the guest's code
				t.Errorf("%d events about unmanaged codes", n)
			}
		})
	}
}
