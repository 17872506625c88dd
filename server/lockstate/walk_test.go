package lockstate

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The walk drives a lock as package reconcile does, with requests of clients, a simulated lock, people at its keypad,
// and faults in between. It checks the invariants after each transaction, and that the lock comes to rest once the
// faults have stopped.

// walkKind is the kind of a step.
type walkKind byte

const (
	// Steps of the server. pass is the next transaction of a pass; its argument is the fault of a read or an answer.
	stepPass walkKind = iota
	stepDrain
	stepCrash
	// Requests.
	stepCreate
	stepUpdate
	stepDelete
	stepDeleteUnmanaged
	stepConvert
	stepUnmanage
	stepPull
	stepPool
	stepExchange
	// The vendor and the device.
	stepArrive
	stepBreak
	stepOnline
	stepRemoval
	stepManage
	stepSubscription
	// People at the device.
	stepHandAdd
	stepHandChange
	stepHandDelete
	stepHandDisable
	// Time.
	stepSeconds
	stepMinutes
	stepHours
	stepDue
	stepBack
	walkKinds
)

var walkKindNames = [walkKinds]string{
	"pass",
	"drain",
	"crash",
	"create",
	"update",
	"delete",
	"delete unmanaged",
	"convert",
	"unmanage",
	"pull",
	"pool",
	"exchange",
	"arrive",
	"break",
	"online",
	"removal",
	"manage",
	"subscription",
	"hand add",
	"hand change",
	"hand delete",
	"hand disable",
	"seconds",
	"minutes",
	"hours",
	"due",
	"back",
}

// walkWeights are how often a random walk takes a step of each kind.
var walkWeights = [walkKinds]int{
	stepPass:            40,
	stepDrain:           20,
	stepCrash:           4,
	stepCreate:          8,
	stepUpdate:          7,
	stepDelete:          5,
	stepDeleteUnmanaged: 2,
	stepConvert:         3,
	stepUnmanage:        1,
	stepPull:            2,
	stepPool:            1,
	stepExchange:        2,
	stepArrive:          12,
	stepBreak:           1,
	stepOnline:          1,
	stepRemoval:         1,
	stepManage:          1,
	stepSubscription:    1,
	stepHandAdd:         3,
	stepHandChange:      2,
	stepHandDelete:      3,
	stepHandDisable:     1,
	stepSeconds:         8,
	stepMinutes:         6,
	stepHours:           2,
	stepDue:             8,
	stepBack:            1,
}

// walkStep is a step with its choices.
type walkStep struct {
	kind    walkKind
	a, b, c byte
}

func (s walkStep) String() string {
	return fmt.Sprintf("{%s %d %d %d}", walkKindNames[s.kind], s.a, s.b, s.c)
}

// walkScript is a walk. The bytes of the native fuzzer are its encoding.
type walkScript struct {
	profile byte
	steps   []walkStep
}

func (s walkScript) encode() []byte {
	out := []byte{s.profile}
	for _, step := range s.steps {
		out = append(out, byte(step.kind), step.a, step.b, step.c)
	}
	return out
}

// walkLimit bounds the steps of a script from the fuzzer.
const walkLimit = 400

func decodeWalk(b []byte) (s walkScript) {
	if len(b) == 0 {
		return s
	}
	s.profile = b[0] % byte(len(walkProfiles))
	for b = b[1:]; len(b) >= 4 && len(s.steps) < walkLimit; b = b[4:] {
		s.steps = append(s.steps, walkStep{walkKind(b[0]) % walkKinds, b[1], b[2], b[3]})
	}
	return s
}

var walkWheel = func() (wheel []walkKind) {
	for kind, n := range walkWeights {
		wheel = append(wheel, slices.Repeat([]walkKind{walkKind(kind)}, n)...)
	}
	return wheel
}()

func randomWalk(rng *rand.Rand, steps int) walkScript {
	s := walkScript{profile: byte(rng.IntN(len(walkProfiles))), steps: make([]walkStep, steps)}
	for i := range s.steps {
		args := rng.Uint32()
		s.steps[i] = walkStep{walkWheel[rng.IntN(len(walkWheel))], byte(args), byte(args >> 8), byte(args >> 16)}
	}
	return s
}

// walkFailure is a broken invariant.
type walkFailure struct{ invariant, what string }

func (f *walkFailure) Error() string { return f.invariant + ": " + f.what }

// run runs a script and then the return to rest.
func (s walkScript) run(seen *walkTransitions) (err error) {
	w := newWalk(&walkProfiles[int(s.profile)%len(walkProfiles)], seen)
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*walkFailure)
			if !ok {
				panic(r)
			}
			err = f
		}
	}()
	for i, step := range s.steps {
		w.note("step %d %v", i, step)
		w.step(step)
	}
	w.rest()
	return nil
}

// shrink returns a shorter script that breaks the same invariant.
func (s walkScript) shrink(invariant string) walkScript {
	return s.shrinkBy(func(s walkScript) bool {
		err := s.run(nil)
		f, ok := errors.AsType[*walkFailure](err)
		return ok && f.invariant == invariant
	})
}

// shrinkBy returns a script with fewer steps and plainer choices that has the same property.
func (s walkScript) shrinkBy(has func(walkScript) bool) walkScript {
	for size := len(s.steps) / 2; size > 0; {
		dropped := false
		for at := 0; at+size <= len(s.steps); {
			short := walkScript{s.profile, slices.Delete(slices.Clone(s.steps), at, at+size)}
			if has(short) {
				s, dropped = short, true
			} else {
				at += size
			}
		}
		if !dropped || size > 1 {
			size /= 2
		}
	}
	for i, step := range s.steps {
		for _, plain := range []walkStep{
			{kind: step.kind},
			{kind: step.kind, b: step.b, c: step.c},
			{kind: step.kind, a: step.a, c: step.c},
			{kind: step.kind, a: step.a, b: step.b},
		} {
			other := walkScript{s.profile, slices.Clone(s.steps)}
			if other.steps[i] = plain; has(other) {
				s = other
				break
			}
		}
	}
	return s
}

// report fails a test with the shortened script of a broken invariant.
func (s walkScript) report(t *testing.T, name string, err error) {
	t.Helper()
	f, ok := errors.AsType[*walkFailure](err)
	if !ok {
		t.Fatal(err)
	}
	short := s.shrink(f.invariant)
	w := newWalk(&walkProfiles[short.profile], nil)
	w.log = &strings.Builder{}
	err = short.rerun(w)
	t.Fatalf("%s, lock %q: %v\nprofile %d, steps %v\n%s", name, w.p.name, err, short.profile, short.steps, w.log)
}

// rerun is run with a log.
func (s walkScript) rerun(w *walk) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err, _ = r.(error)
		}
	}()
	for i, step := range s.steps {
		w.note("step %d %v", i, step)
		w.step(step)
	}
	w.rest()
	return nil
}

var walkStepsFlag = flag.Int("walk.steps", 100_000, "the number of random steps of TestWalk")

var walkRandom = flag.Bool("walk.random", false, "TestWalk also takes a random seed")

// walkLength is the number of steps of one random walk.
const walkLength = 120

// walkSeeds are the seeds that each run of the test repeats.
var walkSeeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8}

func TestWalk(t *testing.T) {
	t.Parallel()
	seeds := slices.Clone(walkSeeds)
	if *walkRandom {
		seeds = append(seeds, rand.Uint64())
	}
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 0))
		for done := 0; done < *walkStepsFlag/len(seeds); done += walkLength {
			s := randomWalk(rng, walkLength)
			if err := s.run(nil); err != nil {
				s.report(t, fmt.Sprintf("seed %d after %d steps", seed, done), err)
			}
		}
	}
}

func FuzzWalk(f *testing.F) {
	for _, n := range slices.Concat(walkComplaints, walkFound, walkRare) {
		f.Add(walkScript{n.profile, n.steps}.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := decodeWalk(b)
		if err := s.run(nil); err != nil {
			s.report(t, "fuzz", err)
		}
	})
}

// walkTransitions are the transitions between phases and their causes.
type walkTransitions map[walkTransition]int

type walkTransition struct {
	from  Phase
	cause string
	to    Phase
}

// walkPass is the state of a pass.
type walkPass struct {
	stage walkStage
	// seq is the last wake-up that the pass covered when it began, readSeq that which the next read covers.
	seq, readSeq int
	plan         Plan
	handled      map[uuid.UUID]bool
	op           Operation
	outcome      *Outcome
	issues       []Operation
}

type walkStage byte

const (
	passIdle walkStage = iota
	passIssue
	passRead
	passSend
	passRecord
)

// walk is a device in the database, its simulated lock, and the server's pass over it.
type walk struct {
	p   *walkProfile
	sim simLock
	log *strings.Builder

	// real is the time of the lock, now that of the server.
	real, now time.Time
	serial    int

	// The rows.
	device     Device
	rows       []Code
	attempts   []Attempt
	tombstones map[uuid.UUID]bool
	wakeSeq    int
	due        *time.Time

	pass walkPass
	// admits is how many changes of unmanaged codes a read may record.
	admits int
	// ends is the schedule at the end of a pass; nil: the pass goes on.
	ends *walkSchedule

	// knowledge counts what the server has learned, for the check of repeated operations.
	knowledge int
	lastList  []Found
	sent      map[uuid.UUID]walkSent
	told      map[uuid.UUID]*walkTold
	ended     map[uuid.UUID]bool
	phases    map[uuid.UUID]Phase
	seen      *walkTransitions
	// refusedForGood are the codes that the vendor has refused without a cause that a read can show.
	refusedForGood map[uuid.UUID]bool
	// abandoned are the codes whose rows were deleted while the device was not in its account.
	abandoned map[uuid.UUID]bool
	// lied is true if a list has omitted codes.
	lied bool
	// outside is true if something besides the server may have changed the codes of the lock.
	outside bool
}

// walkSchedule is when a device is due, unless it was woken after seq.
type walkSchedule struct {
	due *time.Time
	seq int
}

// walkSent is the last operation of a code.
type walkSent struct {
	op        Operation
	knowledge int
	at        time.Time
}

// walkTold is what the events have said about a code.
type walkTold struct {
	created, deleted, set bool
}

var (
	walkStart    = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	walkTimeouts = Timeouts{
		Confirm:        time.Minute,
		ReadLag:        10 * time.Second,
		EmptyListGrace: 30 * time.Second,
		DelayAfter:     10 * time.Minute,
		Attempt:        5 * time.Minute,
	}
)

func newWalk(p *walkProfile, seen *walkTransitions) *walk {
	w := &walk{
		p:              p,
		sim:            simLock{p: p},
		real:           walkStart,
		now:            walkStart,
		admits:         100,
		device:         Device{Capabilities: p.caps, Managed: true, Online: true, ReadNeeded: true},
		tombstones:     map[uuid.UUID]bool{},
		due:            new(walkStart),
		sent:           map[uuid.UUID]walkSent{},
		told:           map[uuid.UUID]*walkTold{},
		ended:          map[uuid.UUID]bool{},
		phases:         map[uuid.UUID]Phase{},
		refusedForGood: map[uuid.UUID]bool{},
		abandoned:      map[uuid.UUID]bool{},
		seen:           seen,
	}
	w.sim.breach = func(what string, c simCode) {
		if !w.abandoned[c.key] { // otherwise the operation had started before
			w.fail("foreign codes stay", "the foreign code %s was %s", c.ref, what)
		}
	}
	return w
}

func (w *walk) fail(invariant, format string, args ...any) {
	panic(&walkFailure{invariant, fmt.Sprintf(format, args...)})
}

func (w *walk) note(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%s "+format+"\n", append([]any{w.now.Format("02 15:04:05")}, args...)...)
	}
}

func (w *walk) newID() (id uuid.UUID) {
	w.serial++
	id[0] = byte(w.serial * 151) // so that the order of the identifiers is not that of their creation
	binary.BigEndian.PutUint32(id[12:], uint32(w.serial))
	return id
}

func copyPointee[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// copyCode returns a copy that shares nothing, as after a restart.
func copyCode(c *Code) Code {
	out := *c
	out.Name, out.VendorName = copyPointee(c.Name), copyPointee(c.VendorName)
	out.StartsAt, out.EndsAt = copyPointee(c.StartsAt), copyPointee(c.EndsAt)
	out.AppliedAt, out.WriteAt = copyPointee(c.AppliedAt), copyPointee(c.WriteAt)
	out.NextAttemptAt = copyPointee(c.NextAttemptAt)
	out.RemovingSince, out.DriftedAt = copyPointee(c.RemovingSince), copyPointee(c.DriftedAt)
	out.Error, out.Warning = copyPointee(c.Error), copyPointee(c.Warning)
	if out.Applied = copyPointee(c.Applied); out.Applied != nil {
		s := out.Applied
		s.Name, s.VendorName = copyPointee(s.Name), copyPointee(s.VendorName)
		s.StartsAt, s.EndsAt = copyPointee(s.StartsAt), copyPointee(s.EndsAt)
	}
	return out
}

func samePointee[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// sameCode compares two codes by value. A pointer that copyCode does not copy makes them differ.
func sameCode(a, b *Code) bool {
	if !samePointee(a.Name, b.Name) || !samePointee(a.VendorName, b.VendorName) || !sameTime(a.StartsAt, b.StartsAt) ||
		!sameTime(a.EndsAt, b.EndsAt) || !sameTime(a.AppliedAt, b.AppliedAt) || !sameTime(a.WriteAt, b.WriteAt) ||
		!sameTime(a.NextAttemptAt, b.NextAttemptAt) || !sameTime(a.RemovingSince, b.RemovingSince) ||
		!sameTime(a.DriftedAt, b.DriftedAt) || !samePointee(a.Error, b.Error) || !samePointee(a.Warning, b.Warning) ||
		(a.Applied == nil) != (b.Applied == nil) || a.Applied != nil && !sameState(*a.Applied, *b.Applied) {
		return false
	}
	x, y := *a, *b
	for _, c := range []*Code{&x, &y} {
		c.Name, c.VendorName, c.StartsAt, c.EndsAt, c.AppliedAt, c.WriteAt = nil, nil, nil, nil, nil, nil
		c.NextAttemptAt, c.RemovingSince, c.DriftedAt, c.Error, c.Warning, c.Applied = nil, nil, nil, nil, nil, nil
		c.DesiredAt = c.DesiredAt.UTC()
	}
	return x == y
}

func sameState(a, b State) bool {
	return samePointee(a.Name, b.Name) && samePointee(a.VendorName, b.VendorName) && a.PIN == b.PIN &&
		sameTime(a.StartsAt, b.StartsAt) && sameTime(a.EndsAt, b.EndsAt)
}

// walkTx is a transaction on the device.
type walkTx struct {
	*Lock
	w       *walk
	changes Changes
	// seq is the wake-up that a read covers; 0: no read.
	seq int
}

// tx runs a transaction. f returns whether to commit.
func (w *walk) tx(f func(t *walkTx) bool) {
	t := &walkTx{w: w, Lock: &Lock{
		Device:   w.device,
		Codes:    make([]*Code, len(w.rows)),
		Attempts: slices.Clone(w.attempts),
		Now:      w.now,
		Timeouts: walkTimeouts,
		Sources: Sources{
			NewID:  w.newID,
			NewPIN: w.newPIN,
			Jitter: func(span time.Duration) time.Duration { return span / 2 },
			Admit:  func(n int) int { return min(n, w.admits) },
		},
	}}
	for i := range w.rows {
		c := copyCode(&w.rows[i])
		normalize(&c)
		t.Codes[i] = &c
	}
	before := t.Snapshot()
	t.ForgetFuture()
	w.track(t.Lock, "time")
	if !f(t) {
		return
	}
	t.collect()
	w.write(t, before)
}

// normalize reads a confirmed state as package device does: it is the desired one if that was confirmed.
func normalize(c *Code) {
	if c.Applied != nil && c.Managed && c.AppliedGen >= c.DesiredGen {
		c.Applied = new(c.State())
	}
}

func (w *walk) newPIN(taken []PIN) (PIN, bool) {
	for n := 9000; ; n++ {
		if pin := PIN(fmt.Sprint(n)); !slices.Contains(taken, pin) {
			return pin, true
		}
	}
}

// collect moves the changes of the lock, as package device does.
func (t *walkTx) collect() {
	t.changes.Append(t.Changes(nil))
}

// write writes the changes of a transaction in the order of package device, and checks that nothing is missing.
func (w *walk) write(t *walkTx, before map[uuid.UUID]Code) {
	ch := t.changes
	ch.Updated = t.Lock.Changes(before).Updated
	w.rows = slices.DeleteFunc(w.rows, func(c Code) bool { return slices.Contains(ch.Deleted, c.ID) })
	for _, id := range ch.Tombstones {
		w.tombstones[id] = true
	}
	for i, row := range w.rows { // references are unique
		if slices.ContainsFunc(ch.Updated, func(c *Code) bool { return c.ID == row.ID && c.Ref != row.Ref }) {
			w.rows[i].Ref = ""
		}
	}
	for _, c := range ch.Updated {
		i := slices.IndexFunc(w.rows, func(row Code) bool { return row.ID == c.ID })
		if i < 0 {
			w.fail("changes are complete", "an updated code has no row")
		}
		left := w.rows[i].RemovingSince != nil && c.RemovingSince == nil && !c.Managed
		w.rows[i] = copyCode(c)
		if on := w.sim.find(c.Ref); on != nil && left {
			on.foreign, on.owner = true, uuid.Nil // its removal was refused
		}
		w.checkPlace(c)
	}
	for _, c := range ch.Added {
		if slices.Contains(ch.Deleted, c.ID) {
			continue
		}
		w.rows = append(w.rows, inserted(c))
		w.checkPlace(c)
	}
	w.checkRows(t.Lock)
	w.writeAttempts(ch, t.Lock)
	w.device.Pool = t.Device.Pool
	w.writeWake(t, ch)
	if end := w.ends; end != nil {
		if w.ends, w.due = nil, end.due; w.wakeSeq != end.seq {
			w.due = new(w.now)
		}
	}
	for _, e := range ch.Events {
		w.tell(e)
	}
	w.checkFields(t.Lock)
}

// inserted is the row of a new code as package device inserts it.
func inserted(c *Code) Code {
	if c.WriteAt != nil || c.RemovingSince != nil || c.Error != nil || c.Warning != nil { // followed by an update
		return copyCode(c)
	}
	return copyCode(&Code{
		ID:                          c.ID,
		Managed:                     c.Managed,
		Name:                        c.Name,
		PIN:                         c.PIN,
		StartsAt:                    c.StartsAt,
		EndsAt:                      c.EndsAt,
		Status:                      c.Status,
		ExternalModificationAllowed: c.ExternalModificationAllowed,
		PreferNativeScheduling:      c.PreferNativeScheduling,
		Ref:                         c.Ref,
		DesiredGen:                  1,
		DesiredAt:                   c.DesiredAt,
		CommonCodeKey:               c.CommonCodeKey,
		UsesBackupPool:              c.UsesBackupPool,
		IsBackup:                    c.IsBackup,
		InPool:                      c.InPool,
		Offline:                     c.Offline,
	})
}

func (w *walk) writeAttempts(ch Changes, l *Lock) {
	for _, r := range ch.Requested {
		if r.Status == Pending {
			w.attempts = append(w.attempts, r.Attempt)
		}
	}
	for _, e := range ch.Ended {
		if w.ended[e.Attempt.ID] {
			w.fail("attempts end once", "%s ends again", e.Attempt.Type)
		}
		w.ended[e.Attempt.ID] = true
		n := len(w.attempts)
		w.attempts = slices.DeleteFunc(w.attempts, func(a Attempt) bool { return a.ID == e.Attempt.ID })
		if len(w.attempts) == n {
			w.fail("attempts end once", "%s ends without having begun", e.Attempt.Type)
		}
		w.note("    attempt %s %s %s", e.Attempt.Type, e.Status, e.ErrorType)
	}
	same := func(a, b Attempt) bool { return a.ID == b.ID && a.CodeID == b.CodeID && a.Gen == b.Gen }
	if !slices.EqualFunc(w.attempts, l.Attempts, same) {
		w.fail("changes are complete", "attempts %v, want %v", w.attempts, l.Attempts)
	}
}

func (w *walk) writeWake(t *walkTx, ch Changes) {
	if ch.Read != nil {
		w.device.RereadAt, w.device.EmptySince = ch.Read.RereadAt, ch.Read.EmptySince
		w.device.ReadNeeded = w.wakeSeq != t.seq && w.device.ReadNeeded
	}
	if ch.Wake {
		w.wake(ch.WakeToRead)
	}
}

// wake makes the device due.
func (w *walk) wake(read bool) {
	w.wakeSeq++
	w.due = new(w.now)
	w.device.ReadNeeded = w.device.ReadNeeded || read
}

// checkPlace checks that the reference of a code that was just written is unique.
func (w *walk) checkPlace(c *Code) {
	for i := range w.rows {
		if w.rows[i].Ref == c.Ref && c.Ref != "" && w.rows[i].ID != c.ID {
			w.fail("one code in a place", "two codes have the reference %s", c.Ref)
		}
	}
}

// checkRows checks that the rows are the codes of the lock.
func (w *walk) checkRows(l *Lock) {
	if len(w.rows) != len(l.Codes) {
		w.fail("changes are complete", "%d rows, %d codes", len(w.rows), len(l.Codes))
	}
	for i := range w.rows {
		c := l.Code(w.rows[i].ID)
		if c == nil {
			w.fail("changes are complete", "row %+v has no code", w.rows[i])
		}
		was, is := w.rows[i], *c
		normalize(&was)
		normalize(&is)
		if !sameCode(&was, &is) {
			w.fail("changes are complete", "row %+v, code %+v", was, is)
		}
	}
}

// checkFields checks what holds between the fields of each code.
func (w *walk) checkFields(l *Lock) {
	for _, c := range l.Codes {
		switch {
		case (c.Status == StatusRemoving) != (c.RemovingSince != nil) && !c.InPool: // clients do not see the pool
			w.fail("fields agree", "status %s, removing %v", c.Status, c.RemovingSince)
		case max(c.AppliedGen, c.BlockedGen, c.WriteGen) > c.DesiredGen:
			w.fail("fields agree", "a generation above the desired one: %+v", c)
		case c.Managed && c.Status == StatusSet && c.AppliedGen == 0:
			w.fail("fields agree", "set, but nothing was confirmed: %+v", c)
		case c.Ref == "" && c.AppliedGen > 0 && c.Offline == "":
			w.fail("fields agree", "confirmed without a reference: %+v", c)
		}
	}
}

// track records the transitions that a cause has made.
func (w *walk) track(l *Lock, cause string) {
	if w.seen == nil && w.log == nil {
		return
	}
	for id, was := range w.phases {
		if l.Code(id) == nil {
			w.transition(id, was, cause, PhaseGone)
			delete(w.phases, id)
		}
	}
	for _, c := range l.Codes {
		was, ok := w.phases[c.ID]
		if !ok {
			was = PhaseGone
		}
		if is := l.PhaseOf(c); is != was {
			w.transition(c.ID, was, cause, is)
			w.phases[c.ID] = is
		}
	}
}

func (w *walk) transition(id uuid.UUID, from Phase, cause string, to Phase) {
	w.note("    code %d: %s | %s | %s", id[15], from, cause, to)
	if w.seen != nil {
		(*w.seen)[walkTransition{from, cause, to}]++
	}
}

// tell checks that an event is news.
func (w *walk) tell(e Event) {
	if e.Ended != nil {
		return
	}
	w.note("    event %s of %d", e.Type, e.Code[15])
	told := w.told[e.Code]
	if told == nil {
		told = &walkTold{}
		w.told[e.Code] = told
	}
	again := false
	switch e.Type {
	case "access_code.created", "access_code.unmanaged.created":
		again = told.created && e.Type == "access_code.created"
		told.created, told.deleted, told.set = true, false, false
	case "access_code.deleted", "access_code.unmanaged.removed":
		again = told.deleted
		told.deleted = true
		if w.device.Removed { // the code stays on the lock
			w.abandon(e.Code)
		}
	case "access_code.set_on_device":
		again = told.set
		told.set = true
	case "access_code.modified_external_to_seam", "access_code.deleted_external_to_seam":
		if !w.outside {
			w.fail("no change at the device without a cause", "%s", e.Type)
		}
		again, told.set = told.deleted, false
	case MutationsRequested, "access_code.changed":
		again, told.set = told.deleted, false
	default:
		again = told.deleted
		told.set = false
	}
	if again {
		w.fail("events are told once", "%s again", e.Type)
	}
}

// step runs one step.
func (w *walk) step(s walkStep) {
	switch s.kind {
	case stepPass:
		w.advancePass(s.a, s.b)
	case stepDrain:
		for range 30 {
			w.advancePass(0, 0)
			if w.pass.stage == passIdle {
				break
			}
		}
	case stepCrash:
		w.pass = walkPass{}
		w.wake(true)
		w.knowledge++ // the outcome is unknown
	case stepCreate:
		w.create(s)
	case stepUpdate, stepDelete, stepDeleteUnmanaged, stepConvert, stepUnmanage, stepPull:
		w.request(s)
	case stepExchange:
		w.exchange(s)
	case stepPool:
		if w.device.Managed && !w.device.Removed {
			w.device.Pool.Enabled = s.a%2 == 0
			w.wake(false)
		}
	case stepArrive, stepBreak:
		w.sim.arrive(w.real, s.kind == stepBreak)
		w.wake(true)
	case stepOnline, stepRemoval, stepManage, stepSubscription:
		w.stepDevice(s)
	case stepHandAdd, stepHandChange, stepHandDelete, stepHandDisable:
		w.stepHand(s)
	default:
		w.stepTime(s)
	}
}

func (w *walk) stepTime(s walkStep) {
	var d time.Duration
	switch s.kind {
	case stepSeconds:
		d = time.Duration(1+s.a%20) * time.Second
	case stepMinutes:
		d = time.Duration(1+s.a%40) * time.Minute
	case stepHours:
		d = time.Duration(1+s.a%100) * time.Hour
	case stepDue:
		if w.due != nil {
			d = max(w.due.Sub(w.now), 0)
		}
	case stepBack:
		w.outside = true // the server cannot tell how old a list is
		w.now = w.now.Add(-time.Duration(1+s.a%100) * time.Second * time.Duration(1+s.b%30))
		w.knowledge++
	}
	w.elapse(d)
}

func (w *walk) elapse(d time.Duration) {
	w.real, w.now = w.real.Add(d), w.now.Add(d)
}

func (w *walk) stepDevice(s walkStep) {
	switch s.kind {
	case stepOnline:
		w.device.Online = !w.device.Online
		w.wake(true)
	case stepSubscription:
		w.device.SubscriptionMissing = !w.device.SubscriptionMissing
		w.wake(true)
	case stepRemoval:
		if w.device.Detached {
			return
		}
		w.device.Detached = !w.device.Removed && s.a == 255
		if w.device.Removed = !w.device.Removed; w.device.Removed {
			w.device.Online = false
		} else {
			w.device.Online = true
		}
		for _, told := range w.told { // an event of the device
			told.set = false
		}
		w.wake(!w.device.Removed)
	case stepManage:
		if w.device.Removed {
			return
		}
		w.manage(!w.device.Managed)
	}
}

func (w *walk) manage(managed bool) {
	w.tx(func(t *walkTx) bool {
		if !managed {
			t.EndAll("device_unmanaged", "The device became unmanaged.")
			t.DropPool()
		}
		w.track(t.Lock, "request")
		return true
	})
	w.device.Managed = managed
	w.wake(true)
}

// stepHand is what people do at the lock.
func (w *walk) stepHand(s walkStep) {
	w.sim.remember(w.real)
	if s.kind == stepHandAdd {
		c := simCode{name: "by hand", pin: walkPIN(s.b), foreign: true}
		if w.sim.refusal(c, w.sim.codes) != nil {
			return
		}
		c.ref = w.sim.newRef(func(ref string) bool {
			return slices.ContainsFunc(w.rows, func(row Code) bool { return row.Ref == ref || row.WriteRef == ref })
		})
		w.sim.codes = append(w.sim.codes, c)
	} else if n := len(w.sim.codes); n > 0 {
		w.handOn(s, &w.sim.codes[int(s.a)%n])
	}
	if s.c%4 > 0 { // the event of the vendor may be lost
		w.wake(true)
	}
}

func (w *walk) handOn(s walkStep, c *simCode) {
	w.outside = true
	switch s.kind {
	case stepHandDelete:
		ref := c.ref
		w.sim.codes = slices.DeleteFunc(slices.Clone(w.sim.codes), func(o simCode) bool { return o.ref == ref })
	case stepHandDisable:
		c.disabled = !c.disabled
	case stepHandChange:
		changed := *c
		changed.pin = walkPIN(s.b)
		if w.sim.refusal(changed, w.sim.codes) != nil {
			return
		}
		if *c = changed; !w.p.caps.PINVisible {
			c.changedAt = w.now
			w.markUnseen(c)
		}
	}
}

// markUnseen marks a change of a hidden PIN that a row cannot tell from the echo of its own write.
func (w *walk) markUnseen(c *simCode) {
	c.unseen = true
	for i := range w.rows {
		if w.rows[i].Ref == c.ref {
			c.unseen = !pinChangedAtDevice(&w.rows[i], Found{ChangedAt: c.changedAt})
		}
	}
}

func walkPIN(b byte) PIN { return PIN(fmt.Sprint(1000 + int(b)%10)) }

// walkFrame is a time frame.
func (w *walk) walkFrame(b byte) (from, until *time.Time) {
	frame := func(from, until time.Duration) (*time.Time, *time.Time) {
		at := w.now.Truncate(time.Second)
		return new(at.Add(from)), new(at.Add(until))
	}
	switch b % 10 {
	case 0:
		return frame(-time.Hour, 3*time.Hour)
	case 1:
		return frame(10*time.Minute, 5*time.Hour)
	case 2:
		return frame(100*time.Hour, 120*time.Hour)
	case 3:
		return frame(-time.Minute, 5*time.Minute)
	case 4:
		return frame(25*time.Minute, 50*time.Minute)
	case 5:
		return frame(70*time.Minute, 3*time.Hour)
	}
	return nil, nil
}

// create requests a code.
func (w *walk) create(s walkStep) {
	if w.device.Removed || !w.device.Managed || len(w.rows) >= 8 {
		return
	}
	w.tx(func(t *walkTx) bool {
		c := Code{ID: w.newID(), Name: new(fmt.Sprint("guest ", s.c%3)), PreferNativeScheduling: s.c&8 == 0}
		c.StartsAt, c.EndsAt = w.walkFrame(s.a)
		c.ExternalModificationAllowed = s.c&48 == 48
		switch {
		case w.p.caps.OfflineCodes && s.c&64 != 0 && c.StartsAt != nil:
			c.Offline = OfflineHourly
		case !w.p.caps.ProviderPIN:
			c.PIN = walkPIN(s.b)
			c.UsesBackupPool = s.c&128 != 0 && c.StartsAt != nil
		}
		_, err := t.Create(c, t.Occupants())
		w.note("    create %d: %v", c.ID[15], err)
		w.track(t.Lock, "request")
		return err == nil
	})
}

// request requests a change of a code, as a client may.
func (w *walk) request(s walkStep) {
	if !w.device.Managed && !w.device.Removed {
		return
	}
	managed := s.kind != stepConvert && s.kind != stepDeleteUnmanaged
	w.tx(func(t *walkTx) bool {
		var codes []*Code
		for _, c := range t.Codes {
			if c.Managed == managed && !c.InPool {
				codes = append(codes, c)
			}
		}
		if len(codes) == 0 {
			return false
		}
		c := codes[int(s.a)%len(codes)]
		err := w.requestOn(t.Lock, c, s)
		w.note("    %s %d: %v", walkKindNames[s.kind], c.ID[15], err)
		w.track(t.Lock, "request")
		return err == nil
	})
	w.knowledge++
}

var errWalkRejected = errors.New("rejected")

func (w *walk) requestOn(l *Lock, c *Code, s walkStep) (err error) {
	switch s.kind {
	case stepUpdate:
		if c.RemovingSince != nil || c.Offline != "" {
			return errWalkRejected
		}
		gen := c.DesiredGen
		if _, err = l.Update(c, w.change(c, s)); err == nil && c.DesiredGen > gen {
			delete(w.refusedForGood, c.ID)
		}
	case stepDelete:
		if c.Offline != "" && s.b%2 == 0 {
			return errWalkRejected
		}
		_, err = l.Remove(c)
	case stepDeleteUnmanaged:
		if _, err = l.RemoveUnmanaged(c); err == nil && w.p.caps.DeleteUnmanaged {
			w.claim(c)
		}
	case stepConvert:
		var allowed *bool
		if s.b%3 > 0 {
			allowed = new(s.b%3 == 1)
		}
		_, err = l.Convert(c, allowed)
	case stepUnmanage:
		if c.RemovingSince != nil || c.Offline != "" {
			return errWalkRejected
		}
		if _, err = l.Unmanage(c); err == nil {
			if has := w.sim.find(c.Ref); has != nil && (has.key == c.ID || has.owner == c.ID) {
				has.foreign = true
			}
		}
	case stepPull:
		_, err = l.PullBackup(c)
	}
	return err
}

// abandon makes a code on the lock foreign, because its row was deleted while the device was not in its account.
func (w *walk) abandon(id uuid.UUID) {
	if w.tombstones[id] { // its late arrival is removed
		return
	}
	w.abandoned[id] = true
	for i := range w.sim.codes {
		on := w.sim.codes[i]
		if on.key == id || on.owner == id && !w.tombstones[on.key] {
			w.sim.codes[i].foreign = true
		}
	}
	for i := range w.sim.queue {
		if w.sim.queue[i].code.key == id {
			w.sim.queue[i].code.foreign = true
		}
	}
}

// exchange requests that two codes exchange their PINs.
func (w *walk) exchange(s walkStep) {
	if !w.device.Managed || w.device.Removed || w.p.caps.ProviderPIN {
		return
	}
	w.tx(func(t *walkTx) bool {
		var codes []*Code
		for _, c := range t.Codes {
			if c.Managed && !c.InPool && c.RemovingSince == nil && c.Offline == "" {
				codes = append(codes, c)
			}
		}
		if len(codes) < 2 {
			return false
		}
		a, b := codes[int(s.a)%len(codes)], codes[int(s.b)%len(codes)]
		first, second := a.PIN, b.PIN
		for _, ch := range []struct {
			c   *Code
			pin PIN
		}{{a, "8000"}, {b, first}, {a, second}} {
			change := Change{PIN: ch.pin, StartsAt: ch.c.StartsAt, EndsAt: ch.c.EndsAt, HasFields: true}
			if _, err := t.Update(ch.c, change); err != nil {
				return false
			}
		}
		delete(w.refusedForGood, a.ID)
		delete(w.refusedForGood, b.ID)
		w.track(t.Lock, "request")
		return true
	})
	w.knowledge++
}

// claim makes a code on the lock ours, because a client has asked for its removal or conversion.
func (w *walk) claim(c *Code) {
	if has := w.sim.find(c.Ref); has != nil {
		has.foreign, has.owner = false, c.ID
	}
	for i := range w.sim.queue {
		if on := &w.sim.queue[i].code; on.ref == c.Ref {
			on.foreign, on.owner = false, c.ID
		}
	}
}

func (w *walk) change(c *Code, s walkStep) (ch Change) {
	ch.StartsAt, ch.EndsAt, ch.HasFields = c.StartsAt, c.EndsAt, true
	switch s.b % 8 {
	case 0, 1, 2:
		if pin := walkPIN(s.c); pin != c.PIN && !w.p.caps.ProviderPIN {
			ch.PIN = pin
		}
	case 3:
		ch.Name = new(fmt.Sprint("renamed ", s.c%4))
	case 4, 5:
		if !c.UsesBackupPool {
			ch.StartsAt, ch.EndsAt = w.walkFrame(s.c)
		}
	case 6:
		ch.HasFields, ch.ExternalModificationAllowed = false, new(s.c%2 == 0)
	}
	return ch
}
