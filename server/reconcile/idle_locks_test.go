package reconcile_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// A deletion at the lock while no server ran causes no event, so only a read reveals it.
func TestDeletedAtLock_WhileNoServerRan(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{ReadLag: 100 * time.Millisecond}})
	c := b.set()
	b.stopEngine()
	for _, on := range b.memory() {
		if on.Code == *c.PIN {
			b.control(http.MethodDelete, "keypad/codes/"+on.ID, nil)
		}
	}
	b.startEngine()
	b.must(b.access.Accounts.Hint(t.Context(), b.account, "")) // lists its locks, as happens every minute
	b.until("the deletion is announced",
		func() bool { return len(b.told("access_code.deleted_external_to_seam")) == 1 })
	b.until("it is set again", func() bool { return b.onLock(*c.PIN) })
}

// listed lists the lock and reports whether its codes became due. They were last read the given
// time ago.
func listed(t *testing.T) (b byHand, lists func(ago string, f device.FoundDevice) bool) {
	t.Helper()
	b = hand(t, options{profile: "august"})
	return b, func(ago string, f device.FoundDevice) (read bool) {
		t.Helper()
		f.Ref, f.Name, f.Online, f.Capabilities.ListCodes = b.lock, "Door", true, true
		for range 2 { // the second listing shows no change
			_, err := b.db.Pool.Exec(
				t.Context(),
				"update devices set read_needed = false, due_at = null, last_good_read_at = now() - $1::text::interval where device_id = $2",
				ago,
				b.id(),
			)
			b.must(err)
			b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{f}))
		}
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select read_needed and due_at <= now() from devices where device_id = $1", b.id()).
				Scan(&read),
		)
		return read
	}
}

// A vendor may lose events, so the codes of idle locks are read periodically.
func TestIdleLock_IsReadPeriodically(t *testing.T) {
	t.Parallel()
	_, lists := listed(t)
	for _, c := range []struct {
		ago   string
		lossy bool
		want  bool
	}{{"2 h", true, false}, {"7 h", true, true}, {"7 h", false, false}} {
		if got := lists(c.ago, device.FoundDevice{Lossy: c.lossy}); got != c.want {
			t.Errorf("last read %s ago, lossy %t: read %t", c.ago, c.lossy, got)
		}
	}
}

// A listing does not shorten the backoff of a device that cannot be read.
func TestListing_KeepsBackoffOfUnreadableLock(t *testing.T) {
	t.Parallel()
	b, lists := listed(t)
	lists("1 h", device.FoundDevice{Lossy: true})
	_, err := b.db.Pool.Exec(
		t.Context(),
		"update devices set read_needed = true, due_at = null, last_good_read_at = now() - interval '7 h' where device_id = $1",
		b.id(),
	)
	b.must(err)
	b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{{
		Ref:          b.lock,
		Name:         "Door",
		Online:       true,
		Lossy:        true,
		Capabilities: capability.Set{ListCodes: true},
	}}))
	var woken bool
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select due_at is not null from devices where device_id = $1", b.id()).
			Scan(&woken),
	)
	if woken {
		t.Error("the device is due")
	}
}

// Events are lost while an account is disconnected, and its locks back off.
func TestAccountRecovery_ReadsItsLocks(t *testing.T) {
	t.Parallel()
	b, lists := listed(t)
	if lists("1 s", device.FoundDevice{}) {
		t.Fatal("the lock was read without a reason")
	}
	// A short outage may concern one lock. Reading all locks each time would be too much.
	for since, want := range map[string]bool{"3 min": true, "1 min": false} {
		b.must(b.access.Accounts.RecordAccountRefused(t.Context(), holder{}, b.account, "no"))
		_, err := b.db.Pool.Exec(t.Context(), "update connected_accounts set error_at = now() - $1::text::interval",
			since)
		b.must(err)
		_, err = b.db.Pool.Exec(t.Context(),
			"update devices set read_needed = true, due_at = now() + interval '5 min' where device_id = $1", b.id())
		b.must(err)
		b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{{
			Ref:          b.lock,
			Name:         "Door",
			Online:       true,
			Capabilities: capability.Set{ListCodes: true},
		}}))
		var read bool
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select read_needed and due_at <= now() from devices where device_id = $1", b.id()).
				Scan(&read),
		)
		if read != want {
			t.Errorf("after %s: read %v", since, read)
		}
	}
}
