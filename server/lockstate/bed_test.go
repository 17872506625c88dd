package lockstate

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// bed is a device in memory with a clock that the test moves. The test decides what a read of the device returns, what
// becomes of writes, and in which order. Each step loads the lock, changes it, and stores nothing but its Changes, so
// each test also tests these.
type bed struct {
	*testing.T

	clock    time.Time
	timeouts Timeouts

	// What is stored.
	device     Device
	codes      []Code
	attempts   []Attempt
	tombstones map[uuid.UUID]bool
	results    map[uuid.UUID]result
	stream     []Event
	// wakes counts the wake-ups of the device.
	wakes int64

	// abandoned are the codes of backup pools of deleted devices.
	abandoned []Code
	// outOfPINs is true if the device accepts no more PINs.
	outOfPINs bool
	// admits returns how many of n changes of unmanaged codes are recorded; nil: all.
	admits func(n int) int

	ids, pins int
}

// result is an attempt, and how it ended.
type result struct {
	ID                 uuid.UUID
	Status             AttemptStatus
	ErrorType, Message string
}

// view is a stored code.
type view struct {
	Code

	Errors, Warnings []Problem
}

// profiles are the capabilities of the sandbox's locks.
var profiles = func() map[string]capability.Set {
	base := capability.Set{
		Lock:            true,
		Unlock:          true,
		OnlineCodes:     true,
		ListCodes:       true,
		DeleteUnmanaged: true,
		ModifyInPlace:   true,
		PINVisible:      true,
		NativeSchedule:  true,
		Convert:         capability.ConvertAdopt,
		Confirm:         capability.ConfirmReadBack,
		MaxCodes:        250,
	}
	with := func(f func(*capability.Set)) capability.Set {
		s := base
		f(&s)
		return s
	}
	rule := func(kind string) capability.Constraint { return capability.Constraint{Type: kind} }
	return map[string]capability.Set{
		"august": base,
		"smartthings": with(func(s *capability.Set) {
			s.PINVisible, s.NativeSchedule, s.Convert, s.MaxCodes = false, false, capability.ConvertNever, 27
		}),
		"kwikset": with(func(s *capability.Set) {
			s.Convert = capability.ConvertNever
			s.Constraints = []capability.Constraint{
				rule("start_date_in_future"),
				rule("name_must_be_unique"),
				{Type: "name_length", MinLength: 2, MaxLength: 14},
			}
		}),
		"igloohome": with(func(s *capability.Set) {
			s.Convert, s.OfflineCodes, s.MaxCodes = capability.ConvertNever, true, 199
			s.Constraints = []capability.Constraint{rule("start_date_in_future")}
		}),
		"yale": base,
		"nuki": with(func(s *capability.Set) {
			s.Subscription, s.MaxCodes = true, 100
			s.Constraints = []capability.Constraint{{Type: "name_length", MaxLength: 20}}
		}),
		"salto_ks": with(func(s *capability.Set) { s.ProviderPIN, s.MaxCodes = true, 100 }),
	}
}()

// newBed returns a managed device without codes, which has been read.
func newBed(t *testing.T, profile string) *bed {
	t.Helper()
	caps, known := profiles[profile]
	if !known {
		t.Fatalf("there is no profile %s", profile)
	}
	return &bed{
		T:     t,
		clock: time.Date(2027, 6, 1, 12, 0, 0, 0, time.UTC),
		timeouts: Timeouts{
			Confirm:        time.Minute,
			ReadLag:        10 * time.Second,
			EmptyListGrace: 15 * time.Second,
			DelayAfter:     10 * time.Minute,
			Attempt:        10 * time.Minute,
		},
		device:     Device{ID: uuid.New(), Capabilities: caps, Managed: true, Online: true},
		tombstones: map[uuid.UUID]bool{},
		results:    map[uuid.UUID]result{},
	}
}

// newFreshBed is newBed for a device whose list never lags.
func newFreshBed(t *testing.T, profile string) *bed {
	t.Helper()
	b := newBed(t, profile)
	b.timeouts.ReadLag = time.Nanosecond
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) now() time.Time { return b.clock }

func (b *bed) pass(d time.Duration) { b.clock = b.clock.Add(d) }

// to moves the clock to a time that has not passed.
func (b *bed) to(at time.Time) {
	if at.After(b.clock) {
		b.clock = at
	}
}

// try makes a step. A step takes a nanosecond, so that no two happen at the same time. If f fails, the step leaves no
// trace.
func (b *bed) try(f func(*Lock) error) error {
	b.Helper()
	b.pass(time.Nanosecond)
	l := b.load()
	before := l.Snapshot()
	l.ForgetFuture()
	if err := f(l); err != nil {
		return err
	}
	b.store(l, l.Changes(before))
	return nil
}

func (b *bed) step(f func(*Lock)) {
	b.Helper()
	b.must(b.try(func(l *Lock) error { f(l); return nil }))
}

// load returns the stored lock. It shares no memory with the store.
func (b *bed) load() *Lock {
	l := &Lock{
		Device:   b.device,
		Attempts: slices.Clone(b.attempts),
		Now:      b.clock,
		Timeouts: b.timeouts,
		Sources: Sources{
			NewID:  b.newID,
			NewPIN: b.newPIN,
			Jitter: func(span time.Duration) time.Duration { return span / 2 },
			Admit: func(n int) int {
				if b.admits == nil {
					return n
				}
				return b.admits(n)
			},
		},
	}
	for _, c := range b.codes {
		l.Codes = append(l.Codes, new(copyOf(c)))
	}
	return l
}

// newID returns identifiers in ascending order.
func (b *bed) newID() (id uuid.UUID) {
	b.ids++
	binary.BigEndian.PutUint64(id[8:], uint64(b.ids))
	return id
}

func (b *bed) newPIN([]PIN) (PIN, bool) {
	b.pins++
	return PIN(fmt.Sprint(700_000 + b.pins)), !b.outOfPINs
}

// copyOf returns a deep copy of a code.
func copyOf(c Code) Code {
	copyPointers(reflect.ValueOf(&c).Elem())
	return c
}

func copyPointers(v reflect.Value) {
	for _, field := range v.Fields() {
		if field.Kind() != reflect.Pointer || field.IsNil() {
			continue
		}
		fresh := reflect.New(field.Type().Elem())
		fresh.Elem().Set(field.Elem())
		if fresh.Type() == reflect.TypeFor[*State]() {
			copyPointers(fresh.Elem())
		}
		field.Set(fresh)
	}
}

// store writes the changes of a lock as package device does, and checks that they are all.
func (b *bed) store(l *Lock, c Changes) {
	b.Helper()
	for _, id := range c.Deleted {
		b.codes = slices.DeleteFunc(b.codes, func(c Code) bool { return c.ID == id })
		b.abandoned = slices.DeleteFunc(b.abandoned, func(c Code) bool { return c.ID == id })
	}
	for _, u := range c.Updated {
		if i := b.index(u.ID); i < 0 {
			b.Errorf("code %s is updated and does not exist", u.ID)
		} else {
			b.codes[i] = copyOf(*u)
		}
	}
	for _, a := range c.Added {
		b.codes = append(b.codes, copyOf(*a))
	}
	for _, id := range c.Tombstones {
		b.tombstones[id] = true
	}
	for _, r := range c.Requested {
		b.results[r.ID] = result{ID: r.ID, Status: r.Status}
		if r.Status == Pending {
			b.attempts = append(b.attempts, r.Attempt)
		}
	}
	for _, e := range c.Ended {
		id := e.Attempt.ID
		if b.results[id].Status != Pending {
			b.Errorf("a %s that does not wait ends", e.Attempt.Type)
		}
		b.results[id] = result{id, e.Status, e.ErrorType, e.Message}
		b.attempts = slices.DeleteFunc(b.attempts, func(a Attempt) bool { return a.ID == id })
	}
	b.stream = append(b.stream, c.Events...)
	b.device.Pool = l.Device.Pool
	if c.Read != nil {
		b.device.ReadNeeded, b.device.RereadAt, b.device.EmptySince = l.Device.ReadNeeded, c.Read.RereadAt, c.Read.EmptySince
	}
	if c.Wake {
		b.wakes++
		b.device.ReadNeeded = b.device.ReadNeeded || c.WakeToRead
	}
	b.checkStored(l)
}

func (b *bed) index(id uuid.UUID) int {
	return slices.IndexFunc(b.codes, func(c Code) bool { return c.ID == id })
}

// checkStored checks that the stored lock is that in memory, and that no two codes have one reference.
func (b *bed) checkStored(l *Lock) {
	b.Helper()
	refs := map[string]bool{}
	for _, c := range l.Codes {
		if i := b.index(c.ID); i < 0 || !reflect.DeepEqual(b.codes[i], *c) {
			b.Errorf("a change of code %s is not among the changes", c.ID)
		}
		if c.Ref != "" && refs[c.Ref] {
			b.Errorf("two codes have the reference %q", c.Ref)
		}
		refs[c.Ref] = true
	}
	if len(b.codes) != len(l.Codes) {
		b.Errorf("%d codes are stored, want %d", len(b.codes), len(l.Codes))
	}
	if len(b.attempts) != len(l.Attempts) {
		b.Errorf("%d attempts wait in the store, want %d", len(b.attempts), len(l.Attempts))
	}
}

// edit changes all stored codes, as a test does that skips something.
func (b *bed) edit(f func(*Code)) {
	for i := range b.codes {
		f(&b.codes[i])
	}
}

// code returns a stored code.
func (b *bed) code(id uuid.UUID) view {
	b.Helper()
	i := b.index(id)
	if i < 0 {
		b.Fatal("the code does not exist")
	}
	return viewOf(b.codes[i])
}

func viewOf(c Code) view {
	v := view{Code: copyOf(c)}
	if c.Error != nil {
		v.Errors = []Problem{*c.Error}
	}
	if c.Warning != nil {
		v.Warnings = []Problem{*c.Warning}
	}
	return v
}

// pending reports whether a code has a change that the device has not confirmed.
func (v view) pending() bool { return v.RemovingSince != nil || v.AppliedGen < v.DesiredGen }

func (b *bed) exists(id uuid.UUID) bool { return b.index(id) >= 0 }

func (b *bed) managed() []view {
	return b.codesWith(func(c Code) bool { return c.Managed && !c.InPool })
}

func (b *bed) unmanaged() []view { return b.codesWith(func(c Code) bool { return !c.Managed }) }

func (b *bed) codesWith(has func(Code) bool) (out []view) {
	for _, c := range b.codes {
		if has(c) {
			out = append(out, viewOf(c))
		}
	}
	return out
}

func (b *bed) attempt(r result) result { return b.results[r.ID] }

// eventsOf lists the events about codes with the given types, oldest first.
func (b *bed) eventsOf(types ...string) (out []Event) {
	for _, e := range b.stream {
		if e.Ended == nil && !e.Silent && slices.Contains(types, e.Type) {
			out = append(out, e)
		}
	}
	return out
}

// told lists the types of those events.
func (b *bed) told(types ...string) (out []string) {
	for _, e := range b.eventsOf(types...) {
		out = append(out, e.Type)
	}
	return out
}

// events lists the types of a code's events, oldest first.
func (b *bed) events(code uuid.UUID) (out []string) {
	for _, e := range b.stream {
		if e.Ended == nil && !e.Silent && e.Code == code {
			out = append(out, e.Type)
		}
	}
	return out
}

func countOf(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// request makes a request of a client.
func (b *bed) request(f func(*Lock) (Requested, error)) (result, error) {
	b.Helper()
	var r Requested
	err := b.try(func(l *Lock) (err error) { r, err = f(l); return err })
	return b.results[r.ID], err
}

// requestOf is request for an existing code, which must succeed.
func (b *bed) requestOf(c view, f func(*Lock, *Code) (Requested, error)) result {
	b.Helper()
	r, err := b.request(func(l *Lock) (Requested, error) { return f(l, l.Code(c.ID)) })
	b.must(err)
	return r
}

// add creates a code.
func (b *bed) add(c Code) (view, result, error) {
	b.Helper()
	c.ID, c.PreferNativeScheduling = b.newID(), true
	if c.Name == nil {
		c.Name = new("New Access Code")
	}
	r, err := b.request(func(l *Lock) (Requested, error) { return l.Create(c, l.Occupants()) })
	if err != nil {
		return view{}, r, err
	}
	return b.code(c.ID), r, nil
}

func (b *bed) create(pin PIN) (view, result) {
	b.Helper()
	c, r, err := b.add(Code{PIN: pin})
	b.must(err)
	return c, r
}

// between creates a code with a time frame.
func (b *bed) between(pin PIN, from, to time.Time) view {
	b.Helper()
	c, _, err := b.add(Code{PIN: pin, StartsAt: &from, EndsAt: &to})
	b.must(err)
	return c
}

// onBetween is between for a code that is on the device as k1.
func (b *bed) onBetween(pin PIN, from, to time.Time) view {
	b.Helper()
	c := b.between(pin, from, to)
	b.set(c, "k1")
	return c
}

// on puts a new code on the device under the reference.
func (b *bed) on(pin PIN, ref string) view {
	b.Helper()
	c, _ := b.create(pin)
	b.set(c, ref)
	return c
}

// set makes the next write of a code succeed.
func (b *bed) set(c view, ref string) {
	b.Helper()
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: ref, Confirmed: true})
}

// change is a requested change of a code. nil and zero fields stay.
type change struct {
	Name                        *string
	PIN                         PIN
	StartsAt, EndsAt            *time.Time
	ExternalModificationAllowed *bool
}

func (b *bed) tryUpdate(c view, ch change) (result, error) {
	b.Helper()
	return b.request(func(l *Lock) (Requested, error) {
		code := l.Code(c.ID)
		asked := Change{
			Name:                        ch.Name,
			PIN:                         ch.PIN,
			StartsAt:                    code.StartsAt,
			EndsAt:                      code.EndsAt,
			ExternalModificationAllowed: ch.ExternalModificationAllowed,
			HasFields:                   ch.Name != nil || ch.PIN != "" || ch.StartsAt != nil || ch.EndsAt != nil,
		}
		if ch.PIN == code.PIN {
			asked.PIN = ""
		}
		if ch.StartsAt != nil {
			asked.StartsAt = ch.StartsAt
		}
		if ch.EndsAt != nil {
			asked.EndsAt = ch.EndsAt
		}
		return l.Update(code, asked)
	})
}

func (b *bed) update(c view, ch change) result {
	b.Helper()
	r, err := b.tryUpdate(c, ch)
	b.must(err)
	return r
}

// allow keeps changes of a code at the device.
func (b *bed) allow(c view) {
	b.Helper()
	b.update(c, change{ExternalModificationAllowed: new(true)})
}

func (b *bed) deleteCode(c view) result {
	b.Helper()
	return b.requestOf(c, (*Lock).Remove)
}

func (b *bed) deleteUnmanaged(c view) result {
	b.Helper()
	return b.requestOf(c, (*Lock).RemoveUnmanaged)
}

func (b *bed) unmanage(c view) {
	b.Helper()
	b.requestOf(c, (*Lock).Unmanage)
}

// convert requests that an unmanaged code becomes managed. allowed is nil where the permission stays.
func (b *bed) convert(c view, allowed *bool) result {
	b.Helper()
	return b.requestOf(c, func(l *Lock, c *Code) (Requested, error) { return l.Convert(c, allowed) })
}

// pull pulls a backup code for a code.
func (b *bed) pull(c view) (view, error) {
	b.Helper()
	var id uuid.UUID
	err := b.try(func(l *Lock) (err error) { id, err = l.PullBackup(l.Code(c.ID)); return err })
	if err != nil {
		return view{}, err
	}
	return b.code(id), nil
}

// plan is what the device needs.
type plan struct {
	Plan

	Codes []*Operation
	// seq is the number of the wake-ups that the plan covers.
	seq int64
}

// advance is a step of a pass: it records, and plans.
func (b *bed) advance(record func(*Lock)) plan {
	b.Helper()
	p := plan{seq: b.wakes}
	b.step(func(l *Lock) {
		record(l)
		p.Plan = l.Plan()
	})
	for _, op := range p.Operations {
		p.Codes = append(p.Codes, &op)
	}
	return p
}

func (b *bed) look() plan {
	b.Helper()
	return b.advance(func(*Lock) {})
}

// work returns the next operation of a code.
func (b *bed) work(c view) *Operation {
	b.Helper()
	for _, op := range b.look().Codes {
		if op.Code == c.ID {
			return op
		}
	}
	return &Operation{}
}

func found(ref string, pin PIN) Found { return Found{Ref: ref, PIN: pin, Confirmed: true} }

// read records what a read of the device has found.
func (b *bed) read(found ...Found) {
	b.Helper()
	b.observed(b.look().seq, found)
}

// observed is read for a read that was planned when the device had been woken seq times.
func (b *bed) observed(seq int64, found []Found) {
	b.Helper()
	b.advance(func(l *Lock) {
		seen := Observation{Tombstones: b.tombstones, Abandoned: b.abandoned}
		for _, f := range found {
			f.HasKey = f.HasKey || f.Key != uuid.Nil
			seen.Found = append(seen.Found, f)
		}
		l.Observe(seen)
		l.Device.ReadNeeded = b.device.ReadNeeded && seq != b.wakes
	})
	b.device.Online = true
}

// started starts an operation. It reports whether the code still needs it.
func (b *bed) started(op *Operation) (still bool) {
	b.Helper()
	b.step(func(l *Lock) {
		l.Plan()
		still = l.Start(*op)
	})
	return still
}

// begin starts a write that is planned.
func (b *bed) begin(op *Operation) {
	b.Helper()
	if op.Action != Put {
		b.Fatalf("planned action %q", op.Action)
	}
	if !b.started(op) {
		b.Fatal("the write is not wanted")
	}
}

// end records the outcome of an operation.
func (b *bed) end(op *Operation, o Outcome) {
	b.Helper()
	if op.Action == Nothing || op.Action == Await {
		b.Fatalf("planned action %q", op.Action)
	}
	b.advance(func(l *Lock) { l.Record(*op, o) })
}

// removal records the outcome of a removal.
func (b *bed) removal(op *Operation, confirmed bool, failure *Failure) {
	b.Helper()
	b.end(op, Outcome{Confirmed: confirmed, Failure: failure})
}

// place records the place of a write.
func (b *bed) place(op *Operation, ref string) {
	b.Helper()
	b.step(func(l *Lock) {
		if !l.RecordPlace(*op, ref) {
			b.Fatal("the write is not wanted")
		}
	})
}

// taken runs the deletion of a code like the engine.
func (b *bed) taken(op *Operation) {
	b.Helper()
	if !b.started(op) {
		b.Fatal("the deletion is not wanted")
	}
	b.removal(op, true, nil)
}

// refuse makes the next write of a code fail permanently.
func (b *bed) refuse(c view) {
	b.Helper()
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "not such a PIN"}})
}

// unreachable records that the device could not be reached.
func (b *bed) unreachable(offline, unread bool) {
	b.Helper()
	b.device.ReadNeeded = true
	if offline {
		b.device.Online = false
	}
	if unread {
		b.device.EmptySince = nil
	}
}

// leave removes the device from its account. permanently is true if it cannot return.
func (b *bed) leave(permanently bool) {
	b.Helper()
	b.device.Removed, b.device.Detached, b.device.Online = true, permanently, false
	b.wakes++
	b.look()
}

// away removes the device from its account temporarily.
func (b *bed) away() {
	b.Helper()
	b.leave(false)
	b.device.Removed, b.device.Online, b.device.ReadNeeded = false, true, true
	b.wakes++
}

// quiet asserts that no write is planned for a code, now and for a while.
func (b *bed) quiet(c view, period time.Duration) {
	b.Helper()
	for range 3 {
		if w := b.work(c); w.Action == Put || w.Action == Delete {
			b.Errorf("planned action %q", w.Action)
		}
		b.pass(period / 3)
	}
}

// command requests a command to the device itself.
func (b *bed) command(actionType string) result {
	r := result{ID: b.newID(), Status: Pending}
	b.results[r.ID] = r
	b.attempts = append(b.attempts, Attempt{
		ID:       r.ID,
		Type:     actionType,
		Deadline: b.now().Add(b.timeouts.Attempt),
	})
	return r
}
