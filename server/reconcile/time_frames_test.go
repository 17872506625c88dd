package reconcile_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// between creates a code with a time frame.
func (b byHand) between(pin string, from, to time.Time) device.Code {
	b.Helper()
	c, _, err := b.access.Devices.CreateCode(b.Context(), b.p, device.NewCode{
		DeviceID:         b.device,
		PIN:              pin,
		NativeScheduling: true,
		EvenIfOffline:    true,
		StartsAt:         from.Format(time.RFC3339Nano),
		EndsAt:           to.Format(time.RFC3339Nano),
	})
	b.must(err)
	return c
}

func timeBound(t *testing.T, profile string) (byHand, *testClock) {
	t.Helper()
	clock := &testClock{at: time.Now().Truncate(time.Second)}
	return hand(t, options{profile: profile, access: access.Options{Now: clock.now}}), clock
}

// A lock with time frames receives its codes three days early; others, an hour early.
func TestTimeBoundCode_IsProgrammedBeforeStart(t *testing.T) {
	t.Parallel()
	for profile, ahead := range map[string]time.Duration{"august": 72 * time.Hour, "smartthings": time.Hour} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, profile)
			from := clock.now().Add(100 * time.Hour)
			c := b.between("2580", from, from.Add(time.Hour))
			if w := b.look(); len(w.Codes) > 0 || w.Due == nil || !w.Due.Equal(from.Add(-ahead)) {
				t.Fatalf("due at %v, want %v", w.Due, from.Add(-ahead))
			}
			clock.to(from.Add(-ahead))
			w := b.work(c)
			if native := profile == "august"; w.Action != lockstate.Put || (w.StartsAt != nil) != native {
				t.Fatalf("planned action %q, from %v", w.Action, w.StartsAt)
			}
			b.begin(w)
			b.end(w, outcome{Ref: "k1", Confirmed: true})
			if got := b.code(c.ID); got.Status != device.StatusUnset {
				t.Errorf("before its start: status %s", got.Status)
			}
			clock.to(from)
			b.look()
			if got := b.code(c.ID); got.Status != device.StatusSet {
				t.Errorf("after its start: status %s", got.Status)
			}
			if got := b.events(c.ID); !slices.Contains(got, "access_code.scheduled_on_device") ||
				!slices.Contains(got, "access_code.set_on_device") {
				t.Errorf("events %v", got)
			}
		})
	}
}

// The lock was offline at the end of the code. Removing the code is the first operation afterwards.
// Until then, a warning says that it may still open.
func TestTimeBoundCode_EndsWhileOffline(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "smartthings")
	c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	later, _ := b.create("4711")
	clock.pass(time.Hour)
	if w := b.work(c); w.Action != lockstate.Delete {
		t.Fatalf("planned action %q", w.Action)
	}
	for range 10 {
		if _, _, err := b.access.Devices.RecordUnreachable(t.Context(), holder{}, b.id(), true, true); err != nil {
			t.Fatal(err)
		}
		clock.pass(10 * time.Minute)
		b.look()
	}
	got := b.code(c.ID)
	if got.Status != device.StatusRemoving || len(got.Errors)+len(got.Warnings) == 0 {
		t.Errorf("status %s, errors %v, warnings %v", got.Status, got.Errors, got.Warnings)
	}
	late := slices.Index(b.events(c.ID), "access_code.delay_in_removing_from_device")
	if late < 0 || slices.Contains(b.events(c.ID)[late+1:], "access_code.delay_in_removing_from_device") {
		t.Errorf("events %v", b.events(c.ID))
	}
	b.read(found("k1", ""))
	if w := b.work(c); w.Action != lockstate.Delete {
		t.Errorf("back online: planned action %q", w.Action)
	}
	if w := b.work(later); w.Action != lockstate.Put || !w.New {
		t.Errorf("planned action %q for the other code", w.Action)
	}
	b.must(b.removal(b.work(c), true, nil))
	b.read()
	if slices.ContainsFunc(b.managed(), func(m device.Code) bool { return m.ID == c.ID }) {
		t.Error("the code still exists")
	}
}

// An expired code leaves the lock before any other write.
func TestTimeBoundCode_ExpiredIsRemovedFirst(t *testing.T) {
	t.Parallel()
	var c clock
	var mu sync.Mutex
	var writes []string
	b := start(
		t,
		options{
			profile: "smartthings",
			access:  access.Options{Now: c.now},
			vendor: func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "access_codes") {
					mu.Lock()
					defer mu.Unlock()
					writes = append(writes, r.Method)
				}
				return false
			},
		},
	)
	_, a, err := b.access.Devices.CreateCode(t.Context(), b.p, device.NewCode{
		DeviceID:      b.device,
		PIN:           "2580",
		EvenIfOffline: true,
		StartsAt:      time.Now().Add(-time.Hour).Format(time.RFC3339),
		EndsAt:        time.Now().Add(time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	b.succeeded(a)
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	for _, pin := range []string{"4711", "4712"} {
		b.create(pin)
	}
	mu.Lock()
	writes = nil
	mu.Unlock()
	c.ahead.Store(int64(2 * time.Hour))
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	b.until("all codes are in place", func() bool { return !b.onLock("2580") && b.onLock("4711") && b.onLock("4712") })
	mu.Lock()
	defer mu.Unlock()
	if i := slices.Index(writes, http.MethodDelete); i != 0 {
		t.Errorf("the writes were %v", writes)
	}
}

// The removal needs a confirmation.
func TestTimeBoundCode_LateRemovalIsAnError(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	clock.pass(time.Hour)
	tries := 0
	for range 6 {
		w := b.work(c)
		if w.Action != lockstate.Delete {
			t.Fatalf("planned action %q", w.Action)
		}
		b.must(
			b.removal(w, false,
				&lockstate.Failure{Class: lockstate.FailedForNow, Message: "the lock jammed."}),
		)
		tries++
		clock.pass(time.Hour)
	}
	if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_expire" {
		t.Errorf("after %d tries: errors %v", tries, got.Errors)
	}
	if got := b.told("access_code.failed_to_expire", "access_code.failed_to_remove_from_device"); !slices.Equal(got,
		[]string{"access_code.failed_to_expire"}) {
		t.Errorf("events %v", got)
	}
}

// A failure concerning a code on the lock is a failure to change it, not to set it.
func TestFailedChange_IsFailedToUpdate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure lockstate.Failure
		tries   int
		says    string
	}{
		"refused":          {lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no such name"}, 1, "code_constraints_violated"},
		"cannot be done":   {lockstate.Failure{Class: lockstate.FailedUnsupported, Message: "codes cannot be renamed"}, 1, "failed_to_update"},
		"fails repeatedly": {lockstate.Failure{Class: lockstate.FailedForNow, Message: "busy."}, 6, "failed_to_update"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			code := b.on("2580", "k1")
			b.update(device.CodeChange{ID: code.ID.String(), Name: new("Friend")})
			for range c.tries {
				w := b.work(code)
				b.begin(w)
				b.end(w, outcome{Failure: &c.failure})
				clock.pass(time.Hour)
			}
			if got := b.code(code.ID); len(got.Errors) != 1 || got.Errors[0].Code != c.says {
				t.Errorf("errors %v", got.Errors)
			}
			events := b.told("access_code.failed_to_update", "access_code.failed_to_set_on_device")
			if !slices.Equal(events, []string{"access_code.failed_to_update"}) {
				t.Errorf("events %v", events)
			}
			if c.failure.Class != lockstate.FailedForNow {
				return
			}
			w := b.work(code)
			b.begin(w)
			b.end(w, outcome{Ref: "k1", Confirmed: true})
			if got := b.code(code.ID); len(got.Errors) > 0 {
				t.Errorf("after the change: errors %v", got.Errors)
			}
		})
	}
}

// A scheduled code causes no work before its time. Its attempt ends immediately, and the lock is
// not read until then.
func TestTimeBoundCode_ScheduledCausesNoReads(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "smartthings")
	rest := func() {
		w := b.look()
		b.must(b.access.Devices.ScheduleDevice(t.Context(), b.id(), w.Seq, w.Due))
	}
	due := func(what string, want time.Duration) {
		t.Helper()
		var hours float64
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select extract(epoch from due_at - now()) / 3600 from devices where device_id = $1", b.id()).
				Scan(&hours),
		)
		if hours < want.Hours()-0.1 || hours > want.Hours()+0.1 {
			t.Errorf("%s: next look in %.1f h, want %s", what, hours, want)
		}
	}
	stay := func(pin string, in time.Duration) device.Code {
		from := clock.now().Add(in)
		return b.between(pin, from, from.Add(time.Hour))
	}
	rest()
	c := stay("2580", 100*time.Hour)
	due("for the first code", 99*time.Hour)
	if c.Status != device.StatusUnset {
		t.Errorf("status %s", c.Status)
	}
	attempts, _, err := b.access.Devices.ListAttempts(t.Context(), b.p, nil, b.device, domain.Page{Limit: 10})
	b.must(err)
	if len(attempts) != 1 || attempts[0].Status != device.Succeeded {
		t.Errorf("attempts %+v, want one finished", attempts)
	}
	stay("1470", 50*time.Hour)
	due("for one before it", 49*time.Hour)
	stay("3690", 200*time.Hour)
	due("with one after it", 49*time.Hour)
	w := b.look() // unaware of the next code
	stay("9513", 20*time.Hour)
	b.must(b.access.Devices.ScheduleDevice(t.Context(), b.id(), w.Seq, w.Due))
	due("once the look has ended", 0)
	rest()
	due("looked at again", 19*time.Hour)
	clock.pass(19 * time.Hour)
	if w := b.look(); len(w.Codes) != 1 || w.Codes[0].PIN != "9513" {
		t.Errorf("in the hour before its start: %d puts planned", len(w.Codes))
	}
}

// A code whose change was refused repeatedly and is paused still leaves the lock at its end.
func TestTimeBoundCode_EndsDuringBackoff(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"smartthings", "august"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, profile)
			ends := clock.now().Add(3 * time.Hour)
			c := b.between("2580", clock.now(), ends)
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Ref: "k1", Confirmed: true})
			b.update(device.CodeChange{ID: c.ID.String(), Name: new("Friend")})
			clock.to(ends.Add(-time.Minute))
			for range 12 { // each pause is longer than the last
				_, err := b.db.Pool.Exec(t.Context(), "update access_codes set next_attempt_at = null where is_managed")
				b.must(err)
				if w = b.work(c); w.Action != lockstate.Put {
					t.Fatalf("planned action %q", w.Action)
				}
				b.begin(w)
				b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "busy"}})
			}
			if look := b.look(); look.Due == nil || look.Due.After(ends) {
				t.Errorf("end at %s, next look at %v", ends, look.Due)
			}
			clock.to(ends)
			if w = b.work(c); w.Action != lockstate.Delete {
				t.Errorf("after its end: planned action %q", w.Action)
			}
		})
	}
}

// A vendor may list a code with only a start or an end. A change must complete or remove the time
// frame first, because a lock accepts no half of one.
func TestIncompleteTimeFrame_MustBeCompleted(t *testing.T) {
	t.Parallel()
	const starts, ends = "starts_at", "ends_at"
	for name, c := range map[string]struct {
		has     string // on the lock
		change  func(from, to string) device.CodeChange
		refused string // the field that is refused
		whole   bool   // expected afterwards
	}{
		"end, has a start":          {starts, func(_, to string) device.CodeChange { return device.CodeChange{EndsAt: to} }, "", true},
		"start, has an end":         {ends, func(from, _ string) device.CodeChange { return device.CodeChange{StartsAt: from} }, "", true},
		"both":                      {starts, func(from, to string) device.CodeChange { return device.CodeChange{StartsAt: from, EndsAt: to} }, "", true},
		"none":                      {starts, func(string, string) device.CodeChange { return device.CodeChange{Type: "ongoing"} }, "", false},
		"start, has a start":        {starts, func(from, _ string) device.CodeChange { return device.CodeChange{StartsAt: from} }, ends, false},
		"end, has an end":           {ends, func(_, to string) device.CodeChange { return device.CodeChange{EndsAt: to} }, starts, false},
		"name, has a start":         {starts, func(string, string) device.CodeChange { return device.CodeChange{Name: new("Friend")} }, ends, false},
		"PIN, has an end":           {ends, func(string, string) device.CodeChange { return device.CodeChange{PIN: "9988"} }, starts, false},
		"end and name, has a start": {starts, func(_, to string) device.CodeChange { return device.CodeChange{Name: new("Friend"), EndsAt: to} }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			from, to := clock.now().Add(-time.Hour), clock.now().Add(time.Hour)
			f := found("k1", "2580")
			if c.has == starts {
				f.StartsAt = &from
			} else {
				f.EndsAt = &to
			}
			b.read(f)
			code := b.unmanaged()[0]
			if !code.TimeBound() {
				t.Error("a code with an incomplete time frame counts as ongoing")
			}
			_, err := b.access.Devices.ConvertCode(t.Context(), b.p, code.ID.String(), nil)
			b.must(err)
			b.read(f)
			ch := c.change(from.Format(time.RFC3339), to.Format(time.RFC3339))
			ch.ID = code.ID.String()
			a, err := b.access.Devices.UpdateCode(t.Context(), b.p, ch)
			if refused, ok := errors.AsType[*domain.Error](err); c.refused != "" {
				if !ok || refused.Kind != domain.Invalid || refused.Field != c.refused {
					t.Errorf("got %v", err)
				}
				if w := b.work(code); w.Action != lockstate.Nothing {
					t.Errorf("planned action %q", w.Action)
				}
				return
			}
			b.must(err)
			w := b.work(code)
			if a.Status != device.Pending || w.Action != lockstate.Put || (w.StartsAt != nil) != c.whole ||
				(w.EndsAt != nil) != c.whole {
				t.Fatalf("planned action %q, from %v to %v", w.Action, w.StartsAt, w.EndsAt)
			}
			if c.whole && (!w.StartsAt.Equal(from) || !w.EndsAt.Equal(to)) {
				t.Errorf("put from %v to %v", w.StartsAt, w.EndsAt)
			}
		})
	}
}
