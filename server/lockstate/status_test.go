package lockstate

import (
	"slices"
	"testing"
	"time"
)

const (
	delayInSetting = WarnDelaySetting
	delayTold      = "access_code." + delayInSetting
)

func warnings(c view) (codes []string) {
	for _, w := range c.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

// delayed returns a new code that its lock has not accepted for a while. The delay is announced
// once.
func (b *bed) delayed() view {
	b.Helper()
	c, _ := b.create("2580")
	b.failing(c)
	if got := b.code(c.ID); !slices.Equal(warnings(got), []string{delayInSetting}) || len(b.told(delayTold)) != 1 {
		b.Fatalf("late: warnings %v, %d events", got.Warnings, len(b.told(delayTold)))
	}
	return c
}

// failing makes the lock busy until the delay is announced.
func (b *bed) failing(c view) {
	b.Helper()
	for range 4 {
		if w := b.work(c); w.Action == Put {
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "busy."}})
		}
		b.pass(5 * time.Minute)
	}
	b.look()
}

// The warning ends with the delay, whatever its end.
func TestDelay_WarningEndsWithDelay(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*bed, view){
		"refused": func(b *bed, c view) {
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
			b.look()
		},
		"changed, nothing late yet": func(b *bed, c view) {
			b.update(c, change{Name: new("Friend")})
		},
		"moved far ahead": func(b *bed, c view) {
			from := b.now().Add(100 * time.Hour)
			b.update(c, change{StartsAt: new(from), EndsAt: new(from.Add(time.Hour))})
			b.read()
			b.look()
		},
		"being removed, nothing late yet": func(b *bed, c view) {
			b.deleteCode(c)
			b.look()
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "smartthings")
			c := b.delayed()
			end(b, c)
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
	for what, again := range map[string]func(*bed, view){
		"asked for again": func(b *bed, c view) {
			b.update(c, change{Name: new("Friend")})
		},
		"changed at the lock while a change was late": func(b *bed, c view) {
			b.set(c, "k1")
			b.update(c, change{Name: new("Friend")})
			b.failing(c)
			b.read(found("k0", "1111"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "smartthings")
			c := b.delayed()
			again(b, c)
			told := len(b.told(delayTold))
			if b.look(); slices.Contains(warnings(b.code(c.ID)), delayInSetting) {
				t.Error("the code is late already")
			}
			if w := b.look(); w.Deadline == nil || w.Deadline.After(b.now().Add(10*time.Minute)) {
				t.Errorf("next look at %v to announce the delay", w.Deadline)
			}
			b.failing(c)
			if got := len(b.told(delayTold)); got != told+1 ||
				!slices.Contains(warnings(b.code(c.ID)), delayInSetting) {
				t.Errorf("%d events for the next delay", got-told)
			}
		})
	}
}

// A refused change leaves the code in its former state, in which it opens from its start.
func TestRefusedChange_FormerStateCounts(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	from := b.now().Add(50 * time.Hour)
	ahead, always := b.between("2580", from, from.Add(time.Hour)), b.on("4711", "k2")
	b.set(ahead, "k1")
	refused := Outcome{Failure: &Failure{Class: FailedInvalid, Message: "not such a PIN"}}
	for _, c := range []struct {
		code view
		pin  PIN
		want Status
	}{{ahead, "2581", StatusUnset}, {always, "4712", StatusSet}} {
		b.update(c.code, change{PIN: c.pin})
		w := b.work(c.code)
		b.begin(w)
		b.end(w, refused)
		if got := b.code(c.code.ID); got.Status != c.want || len(got.Errors) != 1 {
			t.Errorf("refused: status %s, errors %v, want %s", got.Status, got.Errors, c.want)
		}
	}
	if w := b.look(); w.Due == nil || !w.Due.Equal(from) {
		t.Errorf("due at %v, want %v", w.Due, from)
	}
	b.to(from)
	for range 2 {
		b.look()
	}
	if got := b.code(ahead.ID); got.Status != StatusSet {
		t.Errorf("after its start: status %s", got.Status)
	}
	if n := countOf(b.events(ahead.ID), "access_code.set_on_device"); n != 1 {
		t.Errorf("%d set events", n)
	}
}

// A lock with time frames stops opening at the old end if it refused an extension.
func TestRefusedExtension_NotSetAfterOldEnd(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]Status{"august": StatusUnset, "smartthings": StatusSet} {
		for when, late := range map[string]bool{"before its end": false, "after its end": true} {
			t.Run(profile+", refused "+when, func(t *testing.T) {
				t.Parallel()
				b := newBed(t, profile)
				end := b.now().Add(2 * time.Hour)
				c := b.onBetween("2580", b.now(), end)
				b.update(c, change{EndsAt: new(end.Add(6 * time.Hour))})
				w := b.work(c)
				b.begin(w)
				if late {
					b.to(end)
				}
				b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "too long"}})
				if !late {
					if got := b.code(c.ID); got.Status != StatusSet {
						t.Errorf("before its end: status %s", got.Status)
					}
					if w := b.look(); want == StatusUnset && (w.Due == nil || !w.Due.Equal(end)) {
						t.Errorf("due at %v, want %v", w.Due, end)
					}
					b.to(end)
				}
				for range 2 {
					b.look()
				}
				if got := b.code(c.ID); got.Status != want || len(got.Errors) != 1 {
					t.Errorf("after its end: status %s, errors %v", got.Status, got.Errors)
				}
				if n := countOf(b.events(c.ID), "access_code.set_on_device"); n != 1 {
					t.Errorf("%d set events", n)
				}
			})
		}
	}
}

// If the last of several changes is refused, the state that the device confirmed last counts.
func TestRefusedChange_LastConfirmedStateCounts(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	from := b.now().Add(50 * time.Hour)
	c := b.onBetween("2580", from, from.Add(time.Hour))
	b.update(c, change{PIN: "2581"})
	w := b.work(c)
	b.begin(w)
	b.update(c, change{PIN: "2582"})
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	b.refuse(c)
	b.to(from)
	b.look()
	told := b.eventsOf("access_code.set_on_device", "access_code.code_changed")
	if len(told) != 2 || told[0].Type != "access_code.code_changed" {
		t.Fatalf("events %v", b.events(c.ID))
	}
	if change := told[0].Change; change.From.PIN != "2580" || change.To.PIN != "2581" || told[1].PIN != "2581" {
		t.Error("the event has another PIN than the device")
	}
}

// A code being removed is not being set, whatever else leaves the lock.
func TestRemovingCode_IsNotSetting(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k9", "9999"), found("k8", "8888"))
	c := b.onBetween("2580", b.now(), b.now().Add(time.Hour))
	b.update(c, change{PIN: "2581"})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "no room"}})
	b.pass(time.Hour)
	b.look()
	b.read(found("k8", "8888"), found("k1", "2580"))
	if got := b.code(c.ID); got.Status != StatusRemoving {
		t.Errorf("status %s", got.Status)
	}
}
