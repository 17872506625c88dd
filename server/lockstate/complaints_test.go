package lockstate

import (
	"slices"
	"testing"
	"time"
)

// TestComplaints covers common complaints about similar programs, each
// under its name. The test sets what is on the lock. Complaints that need a real gateway are tested
// with its adapter.
func TestComplaints(t *testing.T) {
	t.Parallel()
	for complaint, test := range map[string]func(b *bed){
		"infinite loop on a duplicate PIN": func(b *bed) {
			b.read(found("k1", "2580"))
			c, _ := b.create("9988")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: "k1"}})
			for range 24 {
				b.read(found("k1", "2580"))
				b.quiet(c, time.Hour)
			}
			if got := b.code(c.ID); !got.hasError("duplicate_code_on_device") ||
				got.Error.Other != b.unmanaged()[0].ID {
				b.Errorf("errors %v", got.Errors)
			}
		},
		"infinite loop on a duplicate PIN that shows nowhere": func(b *bed) { // such as the master code
			c, a := b.create("9988")
			tries := 0
			for range 24 {
				b.read(found("k1", "2580"))
				if w := b.work(c); w.Action == Put {
					tries++
					b.begin(w)
					b.end(w, Outcome{Failure: &Failure{Class: FailedDuplicate, Message: "taken"}})
				}
				b.pass(time.Hour)
			}
			if got := b.code(c.ID); tries == 0 || tries > 3 || !got.hasError("duplicate_code_on_device") ||
				b.attempt(a).Status != Failed {
				b.Errorf("%d tries, errors %v", tries, got.Errors)
			}
		},
		"already exists after it was deleted": func(b *bed) {
			one := b.on("2580", "k1")
			b.deleteCode(one)
			b.removal(b.work(one), true, nil)
			b.read()
			two, a := b.create("2580")
			w := b.work(two)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: "k1"}})
			if got := b.attempt(a); got.Status != Pending {
				b.Errorf("attempt status %s", got.Status)
			}
			b.pass(time.Minute)
			w = b.work(two)
			if w.Action != Put {
				b.Fatalf("planned action %q", w.Action)
			}
			b.begin(w)
			b.end(w, Outcome{Ref: "k2", Confirmed: true})
			if got := b.code(two.ID); got.Status != StatusSet || len(got.Errors) > 0 || b.attempt(a).Status != Succeeded {
				b.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		},
		"an idle lock is read all the time, which costs its battery": func(b *bed) {
			b.on("2580", "k1")
			b.pass(time.Hour)
			b.read(found("k1", ""), found("k2", ""))
			for range 24 {
				b.pass(time.Hour)
				if w := b.look(); w.ReadNeeded || w.Due != nil || len(w.Codes) > 0 {
					b.Fatalf("read needed %v, next look at %v", w.ReadNeeded, w.Due)
				}
			}
		},
		"full lock: a new code silently gets nowhere": func(b *bed) {
			c, a := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "no room"}})
			const full = "no_space_for_access_code_on_device"
			if got := b.code(c.ID); !got.hasError(full) || b.attempt(a).ErrorType != full {
				b.Errorf("errors %v, attempt %s", got.Errors, b.attempt(a).ErrorType)
			}
			b.read(found("k1", "1111"))
			b.quiet(c, 24*time.Hour)
			b.read() // a slot is free again
			b.pass(time.Minute)
			b.read()
			if w := b.work(c); w.Action != Put {
				b.Errorf("planned action %q with a free slot", w.Action)
			}
			if got := b.code(c.ID); got.Status != StatusSetting {
				b.Errorf("status %s with a free slot", got.Status)
			}
		},
		"infinite loop on a masked PIN": func(b *bed) {
			c := b.on("2580", "k1")
			for range 3 {
				b.pass(time.Hour)
				b.read(found("k1", ""))
			}
			b.quiet(c, time.Hour)
			if got := b.events(c.ID); slices.Contains(got, "access_code.modified_external_to_seam") {
				b.Errorf("a hidden PIN counts as different: %v", got)
			}
		},
		"occupied but unreadable slot is rewritten": func(b *bed) {
			b.read(found("k1", ""))
			u := b.unmanaged()[0]
			b.read(found("k1", ""))
			if w := b.work(u); w.Action != Nothing || b.unmanaged()[0].ID != u.ID {
				b.Errorf("planned action %q for an unmanaged code", w.Action)
			}
			ours, a := b.create("2580")
			w := b.work(ours)
			if w.Ref != "" {
				b.Errorf("our code is put at %q", w.Ref)
			}
			b.begin(w)
			b.end(w, Outcome{Ref: "k2"})
			b.read(found("k1", ""), found("k2", ""))
			b.quiet(ours, time.Hour)
			if got := b.code(ours.ID); got.Status != StatusSet || b.attempt(a).Status != Succeeded {
				b.Errorf("status %s", got.Status)
			}
		},
		"permanent error is taken for offline": func(b *bed) {
			c, a := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "beyond the lock's capacity"}})
			if got := b.attempt(a); got.Status != Failed {
				b.Errorf("attempt status %s", got.Status)
			}
			b.quiet(c, 24*time.Hour)
		},
		"unknown error right after boot is taken for permanent": func(b *bed) {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "?"}})
			b.pass(time.Minute)
			if w := b.work(c); w.Action != Put {
				b.Errorf("planned action %q", w.Action)
			}
		},
		"list still empty after a code was added": func(b *bed) {
			c := b.on("2580", "k1")
			b.pass(time.Second)
			b.read()
			b.quiet(c, 0)
			b.pass(time.Second)
			b.read(found("k1", "2580"))
			if got := b.code(c.ID); got.Status != StatusSet {
				b.Errorf("status %s", got.Status)
			}
		},
		"upstream list briefly empty wipes all codes": func(b *bed) {
			mine := b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			b.pass(time.Hour)
			before := b.unmanaged()[0].ID
			b.read()
			b.quiet(mine, 0)
			if again := b.look().Due; again == nil || again.Sub(b.now()) > time.Minute {
				b.Errorf("next read at %v", again)
			}
			b.pass(5 * time.Second)
			b.read()
			b.quiet(mine, 0)
			b.pass(5 * time.Second)
			b.read(found("k1", "2580"), found("k2", "4711"))
			if got := b.unmanaged(); len(got) != 1 || got[0].ID != before {
				b.Errorf("the unmanaged code was lost: %v", got)
			}
			if got := b.events(mine.ID); slices.Contains(got, "access_code.deleted_external_to_seam") {
				b.Errorf("events %v", got)
			}
			b.read() // now they are really gone
			b.pass(time.Minute)
			b.read()
			if w := b.work(mine); w.Action != Put || len(b.unmanaged()) != 0 {
				b.Errorf("a lock that stays empty does not count: %q, %d", w.Action, len(b.unmanaged()))
			}
		},
		"upstream list empty before and after an outage": func(b *bed) {
			mine := b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			b.pass(time.Hour)
			b.read()
			b.unreachable(false, true)
			b.pass(time.Hour)
			b.read()
			b.quiet(mine, 0)
			if got := b.unmanaged(); len(got) != 1 {
				b.Errorf("the unmanaged code was lost: %v", got)
			}
		},
		"upstream list empty before and after the server stood still": func(b *bed) {
			mine := b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			b.pass(time.Hour)
			b.read()
			b.pass(time.Hour)
			b.read()
			b.quiet(mine, 0)
			if got := b.unmanaged(); len(got) != 1 {
				b.Errorf("the unmanaged code was lost: %v", got)
			}
		},
		"list stays empty while writes fail": func(b *bed) {
			b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			b.pass(time.Hour)
			b.read()
			b.unreachable(false, false)
			b.pass(time.Minute)
			b.read()
			if got := b.unmanaged(); len(got) != 0 {
				b.Errorf("a lock that stays empty does not count: %v", got)
			}
		},
		"codes vanish seconds after they were set": func(b *bed) {
			c := b.on("2580", "k1")
			b.read(found("k0", "1111"), found("k1", "2580"))
			b.pass(time.Minute)
			b.read(found("k0", "1111"))
			if w := b.work(c); w.Action != Put {
				b.Errorf("planned action %q", w.Action)
			}
			if got := b.code(c.ID); got.Status != StatusSetting {
				b.Errorf("status %s", got.Status)
			}
		},
		"stuck in setting forever": func(b *bed) {
			c, a := b.create("2580")
			for range 4 {
				w := b.work(c)
				b.begin(w)
				b.end(w, Outcome{Ref: "k1"})
				b.read()
				b.pass(2 * time.Hour)
				b.look()
				b.pass(time.Hour)
			}
			got := b.code(c.ID)
			if !got.hasError("failed_to_set_on_device") || b.attempt(a).Status != Failed {
				b.Errorf("errors %v, attempt %s", got.Errors, b.attempt(a).Status)
			}
		},
		"stuck in removing forever": func(b *bed) {
			c := b.on("2580", "k1")
			b.deleteCode(c)
			for range 4 {
				b.removal(b.work(c), false, nil)
				b.read(found("k1", "2580"))
				b.pass(2 * time.Hour)
				b.look()
				b.pass(time.Hour)
			}
			if got := b.code(c.ID); !got.hasError("failed_to_remove_from_device") {
				b.Errorf("errors %v", got.Errors)
			}
			b.removal(b.work(c), true, nil)
			b.read()
			if len(b.managed()) > 0 {
				b.Error("the code still exists although the lock is empty")
			}
		},
		"guest locked out because codes were moved between slots": func(b *bed) {
			one := b.on("2580", "k1")
			b.deleteCode(one)
			two, _ := b.create("2580")
			if w := b.work(two); w.Action == Put {
				b.Error("the PIN is put while another slot has it")
			}
			b.removal(b.work(one), true, nil)
			b.read()
			if w := b.work(two); w.Action != Put {
				b.Errorf("planned action %q", w.Action)
			}
		},
		"change of the dates is not propagated": func(b *bed) {
			c := b.on("2580", "k1")
			from, to := b.now().Add(time.Hour), b.now().Add(2*time.Hour)
			b.update(c, change{StartsAt: new(from), EndsAt: new(to)})
			if w := b.work(c); w.Action != Put || w.Ref != "k1" || w.EndsAt == nil || !w.EndsAt.Equal(to) {
				b.Errorf("planned action %q of %q, until %v", w.Action, w.Ref, w.EndsAt)
			}
		},
		"two controllers fighting": func(b *bed) { fight(b, found("k1", "9999")) },
		"set and clear churn": func(b *bed) {
			f := found("k1", "2580") // the device has an unwanted time frame
			from := b.now().Add(-time.Hour)
			f.StartsAt, f.EndsAt = &from, nil
			fight(b, f)
		},
	} {
		t.Run(complaint, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.timeouts.ReadLag = 2 * time.Second
			test(b)
		})
	}
}

// fight reports a drifted code after each repair.
func fight(b *bed, otherwise Found) {
	b.Helper()
	c := b.on("2580", "k1")
	writes := 0
	end := b.now().Add(24 * time.Hour)
	for b.now().Before(end) {
		b.pass(10 * time.Second)
		b.read(otherwise)
		w := b.work(c)
		if w.Action != Put {
			due := b.look().Due
			if due == nil {
				b.Fatal("the code was given up")
			}
			b.to(*due)
			continue
		}
		b.begin(w)
		b.end(w, Outcome{Ref: "k1", Confirmed: true})
		writes++
	}
	if writes < 10 || writes > 120 {
		b.Errorf("%d repairs in a day", writes)
	}
	b.pass(10 * time.Second) // longer than the list may lag
	b.read(otherwise)
	if got := b.code(c.ID); !got.hasError("conflicting_external_modification") {
		b.Errorf("errors %v", got.Errors)
	}
}
