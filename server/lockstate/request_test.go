package lockstate

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Changes of a code are refused if too many wait for an unreachable lock, because each look
// processes all of them. A removal is still possible.
func TestPendingChanges_AreBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	b.read(found("k1", "2580"), found("k2", "4711"))
	stranger := b.unmanaged()[0]
	b.unreachable(true, true)
	for what, ask := range map[string]func(int) error{
		"changes": func(i int) error {
			_, err := b.tryUpdate(c, change{PIN: PIN(fmt.Sprint(500000 + i))})
			return err
		},
		"conversions": func(int) error {
			_, err := b.request(func(l *Lock) (Requested, error) { return l.Convert(l.Code(stranger.ID), nil) })
			return err
		},
	} {
		for i := range maxWaiting {
			b.must(ask(i))
		}
		before := b.code(c.ID).DesiredGen
		var e *domain.Error
		if err := ask(maxWaiting); !errors.As(err, &e) || e.Kind != domain.TooMany || e.Type != "too_many_requests" {
			t.Errorf("with 20 pending %s: %v", what, err)
		}
		if b.code(c.ID).DesiredGen != before {
			t.Errorf("with 20 pending %s: the refused request has an effect", what)
		}
	}
	removals := map[result]int{}
	for range maxWaiting + 10 {
		removals[b.deleteCode(c)]++
	}
	if len(removals) != maxWaiting {
		t.Errorf("%d removal attempts", len(removals))
	}
	b.read(found("k1", "2580"), found("k2", "4711"))
	b.taken(b.work(c))
	b.read(found("k2", "4711"))
	for a := range removals {
		if got := b.attempt(a); got.Status != Succeeded {
			t.Errorf("removal %s", got.Status)
		}
	}
}

// A client that missed the end of a change requests it again and gets the same result.
func TestRepeatedChange_EndsLikeFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		becomes Outcome
		want    AttemptStatus
	}{
		"taken":   {Outcome{Ref: "k1", Confirmed: true}, Succeeded},
		"refused": {Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such name"}}, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			code := b.on("2580", "k1")
			ch := change{Name: new("Friend")}
			first, again := b.update(code, ch), b.update(code, ch)
			if again.Status != Pending {
				t.Errorf("before the lock has it: second attempt %s", again.Status)
			}
			w := b.work(code)
			b.begin(w)
			b.end(w, c.becomes)
			for _, a := range []result{first, again} {
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
	for name, code := range map[string]func(*bed) (view, change){
		"a new one": func(b *bed) (view, change) {
			c, _ := b.create("2580")
			return c, change{PIN: "2580"}
		},
		"a change": func(b *bed) (view, change) {
			c := b.on("1470", "k1")
			ch := change{PIN: "2580"}
			b.update(c, ch)
			return c, ch
		},
		"one that was deleted at the lock": func(b *bed) (view, change) {
			c := b.on("1470", "k1")
			b.allow(c)
			b.read(found("k0", "1111"))
			ch := change{PIN: "2580"}
			b.update(c, ch)
			if got := b.code(c.ID); got.Status != StatusSetting || len(got.Warnings) > 0 {
				b.Errorf("requested again: status %s, warnings %v", got.Status, got.Warnings)
			}
			return c, ch
		},
		"one that was disabled at the lock, refused to change, and deleted there": func(b *bed) (view, change) {
			c := b.on("1470", "k1")
			b.allow(c)
			b.read(disabled("1470"))
			ch := change{PIN: "2580"}
			b.update(c, ch)
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
			b.read(found("k0", "1111"))
			b.update(c, ch)
			return c, ch
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFreshBed(t, "august")
			c, ch := code(b)
			refuse := func() {
				t.Helper()
				w := b.work(c)
				if w.Action != Put {
					t.Fatalf("planned action %q", w.Action)
				}
				b.begin(w)
				b.end(w,
					Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
				b.pass(time.Minute)
			}
			refuse()
			b.quiet(c, time.Hour)
			told := len(b.told("access_code.changed"))
			a := b.update(c, ch)
			if a.Status != Pending {
				t.Fatalf("errors %v, attempt %s", b.code(c.ID).Errors, a.Status)
			}
			refuse()
			if got := b.attempt(a); got.Status != Failed || len(b.code(c.ID).Errors) != 1 {
				t.Errorf("refused again: attempt %s, errors %v", got.Status, b.code(c.ID).Errors)
			}
			a = b.update(c, ch)
			b.set(c, "k1")
			if got := b.code(c.ID); b.attempt(a).Status != Succeeded || got.Status != StatusSet ||
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
	for name, code := range map[string]func(*bed) (view, change){
		"set": func(b *bed) (view, change) {
			return b.on("2580", "k1"), change{PIN: "2580"}
		},
		"before its time": func(b *bed) (view, change) {
			return b.between("2580", b.now().Add(100*time.Hour), b.now().Add(101*time.Hour)), change{PIN: "2580"}
		},
		"off, which is allowed": func(b *bed) (view, change) {
			c := b.on("2580", "k1")
			b.allow(c)
			b.pass(time.Hour)
			b.read(found("k0", "1111"))
			return c, change{PIN: "2580"}
		},
		"refused, and only what may be done at the lock is changed": func(b *bed) (view, change) {
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
			return c, change{ExternalModificationAllowed: new(true)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, ch := code(b)
			before := b.code(c.ID)
			if a := b.update(c, ch); a.Status != Succeeded {
				t.Errorf("attempt %s", a.Status)
			}
			if w := b.work(c); w.Action != Nothing {
				t.Errorf("planned action %q", w.Action)
			}
			if got := b.code(c.ID); got.Status != before.Status ||
				!slices.EqualFunc(got.Errors, before.Errors,
					func(a, b Problem) bool { return a.Code == b.Code }) {
				t.Errorf("before: status %s, errors %v; after: status %s, errors %v", before.Status, before.Errors,
					got.Status, got.Errors)
			}
		})
	}
}

// A scheduled code shows no error of an earlier time frame.
func TestScheduledCode_ShowsNoEarlierError(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
	from := b.now().Add(100 * time.Hour)
	b.update(c, change{
		StartsAt: new(from),
		EndsAt:   new(from.Add(time.Hour)),
	},
	)
	if got := b.code(c.ID); got.Status != StatusUnset || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
}

// A code that became unmanaged opens when its device says so.
func TestUnmanagedCode_IsSetBeforeItsStart(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	from := b.now().Add(50 * time.Hour)
	c := b.onBetween("2580", from, from.Add(time.Hour))
	b.unmanage(c)
	if got := b.unmanaged()[0]; got.Status != StatusSet {
		t.Errorf("status %s", got.Status)
	}
	// The state of an older server.
	b.edit(func(c *Code) { c.Status = StatusUnset })
	f := found("k1", "2580")
	f.StartsAt, f.EndsAt = &from, new(from.Add(time.Hour))
	b.read(f)
	if got := b.unmanaged()[0]; got.Status != StatusSet {
		t.Errorf("read again: status %s", got.Status)
	}
}

// A refused request has no effect.
func TestRequests_Refused(t *testing.T) {
	t.Parallel()
	frame := func(b *bed, from, to int) (time.Time, time.Time) {
		hours := func(n int) time.Time { return b.now().Add(time.Duration(n) * time.Hour) }
		return hours(from), hours(to)
	}
	for name, c := range map[string]struct {
		ask   func(b *bed) error
		kind  domain.Kind
		want  string
		field string
	}{
		"create, full": {func(b *bed) error {
			b.device.Capabilities.MaxCodes = 1
			b.on("2580", "k1")
			_, _, err := b.add(Code{PIN: "4711"})
			return err
		}, domain.Invalid, "no_space_for_access_code_on_device", "device_id"},
		"create, PIN of another": {func(b *bed) error {
			b.on("2580", "k1")
			_, _, err := b.add(Code{PIN: "2580"})
			return err
		}, domain.Conflict, "duplicate_access_code", "code"},
		"create, PIN of an unmanaged code": {func(b *bed) error {
			b.read(found("k1", "2580"))
			_, _, err := b.add(Code{PIN: "2580"})
			return err
		}, domain.Conflict, "duplicate_access_code", "code"},
		"update, PIN of another": {func(b *bed) error {
			b.on("2580", "k1")
			_, err := b.tryUpdate(b.on("4711", "k2"), change{PIN: "2580"})
			return err
		}, domain.Conflict, "duplicate_access_code", "code"},
		"update, full at that time": {func(b *bed) error {
			b.device.Capabilities.MaxCodes = 1
			from, to := frame(b, 100, 110)
			b.between("2580", from, to)
			from, to = frame(b, 300, 310)
			c := b.between("4711", from, to)
			from, to = frame(b, 105, 115)
			_, err := b.tryUpdate(c, change{StartsAt: &from, EndsAt: &to})
			return err
		}, domain.Invalid, "no_space_for_access_code_on_device", "device_id"},
		"unmanage, not on the device": {func(b *bed) error {
			c, _ := b.create("2580")
			_, err := b.request(func(l *Lock) (Requested, error) { return l.Unmanage(l.Code(c.ID)) })
			return err
		}, domain.Invalid, "", "is_managed"},
		"unmanage, not confirmed": {func(b *bed) error {
			c := b.on("2580", "k1")
			b.update(c, change{PIN: "4711"})
			_, err := b.request(func(l *Lock) (Requested, error) { return l.Unmanage(l.Code(c.ID)) })
			return err
		}, domain.Invalid, "", "is_managed"},
		"convert, being deleted": {func(b *bed) error {
			b.read(found("k1", "2580"))
			u := b.unmanaged()[0]
			b.deleteUnmanaged(u)
			_, err := b.request(func(l *Lock) (Requested, error) { return l.Convert(l.Code(u.ID), nil) })
			return err
		}, domain.Conflict, "access_code_being_deleted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			err := c.ask(b)
			e, ok := domain.AsError(err)
			if !ok || e.Kind != c.kind || c.want != "" && e.Type != c.want || e.Field != c.field {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDeleteUnmanaged_UnsupportedByVendor(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.device.Capabilities.DeleteUnmanaged = false
	b.read(found("k1", "2580"))
	u := b.unmanaged()[0]
	a := b.deleteUnmanaged(u)
	if w := b.work(u); w.Action != Nothing {
		t.Errorf("planned action %q", w.Action)
	}
	if got := b.attempt(a); got.Status != Failed || got.ErrorType != "cannot_delete_unmanaged_access_code" {
		t.Errorf("attempt %s %s", got.Status, got.ErrorType)
	}
	if got := b.code(u.ID); got.RemovingSince != nil || got.Status != StatusSet {
		t.Errorf("status %s", got.Status)
	}
}

// A code that was requested and deleted before anything was stored leaves no trace but its events.
func TestRemove_InTheStepOfTheCreation(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.step(func(l *Lock) {
		r, err := l.Create(Code{ID: b.newID(), PIN: "2580"}, l.Occupants())
		b.must(err)
		_, err = l.Remove(l.Code(r.CodeID))
		b.must(err)
	})
	if len(b.codes) > 0 || len(b.attempts) > 0 {
		t.Errorf("%d codes, %d attempts", len(b.codes), len(b.attempts))
	}
	if got := b.told("access_code.created", "access_code.deleted"); len(got) != 2 {
		t.Errorf("events %v", got)
	}
}

// The creation of a code says when it is programmed.
func TestCreate_IsAnnounced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		starts   time.Duration
		mutation string
		status   Status
		attempt  AttemptStatus
	}{
		"now":                {0, "creating", StatusSetting, Pending},
		"days ahead":         {100 * time.Hour, "deferring_creation", StatusUnset, Succeeded},
		"in the time before": {71 * time.Hour, "creating", StatusSetting, Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			from := b.now().Add(c.starts)
			code, a, err := b.add(
				Code{PIN: "2580", StartsAt: &from, EndsAt: new(from.Add(time.Hour)), UsesBackupPool: true},
			)
			b.must(err)
			if code.Status != c.status || a.Status != c.attempt {
				t.Errorf("status %s, attempt %s", code.Status, a.Status)
			}
			asked := b.eventsOf(MutationsRequested)
			if len(asked) != 1 || asked[0].Mutation != c.mutation || len(b.told("access_code.created")) != 1 {
				t.Errorf("events %+v", asked)
			}
			if !b.device.Pool.Enabled || b.wakes != 1 || b.device.ReadNeeded {
				t.Errorf("pool %+v, woken %d times", b.device.Pool, b.wakes)
			}
		})
	}
}

// What the client asked for is announced with the old and the new values.
func TestUpdate_IsAnnounced(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	from, to := b.now(), b.now().Add(time.Hour)
	b.update(c, change{Name: new("Guest"), PIN: "4711", StartsAt: &from, EndsAt: &to})
	for _, eventType := range []string{MutationsRequested, "access_code.changed"} {
		all := b.eventsOf(eventType)
		e := all[len(all)-1]
		var fields []string
		for _, f := range e.Requested {
			fields = append(fields, f.Field)
		}
		if !slices.Equal(fields, []string{NameField, CodeField, TimeFrameField}) {
			t.Errorf("%s: %v", eventType, fields)
		}
		if f := e.Requested[1]; f.From.PIN != "2580" || f.To.PIN != "4711" {
			t.Errorf("%s has another PIN", eventType)
		}
	}
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "k1", Confirmed: true})
	for field, eventType := range map[string]string{
		NameField:      "access_code.name_changed",
		CodeField:      "access_code.code_changed",
		TimeFrameField: "access_code.time_frame_changed",
	} {
		if e := b.eventsOf(
			eventType,
		); len(e) != 1 || e[0].Change.Field != field ||
			e[0].Description != changedByRequest {
			t.Errorf("%s: %d events", eventType, len(e))
		}
	}
}

// A code that is being deleted shows no error of its setting.
func TestRemove_ClearsError(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	b.update(c, change{PIN: "4711"})
	b.refuse(c)
	b.deleteCode(c)
	if got := b.code(c.ID); got.Status != StatusRemoving || len(got.Errors) > 0 {
		t.Errorf("status %s, errors %v", got.Status, got.Errors)
	}
	if w := b.work(c); w.Action != Delete {
		t.Errorf("planned action %q", w.Action)
	}
}

// A request wakes its device, also where it changes no code. Where the device may differ from the records, it is read.
func TestRequests_WakeDevice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask  func(b *bed, ours, foreign view)
		read bool
	}{
		"create":           {func(b *bed, _, _ view) { b.create("3690") }, false},
		"update":           {func(b *bed, ours, _ view) { b.update(ours, change{PIN: "3690"}) }, false},
		"delete":           {func(b *bed, ours, _ view) { b.deleteCode(ours) }, false},
		"delete unmanaged": {func(b *bed, _, foreign view) { b.deleteUnmanaged(foreign) }, false},
		"convert":          {func(b *bed, _, foreign view) { b.convert(foreign, nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			ours := b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "1470"))
			before := b.wakes
			c.ask(b, ours, b.unmanaged()[0])
			if b.wakes != before+1 || b.device.ReadNeeded != c.read {
				t.Errorf("woken %d times, to read: %t", b.wakes-before, b.device.ReadNeeded)
			}
			before = b.wakes
			switch name {
			case "update":
				b.update(ours, change{PIN: "3690"})
			case "delete":
				b.deleteCode(ours)
			default:
				return
			}
			if b.wakes != before+1 {
				t.Errorf("repeated: woken %d times", b.wakes-before)
			}
		})
	}
}

func TestRequests_WakeDeviceWithoutSupport(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.device.Capabilities.DeleteUnmanaged = false
	b.read(found("k2", "1470"))
	before := b.wakes
	b.deleteUnmanaged(b.unmanaged()[0]) // to end the attempt
	if b.wakes != before+1 {
		t.Errorf("woken %d times", b.wakes-before)
	}
}
