package reconcile_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// Nobody has told of what was done at a lock while no server ran, and its vendor tells of it no more.
func TestCodeThatWasDeletedAtItsLockWhileNoServerRanIsNoticed(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{ListLag: 100 * time.Millisecond}})
	c := b.set()
	b.stopEngine()
	for _, on := range b.memory() {
		if on.Code == *c.PIN {
			b.control(http.MethodDelete, "keypad/codes/"+on.ID, nil)
		}
	}
	b.startEngine()
	b.must(b.access.Hint(t.Context(), b.account, "")) // its locks are listed, as they are every minute
	b.until("that is told", func() bool { return len(b.told("access_code.deleted_external_to_seam")) == 1 })
	b.until("it is set again", func() bool { return b.onLock(*c.PIN) })
}

// listed is a bed that lists its lock, and says whether its codes are to be read then. They were read that long ago.
func listed(t *testing.T) (b byHand, lists func(ago string, f access.FoundDevice) bool) {
	t.Helper()
	b = hand(t, options{profile: "august"})
	return b, func(ago string, f access.FoundDevice) (read bool) {
		t.Helper()
		f.Ref, f.Name, f.Online, f.Capabilities.ListCodes = b.lock, "Door", true, true
		for range 2 { // the second time it is as it was
			_, err := b.db.Pool.Exec(t.Context(),
				"update devices set read_needed = false, due_at = null, last_good_read_at = now() - $1::text::interval where device_id = $2",
				ago, b.id())
			b.must(err)
			b.must(b.access.RecordDevices(t.Context(), holder{}, b.account, []access.FoundDevice{f}))
		}
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select read_needed and due_at <= now() from devices where device_id = $1", b.id()).
				Scan(&read),
		)
		return read
	}
}

// A vendor may lose what it has to tell. So the codes of its locks are read now and then, though nobody has told of anything.
func TestCodesOfALockAtRestAreReadNowAndThen(t *testing.T) {
	t.Parallel()
	_, lists := listed(t)
	for _, c := range []struct {
		ago   string
		lossy bool
		want  bool
	}{{"2 h", true, false}, {"7 h", true, true}, {"7 h", false, false}} {
		if got := lists(c.ago, access.FoundDevice{Lossy: c.lossy}); got != c.want {
			t.Errorf("%s ago, what is told may get lost %t: read %t", c.ago, c.lossy, got)
		}
	}
}

// A device that cannot be read is tried as often as others that fail.
func TestLockThatCouldNotBeReadIsNotReadSoonerForBeingListed(t *testing.T) {
	t.Parallel()
	b, lists := listed(t)
	lists("1 h", access.FoundDevice{Lossy: true})
	_, err := b.db.Pool.Exec(t.Context(),
		"update devices set read_needed = true, due_at = null, last_good_read_at = now() - interval '7 h' where device_id = $1",
		b.id())
	b.must(err)
	b.must(b.access.RecordDevices(t.Context(), holder{}, b.account, []access.FoundDevice{{
		Ref:          b.lock,
		Name:         "Door",
		Online:       true,
		Lossy:        true,
		Capabilities: access.Capabilities{ListCodes: true},
	}}))
	var woken bool
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select due_at is not null from devices where device_id = $1", b.id()).
			Scan(&woken),
	)
	if woken {
		t.Error("it is due")
	}
}

// While an account was refused nobody has told of its locks, and those that have something to do wait for long.
func TestLocksOfAnAccountThatWorksAgainAreRead(t *testing.T) {
	t.Parallel()
	b, lists := listed(t)
	if lists("1 s", access.FoundDevice{}) {
		t.Fatal("it is read without a reason")
	}
	for since, want := range map[string]bool{"3 min": true, "1 min": false} { // the latter may be about one lock only, which would have all the others read each time
		b.must(b.access.RecordAccountRefused(t.Context(), holder{}, b.account, "no"))
		_, err := b.db.Pool.Exec(t.Context(), "update connected_accounts set error_at = now() - $1::text::interval",
			since)
		b.must(err)
		_, err = b.db.Pool.Exec(t.Context(),
			"update devices set read_needed = true, due_at = now() + interval '5 min' where device_id = $1", b.id())
		b.must(err)
		b.must(b.access.RecordDevices(t.Context(), holder{}, b.account, []access.FoundDevice{{
			Ref:          b.lock,
			Name:         "Door",
			Online:       true,
			Capabilities: access.Capabilities{ListCodes: true},
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

// A restored server knows a code under the reference it had before it was put anew. The vendor has kept whose it is.
func TestCodeThatWasPutAnewSinceADumpIsKnownAgain(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	c := b.on("2580", "r1")
	b.read(found("r1", "2580"))
	moved := found("r2", "1357")
	moved.Key = c.ID.String()
	b.read(moved)
	if w := b.work(c); w.Action != access.Put || w.Ref != "r2" || len(b.unmanaged()) != 0 {
		t.Errorf("%+v is to be done, and %d are unmanaged", w.Action, len(b.unmanaged()))
	}
	// While both are listed it is the one that is known.
	b.read(found("r2", "2580"))
	old := found("r1", "9999")
	old.Key = c.ID.String()
	b.read(old, found("r2", "2580"))
	if got := b.code(c.ID); got.Status != access.StatusSet || len(b.unmanaged()) != 1 {
		t.Errorf("it is %s, and %d are unmanaged", got.Status, len(b.unmanaged()))
	}
}

// The vendor has answered a creation that was repeated with the code as it was made first: it is put anew, and not told to be set before.
func TestCodeThatWasMadeWithAnotherPINIsPutAnew(t *testing.T) {
	t.Parallel()
	var clock clock
	b := hand(t, options{profile: "august", vendor: rigid(t, saysSo), access: access.Options{Now: clock.now}})
	c, _ := b.create("2580")
	b.begin(b.work(c)) // the answer is lost
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "1357"})
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "r1"})
	first := found("r1", "2580")
	first.Key = c.ID.String()
	b.read(first)
	clock.ahead.Store(int64(2 * time.Second)) // it has failed once
	if got, w := b.code(c.ID), b.work(c); got.Status != access.StatusSetting || w.Action != access.Delete ||
		w.Ref != "r1" {
		t.Errorf("it is %s, and to be done is %q of %s", got.Status, w.Action, w.Ref)
	}
}

// What was put anew since a dump, and hides its PIN or never came to be on the lock, is not taken for what the dump says.
func TestCodeThatWasPutAnewUnseenSinceADumpIsPut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shown access.Found
		ref   string
	}{
		"its PIN is hidden": {access.Found{Ref: "r2", Confirmed: true}, "r2"},
		"it failed":         {access.Found{Ref: "r2", Failure: &access.Failure{Class: access.FailedForNow, Message: "The lock did not answer."}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
			code := b.on("2580", "r1")
			b.read(found("r1", "2580"), found("k9", "9999"))
			c.shown.Key = code.ID.String()
			b.read(c.shown, found("k9", "9999"))
			if got, w := b.code(code.ID), b.work(code); got.Status != access.StatusSetting || w.Action != access.Put ||
				w.Ref != c.ref {
				t.Errorf("it is %s, and to be done is %q of %q", got.Status, w.Action, w.Ref)
			}
		})
	}
}

// A code that was taken off in the vendor's app is gone, although nothing can be sent to its lock until that is paid for.
func TestCodeThatHasLeftIsGoneWhileNothingCanBeSent(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	c := b.on("2580", "r1")
	b.read(found("r1", "2580"), found("k9", "9999"))
	_, err := b.db.Pool.Exec(t.Context(), "update devices set subscription_missing_at = now()")
	b.must(err)
	_, err = b.access.DeleteCode(t.Context(), b.p, c.ID.String(), "")
	b.must(err)
	b.read(found("k9", "9999"))
	if b.exists(c.ID) {
		t.Errorf("it is %s", b.code(c.ID).Status)
	}
}
