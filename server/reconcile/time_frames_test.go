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
