package lockstate

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

func TestNextAction(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *time.Time { at := now.Add(d); return &at }
	ref := "r"
	native := capability.Set{NativeSchedule: true}
	managed := func(f func(*Code)) *Code {
		c := &Code{Managed: true, DesiredGen: 1, PreferNativeScheduling: true}
		f(c)
		return c
	}
	listed := capability.Set{ListCodes: true}
	inDoubt := func(asked int, next *time.Time) *Code {
		return managed(func(c *Code) {
			c.RemovingSince, c.WriteGen, c.WriteAt, c.Attempts, c.NextAttemptAt = in(0), 1, in(0), asked, next
		})
	}
	for _, c := range []struct {
		name string
		code *Code
		caps capability.Set
		want Action
		due  *time.Time
	}{
		{"new", managed(func(*Code) {}), capability.Set{}, Put, nil},
		{
			"applied",
			managed(func(c *Code) { c.AppliedGen, c.Ref = 1, ref }),
			capability.Set{},
			Nothing,
			nil,
		},
		{
			"changed since",
			managed(func(c *Code) { c.DesiredGen, c.AppliedGen, c.Ref = 2, 1, ref }),
			capability.Set{},
			Put,
			nil,
		},
		{"refused", managed(func(c *Code) { c.BlockedGen = 1 }), capability.Set{}, Nothing, nil},
		{
			"changed since refused",
			managed(func(c *Code) { c.DesiredGen, c.BlockedGen = 2, 1 }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"accepted",
			managed(func(c *Code) { c.WriteGen, c.WriteAt, c.WriteAccepted = 1, in(-time.Second), true }),
			capability.Set{},
			Await,
			in(500 * time.Millisecond),
		},
		{
			"sent, uncertain",
			managed(func(c *Code) { c.WriteGen, c.WriteAt = 1, in(-time.Second) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"paused",
			managed(func(c *Code) { c.NextAttemptAt = in(time.Minute) }),
			capability.Set{},
			Nothing,
			in(time.Minute),
		},
		{
			"pause over",
			managed(func(c *Code) { c.NextAttemptAt = in(-time.Minute) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"far ahead",
			managed(func(c *Code) { c.StartsAt, c.EndsAt = in(100*time.Hour), in(101*time.Hour) }),
			capability.Set{},
			Nothing,
			in(99 * time.Hour),
		},
		{
			"far ahead, native",
			managed(func(c *Code) { c.StartsAt, c.EndsAt = in(100*time.Hour), in(101*time.Hour) }),
			native,
			Nothing,
			in(28 * time.Hour),
		},
		{
			"an hour ahead",
			managed(func(c *Code) { c.StartsAt, c.EndsAt = in(time.Hour), in(2*time.Hour) }),
			capability.Set{},
			Put,
			nil,
		},
		{
			"three days ahead, native",
			managed(func(c *Code) { c.StartsAt, c.EndsAt = in(72*time.Hour), in(73*time.Hour) }),
			native,
			Put,
			nil,
		},
		{"three days ahead, native not wanted", managed(func(c *Code) {
			c.StartsAt, c.EndsAt, c.PreferNativeScheduling = in(72*time.Hour), in(73*time.Hour), false
		}), native, Nothing, in(71 * time.Hour)},
		{
			"scheduled on the device",
			managed(
				func(c *Code) { c.AppliedGen, c.StartsAt, c.EndsAt = 1, in(time.Hour), in(2*time.Hour) },
			),
			native,
			Nothing,
			in(time.Hour),
		},
		{
			"open until",
			managed(
				func(c *Code) { c.AppliedGen, c.StartsAt, c.EndsAt = 1, in(-time.Hour), in(time.Hour) },
			),
			native,
			Nothing,
			in(time.Hour),
		},
		{
			"removing",
			managed(func(c *Code) { c.RemovingSince, c.Ref = in(0), ref }),
			capability.Set{},
			Delete,
			nil,
		},
		{"removing, accepted", managed(func(c *Code) {
			c.RemovingSince, c.Ref, c.WriteAccepted, c.WriteAt = in(0), ref, true, in(-20*time.Second)
		}), capability.Set{}, Await, in(5 * time.Second)},
		{"removing, paused", managed(func(c *Code) {
			c.RemovingSince, c.Ref, c.NextAttemptAt = in(0), ref, in(time.Second)
		}), capability.Set{}, Nothing, in(time.Second)},
		{"removing what may be on its way", inDoubt(0, nil), listed, Await, in(200 * time.Millisecond)},
		{"removing what may be on its way, unlisted", inDoubt(0, nil), capability.Set{}, Find, nil},
		{"removing what was just not found", inDoubt(1, in(time.Second)), capability.Set{}, Nothing, in(time.Second)},
		{
			"removing what was repeatedly not found",
			inDoubt(maxFindAttempts, in(time.Second)),
			capability.Set{},
			Await,
			in(200 * time.Millisecond),
		},
		{"unmanaged", &Code{DesiredGen: 1, Ref: ref}, capability.Set{}, Nothing, nil},
		{
			"unmanaged, removing",
			&Code{DesiredGen: 1, Ref: ref, RemovingSince: in(0)},
			capability.Set{},
			Delete,
			nil,
		},
	} {
		l := &Lock{Device: Device{Capabilities: c.caps}, Now: now}
		got, due := l.next(c.code, c.code.RemovingSince != nil)
		if got != c.want || !sameTime(due, c.due) {
			t.Errorf("%s: %q until %v, expected %q until %v", c.name, got, due, c.want, c.due)
		}
	}
}

// The code opens now and must not open again for four days.
func TestPostponedCode_LeavesLockWithoutTimeFrames(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c := b.on("2580", "r1")
	a := b.update(c, change{
		StartsAt: new(b.now().Add(100 * time.Hour)),
		EndsAt:   new(b.now().Add(101 * time.Hour)),
	},
	)
	w := b.work(c)
	if w.Action != Delete {
		t.Fatalf("planned action %q", w.Action)
	}
	b.removal(w, true, nil)
	b.read(found("r1", ""))
	b.read()
	b.look()
	if got := b.code(c.ID); got.Status != StatusUnset || got.AppliedGen > 0 ||
		b.attempt(a).Status != Succeeded {
		t.Errorf("status %s, on the device: %v, attempt %s", got.Status, got.AppliedGen > 0, b.attempt(a).Status)
	}
	if slices.Contains(b.events(c.ID), "access_code.deleted_external_to_seam") {
		t.Error("the removal counts as external")
	}
}

// The outcome of the first write is unknown when the time frame is postponed.
func TestPostponedCode_DuringUncertainWrite(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"august", "smartthings"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.update(c, change{
				StartsAt: new(b.now().Add(100 * time.Hour)),
				EndsAt:   new(b.now().Add(101 * time.Hour)),
			},
			)
			b.end(w, Outcome{Ref: "r1"})
			want := map[string]Action{"august": Put, "smartthings": Delete}[profile]
			if w := b.work(c); w.Action != want {
				t.Errorf("planned action %q", w.Action)
			}
		})
	}
}

// A lock with time frames receives its codes three days early; others, an hour early.
func TestTimeBoundCode_IsProgrammedBeforeStart(t *testing.T) {
	t.Parallel()
	for profile, ahead := range map[string]time.Duration{"august": 72 * time.Hour, "smartthings": time.Hour} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			from := b.now().Add(100 * time.Hour)
			c := b.between("2580", from, from.Add(time.Hour))
			if w := b.look(); len(w.Codes) > 0 || w.Due == nil || !w.Due.Equal(from.Add(-ahead)) {
				t.Fatalf("due at %v, want %v", w.Due, from.Add(-ahead))
			}
			b.to(from.Add(-ahead))
			w := b.work(c)
			if native := profile == "august"; w.Action != Put || (w.StartsAt != nil) != native {
				t.Fatalf("planned action %q, from %v", w.Action, w.StartsAt)
			}
			b.begin(w)
			b.end(w, Outcome{Ref: "k1", Confirmed: true})
			if got := b.code(c.ID); got.Status != StatusUnset {
				t.Errorf("before its start: status %s", got.Status)
			}
			b.to(from)
			b.look()
			if got := b.code(c.ID); got.Status != StatusSet {
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
	b := newBed(t, "smartthings")
	c := b.onBetween("2580", b.now(), b.now().Add(time.Hour))
	later, _ := b.create("4711")
	b.pass(time.Hour)
	if w := b.work(c); w.Action != Delete {
		t.Fatalf("planned action %q", w.Action)
	}
	for range 10 {
		b.unreachable(true, true)
		b.pass(10 * time.Minute)
		b.look()
	}
	got := b.code(c.ID)
	if got.Status != StatusRemoving || len(got.Errors)+len(got.Warnings) == 0 {
		t.Errorf("status %s, errors %v, warnings %v", got.Status, got.Errors, got.Warnings)
	}
	late := slices.Index(b.events(c.ID), "access_code.delay_in_removing_from_device")
	if late < 0 || slices.Contains(b.events(c.ID)[late+1:], "access_code.delay_in_removing_from_device") {
		t.Errorf("events %v", b.events(c.ID))
	}
	b.read(found("k1", ""))
	if w := b.work(c); w.Action != Delete {
		t.Errorf("back online: planned action %q", w.Action)
	}
	if w := b.work(later); w.Action != Put || !w.New {
		t.Errorf("planned action %q for the other code", w.Action)
	}
	b.removal(b.work(c), true, nil)
	b.read()
	if slices.ContainsFunc(b.managed(), func(m view) bool { return m.ID == c.ID }) {
		t.Error("the code still exists")
	}
}

// A code whose change was refused repeatedly and is paused still leaves the lock at its end.
func TestTimeBoundCode_EndsDuringBackoff(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"smartthings", "august"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			ends := b.now().Add(3 * time.Hour)
			c := b.onBetween("2580", b.now(), ends)
			b.update(c, change{Name: new("Friend")})
			b.to(ends.Add(-time.Minute))
			for range 12 { // each pause is longer than the last
				b.edit(func(c *Code) { c.NextAttemptAt = nil })
				w := b.work(c)
				if w.Action != Put {
					t.Fatalf("planned action %q", w.Action)
				}
				b.begin(w)
				b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "busy"}})
			}
			if look := b.look(); look.Due == nil || look.Due.After(ends) {
				t.Errorf("end at %s, next look at %v", ends, look.Due)
			}
			b.to(ends)
			if w := b.work(c); w.Action != Delete {
				t.Errorf("after its end: planned action %q", w.Action)
			}
		})
	}
}

// A device that accepts no past start gets the time of the write.
func TestStartAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 6, 1, 12, 0, 0, 0, time.UTC)
	past, future := new(now.Add(-time.Hour)), new(now.Add(time.Hour))
	for _, c := range []struct {
		name string
		op   Operation
		want *time.Time
	}{
		{"no start", Operation{NoPastStart: true}, nil},
		{"past start", Operation{NoPastStart: true, StartsAt: past}, &now},
		{"future start", Operation{NoPastStart: true, StartsAt: future}, future},
		{"past start, allowed", Operation{StartsAt: past}, past},
	} {
		if got := c.op.StartAt(now); !sameTime(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Without a subscription, nothing is written, and requests say so. Codes continue when it is renewed.
func TestSubscriptionMissing(t *testing.T) {
	t.Parallel()
	b := newBed(t, "nuki")
	c := b.on("258036", "k1")
	b.device.SubscriptionMissing = true
	fresh, creation := b.create("471135")
	update := b.update(c, change{PIN: "369036"})
	for _, one := range []view{c, fresh} {
		if w := b.work(one); w.Action != Nothing {
			t.Errorf("planned action %q", w.Action)
		}
	}
	deletion := b.deleteCode(c)
	if w := b.work(c); w.Action != Nothing {
		t.Errorf("planned action %q", w.Action)
	}
	for _, a := range []result{creation, update, deletion} {
		if got := b.attempt(a); got.Status != Failed || got.ErrorType != SubscriptionRequired {
			t.Errorf("attempt %s %s", got.Status, got.ErrorType)
		}
	}
	b.device.SubscriptionMissing = false
	if w := b.work(c); w.Action != Delete {
		t.Errorf("renewed: planned action %q", w.Action)
	}
	if w := b.work(fresh); w.Action != Put {
		t.Errorf("renewed: planned action %q", w.Action)
	}
}
