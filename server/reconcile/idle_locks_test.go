package reconcile_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
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

// After a restore, the server knows a recreated code only under its old reference. The vendor has
// kept the owner.
func TestRestoredBackup_FindsRecreatedCode(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	c := b.on("2580", "r1")
	b.read(found("r1", "2580"))
	moved := found("r2", "1357")
	moved.Key = c.ID.String()
	b.read(moved)
	if w := b.work(c); w.Action != lockstate.Put || w.Ref != "r2" || len(b.unmanaged()) != 0 {
		t.Errorf("planned action %+v, %d unmanaged codes", w.Action, len(b.unmanaged()))
	}
	// While both are listed, the known reference counts.
	b.read(found("r2", "2580"))
	old := found("r1", "9999")
	old.Key = c.ID.String()
	b.read(old, found("r2", "2580"))
	if got := b.code(c.ID); got.Status != device.StatusSet || len(b.unmanaged()) != 1 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
}

// The vendor answered a repeated create with the first code. The code is recreated and not
// announced as set before.
func TestRepeatedCreate_OtherPINIsRecreated(t *testing.T) {
	t.Parallel()
	var clock clock
	b := hand(t, options{profile: "august", vendor: rigid(t, saysSo), access: access.Options{Now: clock.now}})
	c, _ := b.create("2580")
	b.begin(b.work(c)) // the answer is lost
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "1357"})
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "r1"})
	first := found("r1", "2580")
	first.Key = c.ID.String()
	b.read(first)
	clock.ahead.Store(int64(2 * time.Second)) // the backoff has passed
	if got, w := b.code(c.ID), b.work(c); got.Status != device.StatusSetting || w.Action != lockstate.Delete ||
		w.Ref != "r1" {
		t.Errorf("status %s, planned action %q of %s", got.Status, w.Action, w.Ref)
	}
}

// A code recreated after the backup, which hides its PIN or failed, does not count as the code in
// the backup.
func TestRestoredBackup_UnprovenCodeIsPutAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shown shown
		ref   string
	}{
		"hidden PIN":   {shown{Ref: "r2", Confirmed: true}, "r2"},
		"failed write": {shown{Ref: "r2", Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "The lock did not answer."}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
			code := b.on("2580", "r1")
			b.read(found("r1", "2580"), found("k9", "9999"))
			c.shown.Key = code.ID.String()
			b.read(c.shown, found("k9", "9999"))
			if got, w := b.code(
				code.ID,
			), b.work(
				code,
			); got.Status != device.StatusSetting ||
				w.Action != lockstate.Put ||
				w.Ref != c.ref {
				t.Errorf("status %s, planned action %q of %q", got.Status, w.Action, w.Ref)
			}
		})
	}
}

// A code removed in the vendor's app is gone, even if an expired subscription prevents writes to
// its lock.
func TestDeletedAtVendor_WhileWritesAreImpossible(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ReadLag: time.Nanosecond}})
	c := b.on("2580", "r1")
	b.read(found("r1", "2580"), found("k9", "9999"))
	_, err := b.db.Pool.Exec(t.Context(), "update devices set subscription_missing_at = now()")
	b.must(err)
	_, err = b.access.Devices.DeleteCode(t.Context(), b.p, c.ID.String(), "")
	b.must(err)
	b.read(found("k9", "9999"))
	if b.exists(c.ID) {
		t.Errorf("status %s", b.code(c.ID).Status)
	}
}
