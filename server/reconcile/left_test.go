package reconcile_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// An unmanaged device leaves its account like any other, and a look at its account alone does not
// remove it.
func TestUnmanagedDevice_LeavesAccount(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	b.must(b.access.UpdateDevice(t.Context(), b.p, b.device, access.DeviceChange{Managed: new(bool)}))
	id := uuid.MustParse(b.device)
	b.must(b.access.Resync(t.Context(), b.account))
	b.until("the account was listed", func() bool {
		d, err := b.db.GetDeviceByID(t.Context(), id)
		b.must(err)
		return !d.ReadNeeded
	})
	if _, err := b.access.GetUnmanagedDevice(t.Context(), b.p, b.device, ""); err != nil {
		t.Fatalf("the device exists but was announced as removed: %v", err)
	}
	b.control(http.MethodPost, "remove", map[string]any{})
	b.must(b.access.Hint(t.Context(), b.account, ""))
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
			access:  access.Options{Now: c.now, ListLag: time.Nanosecond},
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
	on, a, err := b.access.CreateCode(t.Context(), b.p, access.NewCode{
		DeviceID: b.device,
		PIN:      "2580",
		EndsAt:   soon,
		StartsAt: time.Now().UTC().Format(time.RFC3339),
	})
	b.must(err)
	b.succeeded(a)
	later, a, err := b.access.CreateCode(t.Context(), b.p, access.NewCode{
		DeviceID: b.device,
		PIN:      "2581",
		StartsAt: time.Now().Add(90 * time.Minute).UTC().Format(time.RFC3339),
		EndsAt:   time.Now().Add(100 * time.Minute).UTC().Format(time.RFC3339),
	})
	b.must(err)
	b.succeeded(a)
	away.Store(true)
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("the removal of the device is announced", func() bool { return len(b.told("device.removed")) == 1 })
	b.until("the status of the code is unknown", func() bool { return b.code(on.ID).Status == access.StatusUnknown })
	c.ahead.Store(int64(2 * time.Hour))
	_, err = b.db.Pool.Exec(t.Context(), "update devices set due_at = now() where due_at is not null") // the skipped time has passed
	b.must(err)
	b.until("the code that is not on the device is gone", func() bool { return !b.exists(later.ID) })
	b.until("the other code is being removed", func() bool { return b.code(on.ID).Status == access.StatusRemoving })
	away.Store(false)
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("the code is gone from the lock, too", func() bool { return !b.exists(on.ID) && !b.onLock("2580") })
}

func (b *bed) exists(code uuid.UUID) bool {
	b.Helper()
	_, err := b.access.GetCode(b.Context(), b.p, true, code.String(), "", "")
	var e *access.Error
	if err != nil && (!errors.As(err, &e) || e.Kind != access.NotFound) {
		b.Fatal(err)
	}
	return err == nil
}
