package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// Changes of a code are refused if too many wait for an unreachable lock, because each look
// processes all of them. A removal is still possible.
func TestPendingChanges_AreBounded(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	c := b.set()
	found := b.unmanaged()[0].ID.String()
	b.control("POST", "offline", nil)
	b.until("the lock is offline", func() bool {
		d, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
		b.must(err)
		return !d.Online
	})
	update := func(i int) error {
		_, err := b.access.Devices.UpdateCode(t.Context(), b.p,
			device.CodeChange{ID: c.ID.String(), PIN: fmt.Sprint(500000 + i), EvenIfOffline: true})
		return err
	}
	convert := func(int) error { _, err := b.access.Devices.ConvertCode(t.Context(), b.p, found, nil); return err }
	for what, ask := range map[string]func(int) error{"changes": update, "conversions": convert} {
		for i := range 20 {
			b.must(ask(i))
		}
		var e *domain.Error
		if err := ask(20); !errors.As(err, &e) || e.Kind != domain.TooMany || e.Type != "too_many_requests" {
			t.Errorf("with 20 pending %s: %v", what, err)
		}
	}
	removals := map[device.Attempt]int{}
	for range 30 {
		a, err := b.access.Devices.DeleteCode(t.Context(), b.p, c.ID.String(), "")
		b.must(err)
		removals[a]++
	}
	if len(removals) != 20 {
		t.Errorf("%d removal attempts", len(removals))
	}
	b.control("POST", "online", nil)
	for a := range removals {
		b.succeeded(a)
	}
	if b.onLock("500019") || b.onLock("2580") {
		t.Error("the code is still on the lock")
	}
}

// A client that missed the end of a change requests it again and gets the same result.
func TestRepeatedChange_EndsLikeFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		becomes outcome
		want    device.AttemptStatus
	}{
		"taken":   {outcome{Ref: "k1", Confirmed: true}, device.Succeeded},
		"refused": {outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no such name"}}, device.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			code := b.on("2580", "k1")
			change := device.CodeChange{ID: code.ID.String(), Name: new("Friend")}
			first, again := b.update(change), b.update(change)
			if again.Status != device.Pending {
				t.Errorf("before the lock has it: second attempt %s", again.Status)
			}
			w := b.work(code)
			b.begin(w)
			b.end(w, c.becomes)
			for _, a := range []device.Attempt{first, again} {
				if got := b.attempt(a); got.Status != c.want {
					t.Errorf("afterwards: attempt %s", got.Status)
				}
			}
			if got := b.told("access_code.changed"); len(got) != 1 {
				t.Errorf("%d events about the request", len(got))
			}
		})
	}
}

// A permanently refused change is tried once more on a new request.
func TestRepeatedChange_RefusedIsRetried(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]func(byHand) (device.Code, device.CodeChange){
		"a new one": func(b byHand) (device.Code, device.CodeChange) {
			c, _ := b.create("2580")
			return c, device.CodeChange{ID: c.ID.String(), PIN: "2580"}
		},
		"a change": func(b byHand) (device.Code, device.CodeChange) {
			c := b.on("1470", "k1")
			change := device.CodeChange{ID: c.ID.String(), PIN: "2580"}
			b.update(change)
			return c, change
		},
		"one that was deleted at the lock": func(b byHand) (device.Code, device.CodeChange) {
			c := b.on("1470", "k1")
			b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
			b.read(found("k0", "1111"))
			change := device.CodeChange{ID: c.ID.String(), PIN: "2580"}
			b.update(change)
			if got := b.code(c.ID); got.Status != device.StatusSetting || len(got.Warnings) > 0 {
				b.Errorf("requested again: status %s, warnings %v", got.Status, got.Warnings)
			}
			return c, change
		},
		"one that was disabled at the lock, refused to change, and deleted there": func(b byHand) (device.Code, device.CodeChange) {
			c := b.on("1470", "k1")
			b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
			b.read(disabled("1470"))
			change := device.CodeChange{ID: c.ID.String(), PIN: "2580"}
			b.update(change)
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no such PIN"}})
			b.read(found("k0", "1111"))
			b.update(change)
			return c, change
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &testClock{at: time.Now()}
			b := hand(t, options{profile: "august", access: access.Options{Now: clock.now, ReadLag: time.Nanosecond}})
			c, change := code(b)
			refuse := func() {
				t.Helper()
				w := b.work(c)
				if w.Action != lockstate.Put {
					t.Fatalf("planned action %q", w.Action)
				}
				b.begin(w)
				b.end(w,
					outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no such PIN"}})
				clock.pass(time.Minute)
			}
			refuse()
			b.quiet(c, clock, time.Hour)
			told := len(b.told("access_code.changed"))
			a := b.update(change)
			if a.Status != device.Pending {
				t.Fatalf("errors %v, attempt %s", b.code(c.ID).Errors, a.Status)
			}
			refuse()
			if got := b.attempt(a); got.Status != device.Failed || len(b.code(c.ID).Errors) != 1 {
				t.Errorf("refused again: attempt %s, errors %v", got.Status, b.code(c.ID).Errors)
			}
			a = b.update(change)
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Ref: "k1", Confirmed: true})
			if got := b.code(c.ID); b.attempt(a).Status != device.Succeeded || got.Status != device.StatusSet ||
				len(got.Errors) > 0 {
				t.Errorf("accepted: status %s, errors %v", got.Status, got.Errors)
			}
			if got := len(b.told("access_code.changed")); got != told {
				t.Error("an event announces an empty change")
			}
		})
	}
}

// A change without an effect on the lock succeeds immediately.
func TestEmptyChange_SucceedsImmediately(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]func(byHand, *testClock) (device.Code, device.CodeChange){
		"set": func(b byHand, _ *testClock) (device.Code, device.CodeChange) {
			return b.on("2580", "k1"), device.CodeChange{PIN: "2580"}
		},
		"before its time": func(b byHand, clock *testClock) (device.Code, device.CodeChange) {
			return b.between("2580", clock.now().Add(100*time.Hour), clock.now().Add(101*time.Hour)), device.CodeChange{PIN: "2580"}
		},
		"off, which is allowed": func(b byHand, clock *testClock) (device.Code, device.CodeChange) {
			c := b.on("2580", "k1")
			b.update(device.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: new(true)})
			clock.pass(time.Hour)
			b.read(found("k0", "1111"))
			return c, device.CodeChange{PIN: "2580"}
		},
		"refused, and only what may be done at the lock is changed": func(b byHand, _ *testClock) (device.Code, device.CodeChange) {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no such PIN"}})
			return c, device.CodeChange{ExternalModificationAllowed: new(true)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			c, change := code(b, clock)
			change.ID = c.ID.String()
			before := b.code(c.ID)
			if a := b.update(change); a.Status != device.Succeeded {
				t.Errorf("attempt %s", a.Status)
			}
			if w := b.work(c); w.Action != lockstate.Nothing {
				t.Errorf("planned action %q", w.Action)
			}
			if got := b.code(c.ID); got.Status != before.Status ||
				!slices.EqualFunc(got.Errors, before.Errors,
					func(a, b domain.Problem) bool { return a.Code == b.Code }) {
				t.Errorf("before: status %s, errors %v; after: status %s, errors %v", before.Status, before.Errors,
					got.Status, got.Errors)
			}
		})
	}
}

// A write refused because of other codes on the lock is retried when they change. Only the first
// refusal emits an event.
func TestRefusal_IsAnnouncedOncePerRequest(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	b.read(found("k1", "1010"))
	c, _ := b.create("2580")
	refuse := func() {
		t.Helper()
		w := b.work(c)
		if w.Action != lockstate.Put {
			t.Fatalf("planned action %q", w.Action)
		}
		b.begin(w)
		b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedFull, Message: "the lock is full."}})
		clock.pass(time.Minute)
	}
	refuse()
	for _, pin := range []string{"1111", "2222", "3333"} {
		b.read(found("k1", pin))
		refuse()
	}
	const failed = "access_code.failed_to_set_on_device"
	if got := b.told(failed); len(got) != 1 {
		t.Errorf("%d events for the same refusal", len(got))
	}
	b.update(device.CodeChange{ID: c.ID.String(), Name: new("Friend")})
	refuse()
	if got := b.told(failed); len(got) != 2 {
		t.Errorf("%d events after another request", len(got))
	}
}

func TestFailure_IsAnnouncedOncePerRequest(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	c := b.on("2580", "k1")
	var want []string
	for _, name := range []string{"Friend", "Guest"} {
		b.update(device.CodeChange{ID: c.ID.String(), Name: &name})
		for range 6 {
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "busy."}})
			clock.pass(time.Hour)
		}
		want = append(want, "access_code.failed_to_update")
		if got := b.told("access_code.failed_to_update"); !slices.Equal(got, want) {
			t.Errorf("events %v", got)
		}
		if got := b.code(c.ID).Errors; len(got) != 1 || got[0].Code != "failed_to_update" {
			t.Errorf("errors %v", got)
		}
	}
}

const (
	delayInSetting = "delay_in_setting_on_device"
	delayTold      = "access_code." + delayInSetting
)

func warnings(c device.Code) (codes []string) {
	for _, w := range c.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

// delayed returns a new code that its lock has not accepted for a while. The delay is announced
// once.
func (b byHand) delayed(clock *testClock) device.Code {
	b.Helper()
	c, _ := b.create("2580")
	b.failing(c, clock)
	if got := b.code(c.ID); !slices.Equal(warnings(got), []string{delayInSetting}) || len(b.told(delayTold)) != 1 {
		b.Fatalf("late: warnings %v, %d events", got.Warnings, len(b.told(delayTold)))
	}
	return c
}

// failing makes the lock busy until the delay is announced.
func (b byHand) failing(c device.Code, clock *testClock) {
	b.Helper()
	for range 4 {
		if w := b.work(c); w.Action == lockstate.Put {
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedForNow, Message: "busy."}})
		}
		clock.pass(5 * time.Minute)
	}
	b.look()
}

// The warning ends with the delay, whatever its end.
func TestDelay_WarningEndsWithDelay(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(byHand, device.Code, *testClock){
		"refused": func(b byHand, c device.Code, clock *testClock) {
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no such PIN"}})
			b.look()
		},
		"changed, nothing late yet": func(b byHand, c device.Code, _ *testClock) {
			b.update(device.CodeChange{ID: c.ID.String(), Name: new("Friend")})
		},
		"moved far ahead": func(b byHand, c device.Code, clock *testClock) {
			from := clock.now().Add(100 * time.Hour)
			b.update(device.CodeChange{ID: c.ID.String(), StartsAt: from.Format(time.RFC3339), EndsAt: from.Add(time.Hour).Format(time.RFC3339)})
			b.read()
			b.look()
		},
		"being removed, nothing late yet": func(b byHand, c device.Code, clock *testClock) {
			b.deleteCode(c)
			b.look()
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "smartthings")
			c := b.delayed(clock)
			end(b, c, clock)
			if got := warnings(b.code(c.ID)); slices.Contains(got, delayInSetting) {
				t.Errorf("warnings %v", got)
			}
			if got := b.told(delayTold); len(got) != 1 {
				t.Errorf("%d events", len(got))
			}
		})
	}
}

// Each delay is announced once.
func TestDelay_EachIsAnnounced(t *testing.T) {
	t.Parallel()
	for what, again := range map[string]func(byHand, device.Code, *testClock){
		"asked for again": func(b byHand, c device.Code, _ *testClock) {
			b.update(device.CodeChange{ID: c.ID.String(), Name: new("Friend")})
		},
		"changed at the lock while a change was late": func(b byHand, c device.Code, clock *testClock) {
			w := b.work(c)
			b.begin(w)
			b.end(w, outcome{Ref: "k1", Confirmed: true})
			b.update(device.CodeChange{ID: c.ID.String(), Name: new("Friend")})
			b.failing(c, clock)
			b.read(found("k0", "1111"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "smartthings")
			c := b.delayed(clock)
			again(b, c, clock)
			told := len(b.told(delayTold))
			if b.look(); slices.Contains(warnings(b.code(c.ID)), delayInSetting) {
				t.Error("the code is late already")
			}
			if w := b.look(); w.Deadline == nil || w.Deadline.After(clock.now().Add(10*time.Minute)) {
				t.Errorf("next look at %v to announce the delay", w.Deadline)
			}
			b.failing(c, clock)
			if got := len(b.told(delayTold)); got != told+1 ||
				!slices.Contains(warnings(b.code(c.ID)), delayInSetting) {
				t.Errorf("%d events for the next delay", got-told)
			}
		})
	}
}

// A scheduled code shows no error of an earlier time frame.
func TestScheduledCode_ShowsNoEarlierError(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "smartthings")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "no such PIN"}})
	from := clock.now().Add(100 * time.Hour)
	b.update(
		device.CodeChange{
			ID:       c.ID.String(),
			StartsAt: from.Format(time.RFC3339),
			EndsAt:   from.Add(time.Hour).Format(time.RFC3339),
		},
	)
	if got := b.code(c.ID); got.Status != device.StatusUnset || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}
