package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// TestComplaints covers common complaints about similar programs, each
// under its name. The test sets what is on the lock. Complaints that need a real gateway are tested
// with its adapter.
func TestComplaints(t *testing.T) {
	t.Parallel()
	for complaint, test := range map[string]func(b byHand, clock *testClock){
		"infinite loop on a duplicate PIN": func(b byHand, clock *testClock) {
			b.read(found("k1", "2580"))
			c, _ := b.create("9988")
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedDuplicate, Message: "taken", ConflictRef: "k1"}})
			for range 24 {
				b.read(found("k1", "2580"))
				b.quiet(c, clock, time.Hour)
			}
			if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "duplicate_code_on_device" || got.Errors[0].Other != b.unmanaged()[0].ID {
				b.Errorf("errors %v", got.Errors)
			}
		},
		"infinite loop on a duplicate PIN that shows nowhere": func(b byHand, clock *testClock) { // such as the master code
			c, a := b.create("9988")
			tries := 0
			for range 24 {
				b.read(found("k1", "2580"))
				if w := b.work(c); w.Action == lockstate.Put {
					tries++
					b.begin(w)
					b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedDuplicate, Message: "taken"}})
				}
				clock.pass(time.Hour)
			}
			if got := b.code(c.ID); tries == 0 || tries > 3 || len(got.Errors) != 1 || got.Errors[0].Code != "duplicate_code_on_device" || b.attempt(a).Status != device.Failed {
				b.Errorf("%d tries, errors %v", tries, got.Errors)
			}
		},
		"already exists after it was deleted": func(b byHand, clock *testClock) {
			one := b.on("2580", "k1")
			b.deleteCode(one)
			b.must(b.removal(b.work(one), true, nil))
			b.read()
			two, a := b.create("2580")
			w := b.work(two)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedDuplicate, Message: "taken", ConflictRef: "k1"}})
			if got := b.attempt(a); got.Status != device.Pending {
				b.Errorf("attempt status %s", got.Status)
			}
			clock.pass(time.Minute)
			w = b.work(two)
			if w.Action != lockstate.Put {
				b.Fatalf("planned action %q", w.Action)
			}
			b.begin(w)
			b.end(w, outcome{Ref: "k2", Confirmed: true})
			if got := b.code(two.ID); got.Status != device.StatusSet || len(got.Errors) > 0 || b.attempt(a).Status != device.Succeeded {
				b.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		},
		"an idle lock is read all the time, which costs its battery": func(b byHand, clock *testClock) {
			b.on("2580", "k1")
			clock.pass(time.Hour)
			b.read(found("k1", ""), found("k2", ""))
			for range 24 {
				clock.pass(time.Hour)
				if w := b.look(); w.ReadNeeded || w.Due != nil || len(w.Codes) > 0 {
					b.Fatalf("read needed %v, next look at %v", w.ReadNeeded, w.Due)
				}
			}
		},
		"full lock: a new code silently gets nowhere": func(b byHand, clock *testClock) {
			c, a := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedFull, Message: "no room"}})
			if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "no_space_for_access_code_on_device" || b.attempt(a).ErrorType != "no_space_for_access_code_on_device" {
				b.Errorf("errors %v, attempt %s", got.Errors, b.attempt(a).ErrorType)
			}
			b.read(found("k1", "1111"))
			b.quiet(c, clock, 24*time.Hour)
			b.read() // a slot is free again
			clock.pass(time.Minute)
			b.read()
			if w := b.work(c); w.Action != lockstate.Put {
				b.Errorf("planned action %q with a free slot", w.Action)
			}
		},
		"infinite loop on a masked PIN": func(b byHand, clock *testClock) {
			c := b.on("2580", "k1")
			for range 3 {
				clock.pass(time.Hour)
				b.read(found("k1", ""))
			}
			b.quiet(c, clock, time.Hour)
			if got := b.events(c.ID); slices.Contains(got, "access_code.modified_external_to_seam") {
				b.Errorf("a hidden PIN counts as different: %v", got)
			}
		},
		"occupied but unreadable slot is rewritten": func(b byHand, clock *testClock) {
			b.read(found("k1", ""))
			u := b.unmanaged()[0]
			b.read(found("k1", ""))
			if w := b.work(u); w.Action != lockstate.Nothing || b.unmanaged()[0].ID != u.ID {
				b.Errorf("planned action %q for an unmanaged code", w.Action)
			}
			ours, a := b.create("2580")
			w := b.work(ours)
			if w.Ref != "" {
				b.Errorf("our code is put at %q", w.Ref)
			}
			b.begin(w)
			b.end(w, outcome{Ref: "k2"})
			b.read(found("k1", ""), found("k2", ""))
			b.quiet(ours, clock, time.Hour)
			if got := b.code(ours.ID); got.Status != device.StatusSet || b.attempt(a).Status != device.Succeeded {
				b.Errorf("status %s", got.Status)
			}
		},
		"permanent error is taken for offline": func(b byHand, clock *testClock) {
			c, a := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "beyond the lock's capacity"}})
			if got := b.attempt(a); got.Status != device.Failed {
				b.Errorf("attempt status %s", got.Status)
			}
			b.quiet(c, clock, 24*time.Hour)
		},
		"unknown error right after boot is taken for permanent": func(b byHand, clock *testClock) {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "?"}})
			clock.pass(time.Minute)
			if w := b.work(c); w.Action != lockstate.Put {
				b.Errorf("planned action %q", w.Action)
			}
		},
		"list still empty after a code was added": func(b byHand, clock *testClock) {
			c := b.on("2580", "k1")
			clock.pass(time.Second)
			b.read()
			b.quiet(c, clock, 0)
			clock.pass(time.Second)
			b.read(found("k1", "2580"))
			if got := b.code(c.ID); got.Status != device.StatusSet {
				b.Errorf("status %s", got.Status)
			}
		},
		"upstream list briefly empty wipes all codes": func(b byHand, clock *testClock) {
			mine := b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			clock.pass(time.Hour)
			before := b.unmanaged()[0].ID
			b.read()
			b.quiet(mine, clock, 0)
			if again := b.look().Due; again == nil || again.Sub(clock.now()) > time.Minute {
				b.Errorf("next read at %v", again)
			}
			clock.pass(5 * time.Second)
			b.read()
			b.quiet(mine, clock, 0)
			clock.pass(5 * time.Second)
			b.read(found("k1", "2580"), found("k2", "4711"))
			if got := b.unmanaged(); len(got) != 1 || got[0].ID != before {
				b.Errorf("the unmanaged code was lost: %v", got)
			}
			if got := b.events(mine.ID); slices.Contains(got, "access_code.deleted_external_to_seam") {
				b.Errorf("events %v", got)
			}
			b.read() // now they are really gone
			clock.pass(time.Minute)
			b.read()
			if w := b.work(mine); w.Action != lockstate.Put || len(b.unmanaged()) != 0 {
				b.Errorf("a lock that stays empty does not count: %q, %d", w.Action, len(b.unmanaged()))
			}
		},
		"upstream list empty before and after an outage": func(b byHand, clock *testClock) {
			mine := b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			clock.pass(time.Hour)
			b.read()
			_, _, err := b.access.Devices.RecordUnreachable(b.Context(), holder{}, b.id(), false, true)
			b.must(err)
			clock.pass(time.Hour)
			b.read()
			b.quiet(mine, clock, 0)
			if got := b.unmanaged(); len(got) != 1 {
				b.Errorf("the unmanaged code was lost: %v", got)
			}
		},
		"upstream list empty before and after the server stood still": func(b byHand, clock *testClock) {
			mine := b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			clock.pass(time.Hour)
			b.read()
			clock.pass(time.Hour)
			b.read()
			b.quiet(mine, clock, 0)
			if got := b.unmanaged(); len(got) != 1 {
				b.Errorf("the unmanaged code was lost: %v", got)
			}
		},
		"list stays empty while writes fail": func(b byHand, clock *testClock) {
			b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			clock.pass(time.Hour)
			b.read()
			_, _, err := b.access.Devices.RecordUnreachable(b.Context(), holder{}, b.id(), false, false)
			b.must(err)
			clock.pass(time.Minute)
			b.read()
			if got := b.unmanaged(); len(got) != 0 {
				b.Errorf("a lock that stays empty does not count: %v", got)
			}
		},
		"codes vanish seconds after they were set": func(b byHand, clock *testClock) {
			c := b.on("2580", "k1")
			b.read(found("k0", "1111"), found("k1", "2580"))
			clock.pass(time.Minute)
			b.read(found("k0", "1111"))
			if w := b.work(c); w.Action != lockstate.Put {
				b.Errorf("planned action %q", w.Action)
			}
			if got := b.code(c.ID); got.Status != device.StatusSetting {
				b.Errorf("status %s", got.Status)
			}
		},
		"stuck in setting forever": func(b byHand, clock *testClock) {
			c, a := b.create("2580")
			for range 4 {
				w := b.work(c)
				b.begin(w)
				b.end(w, outcome{Ref: "k1"})
				b.read()
				clock.pass(2 * time.Hour)
				// By the database's clock, too.
				_, err := b.db.Pool.Exec(b.Context(), "update action_attempts set deadline_at = deadline_at - interval '2 hours'")
				b.must(err)
				b.look()
				clock.pass(time.Hour)
			}
			got := b.code(c.ID)
			if len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_set_on_device" || b.attempt(a).Status != device.Failed {
				b.Errorf("errors %v, attempt %s", got.Errors, b.attempt(a).Status)
			}
		},
		"stuck in removing forever": func(b byHand, clock *testClock) {
			c := b.on("2580", "k1")
			b.deleteCode(c)
			for range 4 {
				b.must(b.removal(b.work(c), false, nil))
				b.read(found("k1", "2580"))
				clock.pass(2 * time.Hour)
				b.look()
				clock.pass(time.Hour)
			}
			if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_remove_from_device" {
				b.Errorf("errors %v", got.Errors)
			}
			b.must(b.removal(b.work(c), true, nil))
			b.read()
			if len(b.managed()) > 0 {
				b.Error("the code still exists although the lock is empty")
			}
		},
		"guest locked out because codes were moved between slots": func(b byHand, clock *testClock) {
			one := b.on("2580", "k1")
			b.deleteCode(one)
			two, _ := b.create("2580")
			if w := b.work(two); w.Action == lockstate.Put {
				b.Error("the PIN is put while another slot has it")
			}
			b.must(b.removal(b.work(one), true, nil))
			b.read()
			if w := b.work(two); w.Action != lockstate.Put {
				b.Errorf("planned action %q", w.Action)
			}
		},
		"change of the dates is not propagated": func(b byHand, clock *testClock) {
			c := b.on("2580", "k1")
			from, to := clock.now().Add(time.Hour), clock.now().Add(2*time.Hour)
			b.update(device.CodeChange{ID: c.ID.String(), StartsAt: from.Format(time.RFC3339), EndsAt: to.Format(time.RFC3339)})
			if w := b.work(c); w.Action != lockstate.Put || w.Ref != "k1" || w.EndsAt == nil || !w.EndsAt.Equal(to.Truncate(time.Second)) {
				b.Errorf("planned action %q of %q, until %v", w.Action, w.Ref, w.EndsAt)
			}
		},
		"two controllers fighting": func(b byHand, clock *testClock) { fight(b, clock, found("k1", "9999")) },
		"set and clear churn": func(b byHand, clock *testClock) {
			f := found("k1", "2580") // the device has an unwanted time frame
			from := clock.now().Add(-time.Hour)
			f.StartsAt, f.EndsAt = &from, nil
			fight(b, clock, f)
		},
	} {
		t.Run(complaint, func(t *testing.T) {
			t.Parallel()
			clock := &testClock{at: time.Now()}
			b := hand(t, options{profile: "august", access: access.Options{Now: clock.now, ReadLag: 2 * time.Second}})
			test(b, clock)
		})
	}
}

// fight reports a drifted code after each repair.
func fight(b byHand, clock *testClock, otherwise shown) {
	b.Helper()
	c := b.on("2580", "k1")
	writes := 0
	end := clock.now().Add(24 * time.Hour)
	for clock.now().Before(end) {
		clock.pass(10 * time.Second)
		b.read(otherwise)
		w := b.work(c)
		if w.Action != lockstate.Put {
			due := b.look().Due
			if due == nil {
				b.Fatal("the code was given up")
			}
			clock.to(*due)
			continue
		}
		b.begin(w)
		b.end(w, outcome{Ref: "k1", Confirmed: true})
		writes++
	}
	if writes < 10 || writes > 120 {
		b.Errorf("%d repairs in a day", writes)
	}
	clock.pass(10 * time.Second) // longer than the list may lag
	b.read(otherwise)
	if got := b.code(c.ID); len(got.Errors) != 1 || got.Errors[0].Code != "conflicting_external_modification" {
		b.Errorf("errors %v", got.Errors)
	}
}

// quiet asserts that no write is planned for a code, now and for a while.
func (b byHand) quiet(c device.Code, clock *testClock, period time.Duration) {
	b.Helper()
	for range 3 {
		if w := b.work(c); w.Action == lockstate.Put || w.Action == lockstate.Delete {
			b.Errorf("planned action %q", w.Action)
		}
		clock.pass(period / 3)
	}
}

// testClock is a clock that the test sets.
type testClock struct{ at time.Time }

func (c *testClock) now() time.Time { return c.at }

func (c *testClock) pass(d time.Duration) { c.at = c.at.Add(d) }

func (c *testClock) to(t time.Time) {
	if t.After(c.at) {
		c.at = t
	}
}
