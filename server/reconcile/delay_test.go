package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

const (
	delayInSetting = "delay_in_setting_on_device"
	delayTold      = "access_code." + delayInSetting
)

func warnings(c access.Code) (codes []string) {
	for _, w := range c.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

// delayed returns a new code that its lock has not accepted for a while. The delay is announced
// once.
func (b byHand) delayed(clock *testClock) access.Code {
	b.Helper()
	c, _ := b.create("2580")
	b.failing(c, clock)
	if got := b.code(c.ID); !slices.Equal(warnings(got), []string{delayInSetting}) || len(b.told(delayTold)) != 1 {
		b.Fatalf("late: warnings %v, %d events", got.Warnings, len(b.told(delayTold)))
	}
	return c
}

// failing makes the lock busy until the delay is announced.
func (b byHand) failing(c access.Code, clock *testClock) {
	b.Helper()
	for range 4 {
		if w := b.work(c); w.Action == access.Put {
			b.begin(w)
			b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedForNow, Message: "busy."}})
		}
		clock.pass(5 * time.Minute)
	}
	b.look()
}

// The warning ends with the delay, whatever its end.
func TestDelay_WarningEndsWithDelay(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(byHand, access.Code, *testClock){
		"refused": func(b byHand, c access.Code, clock *testClock) {
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "no such PIN"}})
			b.look()
		},
		"changed, nothing late yet": func(b byHand, c access.Code, _ *testClock) {
			b.update(access.CodeChange{ID: c.ID.String(), Name: new("Friend")})
		},
		"moved far ahead": func(b byHand, c access.Code, clock *testClock) {
			from := clock.now().Add(100 * time.Hour)
			b.update(access.CodeChange{ID: c.ID.String(), StartsAt: from.Format(time.RFC3339), EndsAt: from.Add(time.Hour).Format(time.RFC3339)})
			b.read()
			b.look()
		},
		"being removed, nothing late yet": func(b byHand, c access.Code, clock *testClock) {
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
	for what, again := range map[string]func(byHand, access.Code, *testClock){
		"asked for again": func(b byHand, c access.Code, _ *testClock) {
			b.update(access.CodeChange{ID: c.ID.String(), Name: new("Friend")})
		},
		"changed at the lock while a change was late": func(b byHand, c access.Code, clock *testClock) {
			w := b.work(c)
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
			b.update(access.CodeChange{ID: c.ID.String(), Name: new("Friend")})
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
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "no such PIN"}})
	from := clock.now().Add(100 * time.Hour)
	b.update(
		access.CodeChange{
			ID:       c.ID.String(),
			StartsAt: from.Format(time.RFC3339),
			EndsAt:   from.Add(time.Hour).Format(time.RFC3339),
		},
	)
	if got := b.code(c.ID); got.Status != access.StatusUnset || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}
