package lockstate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Until a removal is confirmed, the first code may be on the lock.
func TestPINReuse_WaitsForConfirmedRemoval(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]bool{"the first is on the lock": true, "the first may be on the lock": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			end := b.now().Add(time.Hour)
			next := end.Add(PINReuseMargin)
			first := b.between("2580", b.now(), end)
			w := b.work(first)
			b.begin(w)
			if answered {
				b.end(w, Outcome{Ref: "k1", Confirmed: true})
			}
			second := b.between("2580", next, next.Add(time.Hour))
			waits := func(when string) {
				t.Helper()
				if w := b.work(second); w.Action != Nothing {
					t.Errorf("%s: planned action %q", when, w.Action)
				}
			}
			waits("during the first stay")
			if due := b.look().Due; due == nil || due.After(end) {
				t.Errorf("due at %v, after the end of the first stay", due)
			}
			b.to(end)
			waits("at the end of the first stay")
			b.read(found("k1", "2580"))
			waits("while the lock has the first code")
			b.removal(b.work(first), false, nil)
			waits("before the removal is confirmed")
			b.pass(15 * time.Second) // a read may lag behind
			b.read()
			if w := b.work(second); w.Action != Put {
				t.Errorf("after the removal: planned action %q", w.Action)
			}
		})
	}
}

// A guest who cannot get in must learn which code is in the way.
func TestPINReuse_DelayNamesTheEarlierCode(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	end := b.now().Add(time.Hour)
	first := b.between("2580", b.now(), end)
	b.set(first, "k1")
	second := b.between("2580", end.Add(PINReuseMargin), end.Add(24*time.Hour))
	b.to(end.Add(time.Hour)) // the first code stays on the lock
	b.look()
	got := b.code(second.ID)
	if got.Warning == nil || got.Warning.Code != WarnDelaySetting ||
		!strings.Contains(got.Warning.Message, first.ID.String()) {
		t.Errorf("warning %+v", got.Warning)
	}
	if strings.Contains(got.Warning.Message, "2580") {
		t.Error("the warning shows the PIN")
	}
}

// A lock that enforces time frames gets its codes days ahead. The code of the earlier stay comes first on any lock.
func TestPINReuse_LaterStayIsDueFirst(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	day := func(n int) time.Time { return b.now().Add(time.Duration(n) * 24 * time.Hour) }
	second := b.between("2580", day(3), day(4))
	first := b.between("2580", day(1), day(2))
	b.codes[b.index(first.ID)].PreferNativeScheduling = false
	if w := b.work(second); w.Action != Nothing {
		t.Errorf("planned action %q for the second", w.Action)
	}
	b.to(day(1))
	if w := b.work(first); w.Action != Put {
		t.Errorf("planned action %q for the first", w.Action)
	}
	b.deleteCode(first)
	if w := b.work(second); w.Action != Put {
		t.Errorf("without the first: planned action %q for the second", w.Action)
	}
}

// A new code may have the PIN of a pool code, which leaves for it and must not be pulled before.
func TestPINReuse_PulledCodeHasAPINOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	guest := b.stay(b.now(), b.now().Add(time.Hour))
	for i, w := range b.look().Codes {
		b.begin(w)
		b.end(w, Outcome{Ref: fmt.Sprint("k", i), Confirmed: true})
		if w.Code != guest.ID {
			b.between(w.PIN, b.now().Add(24*time.Hour), b.now().Add(25*time.Hour))
		}
	}
	_, err := b.pull(guest)
	if e, _ := domain.AsError(err); e == nil || e.Type != "backup_access_code_not_found" {
		t.Errorf("pulled a code whose PIN another code has: %v", err)
	}
}

// A request between the plan and the write changes whose turn it is.
func TestPINReuse_EarlierStayBeforeTheWrite(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	w := b.work(b.between("2580", b.now().Add(5*time.Hour), b.now().Add(6*time.Hour)))
	b.between("2580", b.now(), b.now().Add(time.Hour))
	still := b.started(w)
	if w.Action != Put || still {
		t.Errorf("planned action %q is still wanted: %t", w.Action, still)
	}
}

// The error of a taken PIN says which code has it, when, and when it is free.
func TestCheckPIN(t *testing.T) {
	t.Parallel()
	noon := time.Date(2027, 6, 1, 12, 0, 0, 0, time.UTC)
	at := func(hour int) *time.Time { return new(noon.Add(time.Duration(hour) * time.Hour)) }
	stay := func(from, until *time.Time) Occupant {
		return Occupant{ID: uuid.New(), Managed: true, PIN: "2580", StartsAt: from, EndsAt: until}
	}
	with := func(o Occupant, f func(*Occupant)) Occupant {
		f(&o)
		return o
	}
	stays := stay(at(5), at(6))
	ongoing := stay(nil, nil)
	type others = []Occupant
	for name, c := range map[string]struct {
		taken others
		code  Occupant
		says  []string // nil: the PIN is free
		not   string   // what the message leaves out; empty: nothing
	}{
		"no other code":      {nil, stay(nil, nil), nil, ""},
		"the code itself":    {others{{PIN: "2580"}}, Occupant{PIN: "2580"}, nil, ""},
		"another PIN":        {others{stay(nil, nil)}, with(stay(nil, nil), func(o *Occupant) { o.PIN = "1" }), nil, ""},
		"both without a PIN": {others{{ID: uuid.New()}}, Occupant{ID: uuid.New()}, nil, ""},
		"being removed":      {others{with(ongoing, func(o *Occupant) { o.Removing = true })}, stay(nil, nil), nil, ""},
		"in the pool":        {others{with(ongoing, func(o *Occupant) { o.InPool = true })}, stay(nil, nil), nil, ""},
		"ongoing": {
			others{stay(nil, nil)},
			stay(at(1), at(2)),
			[]string{"which is ongoing. Choose another code."},
			"next free",
		},
		"from a time": {
			others{stay(at(5), nil)},
			stay(at(1), at(2)),
			[]string{" from 2027-06-01T17:00:00Z."},
			"next free",
		},
		"until a time": {
			others{stay(nil, at(5))},
			stay(at(6), at(7)),
			[]string{" until 2027-06-01T17:00:00Z."},
			"next free",
		},
		"offline": {
			others{with(stays, func(o *Occupant) { o.Offline = true })},
			stay(at(1), at(2)),
			[]string{", an offline code."},
			"next free",
		},
		"unmanaged": {
			others{with(stays, func(o *Occupant) { o.Managed = false })},
			stay(at(1), at(2)),
			[]string{"unmanaged access code", "Convert that one"},
			"next free",
		},
		"the new one ongoing": {
			others{stay(at(5), at(6))},
			stay(nil, nil),
			[]string{" from 2027-06-01T17:00:00Z to 2027-06-01T18:00:00Z."},
			"next free",
		},
		"apart, later":   {others{stay(at(1), at(2))}, stay(at(3), at(4)), nil, ""},
		"apart, earlier": {others{stay(at(3), at(4))}, stay(at(1), at(2)), nil, ""},
		"apart, on the device": {
			others{with(stay(at(1), at(2)), func(o *Occupant) { o.OnDevice = true })}, stay(at(3), at(4)), nil, "",
		},
		"overlapping": {
			others{stay(at(1), at(3))},
			stay(at(2), at(4)),
			[]string{"the next free start is 2027-06-01T15:15:00Z"},
			"on the lock already",
		},
		"the gap is too short": {
			others{stay(at(1), at(3)), stay(at(4), at(5))},
			stay(at(2), at(3)),
			[]string{"the next free start is 2027-06-01T17:15:00Z"},
			"",
		},
		"the gap after the next one is too short": {
			others{stay(at(6), at(7)), stay(at(4), at(5))},
			stay(at(3), new(at(5).Add(30*time.Minute))),
			[]string{"the next free start is 2027-06-01T19:15:00Z"},
			"",
		},
		"the gap is long enough": {
			others{stay(at(6), at(7)), stay(at(1), at(3))},
			stay(at(2), at(3)),
			[]string{"the next free start is 2027-06-01T15:15:00Z"},
			"",
		},
		"the later one is on the device": {
			others{with(stays, func(o *Occupant) { o.OnDevice = true })},
			stay(at(1), at(2)),
			[]string{"That one is on the lock already.", "the next free start is 2027-06-01T18:15:00Z"},
			"cannot wait",
		},
		"the code itself is on the device": {
			others{stay(at(1), at(2))},
			with(stays, func(o *Occupant) { o.OnDevice = true }),
			[]string{"The code to change is on the lock already, so it cannot wait for that one. Choose another code."},
			"next free",
		},
		"a fraction of a second": {
			others{stay(at(1), new(at(3).Add(time.Millisecond)))},
			stay(at(2), at(4)),
			[]string{"the next free start is 2027-06-01T15:15:01Z"},
			"",
		},
		"another of them is ongoing": {
			others{stay(at(1), at(3)), stay(nil, nil)},
			stay(at(2), at(4)),
			[]string{"2027-06-01T15:00:00Z. Choose another code."},
			"next free",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := CheckPIN(c.taken, c.code)
			if c.says == nil {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			e, ok := domain.AsError(err)
			if !ok || e.Kind != domain.Conflict || e.Type != "duplicate_access_code" || e.Field != "code" {
				t.Fatalf("got %v", err)
			}
			for _, says := range c.says {
				if !strings.Contains(e.Message, says) {
					t.Errorf("the message lacks %q: %s", says, e.Message)
				}
			}
			if c.not != "" && strings.Contains(e.Message, c.not) {
				t.Errorf("the message has %q: %s", c.not, e.Message)
			}
			key := "unmanaged_access_code_id"
			if c.taken[0].Managed {
				key = "managed_access_code_id"
			}
			id, _ := e.Data[key].(uuid.UUID)
			if !slices.ContainsFunc(c.taken, func(o Occupant) bool { return o.ID == id }) {
				t.Errorf("data %v", e.Data)
			}
		})
	}
}

// A change of the time frame fails if it brings a code into the time of another one, or of the backup code's PIN.
func TestPINReuse_ChangedTimeFrame(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	day := func(n int) *time.Time { return new(b.now().Add(time.Duration(n) * 24 * time.Hour)) }
	at := make([]*time.Time, 12)
	for n := range at {
		at[n] = day(n)
	}
	b.between("4711", *at[1], *at[2])
	second := b.between("4711", *at[4], *at[5])
	if _, err := b.tryUpdate(second, change{StartsAt: at[2]}); err == nil {
		t.Error("the time frames touch")
	}
	if got := b.code(second.ID); !got.StartsAt.Equal(*at[4]) || got.DesiredGen != 1 {
		t.Errorf("the refused change has an effect: from %v", got.StartsAt)
	}
	b.update(second, change{StartsAt: at[3]})
	if _, err := b.tryUpdate(second, change{Name: new("Guest")}); err != nil {
		t.Errorf("a change without a time: %v", err)
	}
	guest := b.filled(b.now(), *at[1])
	pulled, err := b.pull(guest)
	b.must(err)
	b.between(pulled.PIN, *at[6], *at[7])
	b.update(guest, change{EndsAt: at[3]})
	_, err = b.tryUpdate(guest, change{EndsAt: at[7]})
	if e, ok := domain.AsError(
		err,
	); !ok || e.Kind != domain.Conflict ||
		!strings.Contains(e.Message, pulled.ID.String()) {
		t.Errorf("got %v", err)
	}
	for _, c := range []view{guest, pulled} {
		if got := b.code(c.ID); !got.EndsAt.Equal(*at[3]) {
			t.Errorf("ends at %v", got.EndsAt)
		}
	}
}

// An unmanaged code stays on the lock after its end, so it must not have the PIN of a later one.
func TestPINReuse_Unmanaged(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	end := b.now().Add(time.Hour)
	first := b.onBetween("2580", b.now(), end)
	second := b.between("2580", end.Add(time.Hour), end.Add(2*time.Hour))
	ask := func(l *Lock) (Requested, error) { return l.Unmanage(l.Code(first.ID)) }
	_, err := b.request(ask)
	if e, ok := domain.AsError(err); !ok || e.Kind != domain.Conflict || e.Data["managed_access_code_id"] != second.ID {
		t.Errorf("got %v", err)
	}
	b.deleteCode(second)
	if _, err := b.request(ask); err != nil {
		t.Errorf("without the second: %v", err)
	}
}

// A code with the PIN of a stranger is in its way already, so its time frame can still change.
func TestPINReuse_MovedNextToStranger(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	from := b.now().Add(100 * time.Hour)
	c := b.between("2580", from, from.Add(time.Hour))
	b.read(found("k1", "2580")) // entered at the keypad
	if _, err := b.tryUpdate(c, change{EndsAt: new(from.Add(2 * time.Hour))}); err != nil {
		t.Errorf("moved: %v", err)
	}
	if _, err := b.tryUpdate(b.on("4711", "k2"), change{PIN: "2580"}); err == nil {
		t.Error("another code gets the PIN")
	}
}
