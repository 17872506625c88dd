package lockstate

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// walkFault is what goes wrong with a read or an operation.
type walkFault byte

const (
	honest walkFault = iota
	// Faults of a read.
	readFails
	readStale
	readEmpty
	readTruncated
	// Faults of an operation.
	answerAccepted
	answerDropped
	refusedForNow
	refusedWithPause
	refusedDuplicate
	refusedConflict
	refusedFull
	refusedInvalid
	refusedUnsupported
	unsureApplied
	unsureLost
	lostApplied
	lostUnapplied
	unreachable
	wrongRefUnstorable
	wrongRefUnknown
	createdDifferent
	walkFaults
)

// faultFrom is the lowest first argument of a pass with a fault.
const faultFrom = 150

// with is the first argument of a pass with a fault.
func with(f walkFault) byte { return faultFrom + byte(f) }

func faultOf(b byte) walkFault {
	if b < faultFrom {
		return honest
	}
	return walkFault((b - faultFrom) % byte(walkFaults))
}

// advancePass runs the next transaction of a pass, as package reconcile does.
func (w *walk) advancePass(a, b byte) {
	switch w.pass.stage {
	case passIdle:
		w.beginPass()
	case passIssue:
		w.issue(faultOf(a))
	case passRead:
		w.read(faultOf(a), b)
	case passSend:
		w.send(faultOf(a), b)
	case passRecord:
		w.recordAndPlan(b)
	}
}

// recordAndPlan records the outcome of an operation and the next operation. After the last one it reads the lock first,
// unless the lock is slow.
func (w *walk) recordAndPlan(slow byte) {
	op, o := w.pass.op, *w.pass.outcome
	reads := o.Failure == nil && !o.Confirmed && w.p.caps.ListCodes && w.device.Online && !w.device.Removed &&
		slow%2 == 0 && w.nextOperation(w.pass.plan) == nil
	if !reads {
		w.advance(func(t *walkTx) { w.record(t, op, o) }, w.next)
		return
	}
	list, seq := w.sim.list(), w.pass.readSeq
	w.seeList(list)
	w.advance(func(t *walkTx) {
		w.record(t, op, o)
		w.observe(t, list, seq)
		t.changes.Wake, t.changes.WakeToRead = false, false
	}, w.next)
}

// advance records what happened, plans, and records the next operation or the end of the pass, in one transaction.
func (w *walk) advance(record func(t *walkTx), decide func(p Plan) (start *Operation, end bool)) {
	w.tx(func(t *walkTx) bool {
		if record != nil {
			record(t)
		}
		plan := t.Plan()
		t.collect()
		cause := "time"
		if w.device.Removed {
			cause = "device removed"
		}
		w.track(t.Lock, cause)
		w.checkPlan(t.Lock, plan)
		w.pass.plan = plan
		seq := w.wakeSeq
		w.pass.readSeq = seq
		start, end := decide(plan)
		if start != nil && t.Start(*start) {
			w.checkLeft(t.Lock, *start)
			w.track(t.Lock, "operation")
			w.pass.op, w.pass.outcome, w.pass.stage = *start, nil, passSend
		} else if start != nil {
			end = true
			w.pass.stage = passIdle
		}
		if end {
			if plan.ReadNeeded && w.pass.handled != nil {
				seq = w.pass.seq // another read was requested and relies on this pass
			}
			w.pass = walkPass{}
			w.ends = &walkSchedule{w.dueOf(plan), seq}
		}
		return true
	})
}

// beginPass looks whether the device needs work.
func (w *walk) beginPass() {
	seq := w.wakeSeq
	w.pass = walkPass{seq: seq}
	w.advance(nil, func(p Plan) (*Operation, bool) {
		quiet := !p.ReadNeeded && len(p.Operations) == 0
		if w.device.Removed || quiet && len(p.Issues) == 0 {
			return nil, true
		}
		w.pass.handled = map[uuid.UUID]bool{}
		if w.pass.stage = passRead; len(p.Issues) > 0 {
			w.pass.stage, w.pass.issues = passIssue, p.Issues
		}
		return nil, false
	})
}

// issue issues the next offline code.
func (w *walk) issue(f walkFault) {
	op := w.pass.issues[0]
	w.pass.issues = w.pass.issues[1:]
	w.sim.serial++
	o := Outcome{Ref: fmt.Sprint("offline ", w.sim.serial), PIN: PIN(fmt.Sprint("o", w.sim.serial))}
	switch f {
	case refusedForNow, refusedDuplicate, refusedFull, refusedInvalid, refusedUnsupported:
		o = Outcome{Failure: &Failure{Class: refusalClass[f], Message: "refused"}}
		w.refusedForGood[op.Code] = true
	case unreachable, lostApplied, lostUnapplied:
		w.park()
		return
	}
	w.advance(func(t *walkTx) { w.record(t, op, o) }, func(Plan) (*Operation, bool) { return nil, false })
	if len(w.pass.issues) > 0 {
		return
	}
	w.advance(nil, func(p Plan) (*Operation, bool) {
		w.pass.stage = passRead
		return nil, !p.ReadNeeded && len(p.Operations) == 0
	})
}

// park ends a pass whose device did not answer.
func (w *walk) park() {
	w.pass = walkPass{}
	w.device.ReadNeeded = true
	w.due = new(w.now.Add(20 * time.Second))
}

// read reads the device.
func (w *walk) read(f walkFault, b byte) {
	switch {
	case w.device.Removed:
		w.park()
		return
	case f == readFails || !w.device.Online:
		w.device.EmptySince = nil
		w.park()
		return
	case !w.device.Managed && len(w.pass.plan.Operations) == 0:
		w.device.ReadNeeded = w.device.ReadNeeded && w.wakeSeq != w.pass.readSeq
		w.advance(nil, w.next)
		return
	case !w.p.caps.ListCodes:
		w.advance(nil, w.next)
		return
	}
	list := w.sim.list()
	w.outside = w.outside || f == readEmpty || f == readTruncated
	switch {
	case f == readStale:
		// After an accepted removal, the first list without the code is believed, even if it is older than the code.
		w.lied = w.lied || slices.ContainsFunc(w.rows, func(c Code) bool {
			return c.RemovingSince != nil && c.WriteAccepted
		})
		list = w.sim.listAt(w.real.Add(-time.Duration(b%10) * time.Second))
	case f == readEmpty && len(list) > 0:
		list, w.lied = nil, true
	case f == readTruncated && len(list) > 0:
		i := int(b) % len(list)
		list, w.lied = slices.Delete(list, i, i+1), true
	}
	w.seeList(list)
	if b%6 == 5 { // the inventory rate limit
		w.admits = int(b) % 2
	}
	seq := w.pass.readSeq
	w.advance(func(t *walkTx) { w.observe(t, list, seq) }, w.next)
	w.admits = 100
}

// seeList notes what a read has shown.
func (w *walk) seeList(list []Found) {
	if !reflect.DeepEqual(list, w.lastList) {
		w.lastList = list
		w.knowledge++
	}
	if w.log != nil {
		w.note("    list %s", showList(list))
	}
}

func showList(list []Found) (out []string) {
	for _, f := range list {
		s := fmt.Sprintf("%s:%s %q key %d", f.Ref, f.PIN, f.Name, f.Key[15])
		if !f.Confirmed {
			s += " unconfirmed"
		}
		if f.Removing {
			s += " removing"
		}
		if f.Failure != nil {
			s += " failed"
		}
		if f.Disabled {
			s += " disabled"
		}
		out = append(out, s)
	}
	return out
}

func (w *walk) observe(t *walkTx, list []Found, seq int) {
	seen := Observation{Found: list}
	for _, f := range list {
		if w.tombstones[f.Key] && t.Code(f.Key) == nil {
			if seen.Tombstones == nil {
				seen.Tombstones = map[uuid.UUID]bool{}
			}
			seen.Tombstones[f.Key] = true
		}
	}
	for id, sent := range w.sent { // a read is new knowledge
		sent.knowledge = min(sent.knowledge, w.knowledge-1)
		w.sent[id] = sent
	}
	t.seq = seq
	sent := uncertainWrites(t.Lock)
	deferred := t.Observe(seen)
	w.claimAlike(sent)
	read := t.Lock.changes.Read
	if deferred > 0 && read != nil {
		read.RereadAt = earlier(read.RereadAt, w.now.Add(20*time.Second))
	}
	t.collect()
	w.track(t.Lock, "read")
	if read != nil {
		t.Device.ReadNeeded = w.device.ReadNeeded && w.wakeSeq != seq
		t.Device.RereadAt = read.RereadAt
	}
	for _, e := range t.changes.Events {
		if e.Type == "access_code.unmanaged.converted_to_managed" {
			w.claim(t.Code(e.Code))
		}
	}
}

// uncertainWrites returns the codes whose reference is unknown after a write.
func uncertainWrites(l *Lock) (out []*Code) {
	for _, c := range l.Codes {
		if c.Managed && c.Ref == "" && c.WriteGen > 0 {
			out = append(out, c)
		}
	}
	return out
}

// claimAlike makes foreign codes ours that have the PIN of an uncertain write: the list does not tell them apart.
func (w *walk) claimAlike(sent []*Code) {
	for _, c := range sent {
		on := w.sim.find(c.Ref)
		if on != nil && on.foreign && w.p.caps.PINVisible && (on.pin == c.PIN || on.pin == c.WritePIN) {
			on.foreign = false
		}
	}
}

// record records an outcome.
func (w *walk) record(t *walkTx, op Operation, o Outcome) {
	t.Record(op, o)
	w.track(t.Lock, "answer")
	if o.Failure == nil {
		w.knowledge++
	}
}

// next decides what the pass sends next (reconcile.pass.next).
func (w *walk) next(p Plan) (*Operation, bool) {
	op := w.nextOperation(p)
	return op, op == nil
}

func (w *walk) nextOperation(p Plan) *Operation {
	leaving := slices.ContainsFunc(p.Operations, func(op Operation) bool { return op.Leaving })
	for _, action := range []Action{Delete, Find, Put} {
		for _, op := range p.Operations {
			if op.Action == action && !w.pass.handled[op.Code] && (action != Put || !leaving || !op.New) {
				return &op
			}
		}
	}
	return nil
}

// dueOf returns when the device is due after a pass (reconcile.Reconciler.due).
func (w *walk) dueOf(p Plan) *time.Time {
	if w.device.Removed {
		return p.Due
	}
	leaving := slices.ContainsFunc(p.Operations, func(op Operation) bool { return op.Leaving })
	ready := len(p.Issues) > 0 || slices.ContainsFunc(p.Operations, func(op Operation) bool {
		return op.Action == Delete || op.Action == Find || op.Action == Put && (!leaving || !op.New)
	})
	if ready {
		return new(w.now)
	}
	return p.Due
}

var refusalClass = map[walkFault]FailureClass{
	refusedForNow:      FailedForNow,
	refusedWithPause:   FailedForNow,
	refusedDuplicate:   FailedDuplicate,
	refusedConflict:    FailedDuplicate,
	refusedFull:        FailedFull,
	refusedInvalid:     FailedInvalid,
	refusedUnsupported: FailedUnsupported,
}

// send sends the operation of the pass to the vendor. A later transaction records the answer.
func (w *walk) send(f walkFault, b byte) {
	op := w.pass.op
	w.pass.handled[op.Code] = true
	w.checkRepeated(op)
	w.note("    send %s of %d at %q: PIN %s, gen %d, fault %d", op.Action, op.Code[15], op.Ref, op.PIN, op.Gen, f)
	switch f {
	case answerDropped, wrongRefUnstorable, wrongRefUnknown, createdDifferent, refusedConflict:
		w.outside = true
	}
	if w.device.Removed || !w.device.Online || w.device.SubscriptionMissing {
		f = unreachable
	}
	if op.Action == Put && op.Ref != "" && !w.p.caps.PINVisible && f == answerDropped || !w.p.caps.ListCodes &&
		(f == answerDropped || f == wrongRefUnknown) {
		f = answerAccepted // no read shows that the change is missing
	}
	switch f {
	case refusedForNow, refusedWithPause, refusedDuplicate, refusedConflict, refusedFull, refusedInvalid,
		refusedUnsupported:
		w.answer(w.refusal(op, f, b))
		return
	case unreachable:
		if op.Action == Put && !w.p.caps.ListCodes {
			w.advance(func(t *walkTx) { w.record(t, op, Outcome{Unsent: true}) },
				func(Plan) (*Operation, bool) { return nil, false })
		}
		w.park()
		return
	}
	apply := f != answerDropped && f != unsureLost && f != lostUnapplied && f != wrongRefUnknown
	async := w.p.async || f == answerAccepted || f == answerDropped
	if async && !w.p.caps.ListCodes { // no read shows that it has arrived
		w.refusedForGood[op.Code] = true
	}
	o, wanted := w.apply(op, f, apply, async)
	if !wanted {
		w.park()
		return
	}
	switch f {
	case unsureApplied, unsureLost:
		o = Outcome{Failure: &Failure{Class: FailedForNow, Message: "unsure", Unsure: true}}
	case lostApplied, lostUnapplied:
		w.park()
		return
	case wrongRefUnstorable:
		if op.Action == Put && o.Failure == nil {
			o.Ref = "\x00"
			w.refusedForGood[op.Code] = true
		}
	case wrongRefUnknown:
		if op.Action == Put && op.Ref == "" && o.Failure == nil {
			o.Ref = "unknown " + o.Ref
		}
	}
	w.answer(&o)
}

// answer keeps an answer for the next transaction.
func (w *walk) answer(o *Outcome) {
	if o.Failure != nil {
		if o.Failure.Class == FailedInvalid || !w.p.caps.ListCodes { // nothing shows that the cause has gone
			w.refusedForGood[w.pass.op.Code] = true
		}
		w.note("    answer %s %s %q unsure %v, ref %q", o.Failure.Class, o.Failure.Message, o.Failure.ConflictRef,
			o.Failure.Unsure, o.Ref)
	} else {
		w.note("    answer %q confirmed %v", o.Ref, o.Confirmed)
	}
	w.pass.outcome, w.pass.stage = o, passRecord
}

// refusal is a refusal without a cause.
func (w *walk) refusal(op Operation, f walkFault, b byte) *Outcome {
	fail := &Failure{Class: refusalClass[f], Message: "refused"}
	if f == refusedWithPause {
		fail.RetryAfter = 5 * time.Minute
	}
	if f == refusedConflict && len(w.sim.codes) > 0 {
		c := w.sim.codes[int(b)%len(w.sim.codes)]
		if c.ref != op.Ref || w.p.caps.PINVisible {
			fail.ConflictRef = c.ref
		}
	}
	if fail.Class != FailedForNow {
		w.refusedForGood[op.Code] = true
	}
	return &Outcome{Failure: fail}
}

// apply lets an operation have its effect. It reports whether the operation was still wanted.
func (w *walk) apply(op Operation, f walkFault, apply, async bool) (o Outcome, wanted bool) {
	if op.Action == Delete {
		return w.sim.remove(op.Ref, w.real, apply, async), true
	}
	if f == createdDifferent && op.Ref == "" && !w.p.slots && !w.p.caps.ProviderPIN {
		op.PIN = "7" + op.PIN
		o = w.sim.put(op, op.Code, w.now, true, false, nil)
		if on := w.sim.find(o.Ref); on != nil { // if the answer gets lost
			on.unseen = true
		}
		if o.Failure == nil {
			o.Failure = &Failure{Class: FailedForNow, Message: "differs", Unsure: true}
		}
		return o, true
	}
	wanted = true
	o = w.sim.put(op, op.Code, w.now, apply, async, func(ref string) bool {
		w.tx(func(t *walkTx) bool {
			wanted = t.RecordPlace(op, ref)
			w.track(t.Lock, "answer")
			return wanted
		})
		return wanted
	})
	return o, wanted
}

// checkRepeated checks that an operation is not repeated without new knowledge.
func (w *walk) checkRepeated(op Operation) {
	key := op
	key.State, key.StartsAt, key.EndsAt = State{}, nil, nil
	last, ok := w.sent[op.Code]
	if ok && last.op == key && last.knowledge == w.knowledge && w.now.Sub(last.at) < firstPause && w.p.caps.ListCodes {
		w.fail("no repetition without news", "%s at %q is sent again after %s", op.Action, op.Ref, w.now.Sub(last.at))
	}
	w.sent[op.Code] = walkSent{key, w.knowledge, w.now}
}

// checkLeft checks that no code gets the PIN of a code that must leave and has not left.
func (w *walk) checkLeft(l *Lock, op Operation) {
	if op.Action != Put {
		return
	}
	for _, o := range l.Codes {
		if o.ID == op.Code || o.Ref == "" || o.RemovingSince == nil {
			continue
		}
		on, known := w.sim.find(o.Ref), op.PIN != "" && o.PIN == op.PIN && o.AppliedGen == o.DesiredGen
		if known && on != nil && on.pin == op.PIN && on.key == o.ID {
			w.fail("a code leaves before another gets its PIN", "the PIN of %q is put while it is there", o.Ref)
		}
		if op.Ref == o.Ref {
			w.fail("a code leaves before another gets its place", "%q is overwritten", o.Ref)
		}
	}
}

// checkPlan checks what a plan may contain.
func (w *walk) checkPlan(l *Lock, p Plan) {
	for _, op := range p.Operations {
		c := l.Code(op.Code)
		switch {
		case c == nil:
			w.fail("plans are sound", "%s of a code without a row", op.Action)
		case !c.Managed && c.RemovingSince == nil:
			w.fail("foreign codes stay", "%s of an unmanaged code is planned", op.Action)
		case op.Action == Put && c.BlockedGen >= c.DesiredGen:
			w.fail("plans are sound", "a refused state is planned")
		}
	}
}

// rest ends all faults, and checks that everything comes to rest in the desired state.
func (w *walk) rest() {
	w.note("rest")
	w.device.Online, w.device.SubscriptionMissing = true, false
	if w.device.Detached {
		w.restDetached()
		return
	}
	if w.device.Removed {
		w.device.Removed = false
		for _, told := range w.told {
			told.set = false
		}
	}
	for len(w.sim.queue) > 0 {
		w.sim.arrive(w.real, false)
	}
	if !w.device.Managed {
		w.manage(true)
	}
	w.wake(true)
	w.settle(3 * time.Hour)
	// A change of the device's other codes lifts refusals whose cause has gone.
	if w.p.caps.ListCodes {
		w.note("a foreign code comes and goes")
		w.sim.remember(w.real)
		c := simCode{ref: "passer-by", name: "passer-by", pin: "5555", foreign: true}
		w.sim.codes = append(w.sim.codes, c)
		w.wake(true)
		w.settle(time.Minute)
		w.sim.codes = slices.DeleteFunc(w.sim.codes, func(c simCode) bool { return c.ref == "passer-by" })
		w.wake(true)
	}
	w.settle(3 * time.Hour)
	w.checkRest()
	w.settle(10 * 24 * time.Hour)
	w.checkRest()
	if w.due != nil { // all time frames have ended
		w.fail("an idle lock is left alone", "it is due at %v", w.due)
	}
}

// restDetached checks that a device that cannot return has no work left.
func (w *walk) restDetached() {
	w.wake(false)
	w.settle(10 * 24 * time.Hour)
	for i := range w.rows {
		if c := &w.rows[i]; c.RemovingSince != nil && !c.InPool || !c.Managed {
			w.fail("every request ends", "code %d stays on a device that cannot return", c.ID[15])
		}
	}
	if len(w.attempts) > 0 || w.due != nil {
		w.fail("an idle lock is left alone", "%d attempts, due at %v", len(w.attempts), w.due)
	}
}

// settle runs the server for a time.
func (w *walk) settle(d time.Duration) {
	end, still, all := w.now.Add(d), 0, 0
	for {
		for w.pass.stage != passIdle || w.due != nil && !w.due.After(w.now) {
			w.advancePass(0, 0)
			if still++; still > 150 {
				w.fail("no busy loop", "%d transactions without a pause", still)
			}
			if all++; all > 3000 {
				w.fail("no busy loop", "%d transactions in %s", all, d)
			}
		}
		if (w.due == nil || w.due.After(end)) && len(w.sim.queue) > 0 { // the vendor reports what arrives
			w.elapse(time.Second)
			for len(w.sim.queue) > 0 {
				w.sim.arrive(w.real, false)
			}
			w.wake(true)
		}
		if w.due == nil || w.due.After(end) {
			break
		}
		if w.due.Sub(w.now) >= time.Second {
			still = 0
		}
		w.elapse(w.due.Sub(w.now))
		for len(w.sim.queue) > 0 {
			w.sim.arrive(w.real, false)
		}
	}
	if w.now.Before(end) {
		w.elapse(end.Sub(w.now))
	}
}

// checkRest checks that each code is in its desired state, refused, or waits for its start.
func (w *walk) checkRest() {
	w.tx(func(t *walkTx) bool {
		for _, c := range t.Codes {
			w.checkCodeAtRest(t.Lock, c)
		}
		for _, a := range t.Attempts {
			w.fail("every request ends", "%s of %d is pending", a.Type, a.CodeID[15])
		}
		for _, c := range w.sim.codes {
			w.checkLockAtRest(t.Lock, c)
		}
		return false
	})
}

func (w *walk) checkCodeAtRest(l *Lock, c *Code) {
	r := l.waitsFor(c)
	w.note("    code %d at rest: %s, waits for %q, ref %q, PIN %s, gens %d %d %d",
		c.ID[15], l.PhaseOf(c), r.kind, c.Ref, c.PIN, c.DesiredGen, c.AppliedGen, c.BlockedGen)
	switch {
	case c.RemovingSince != nil:
		w.fail("every request ends", "code %d is being removed, waits for %q", c.ID[15], r.kind)
	case !c.Managed:
		if w.p.caps.ListCodes && w.sim.find(c.Ref) == nil {
			w.fail("the lock has what is wanted", "unmanaged code %d is not on the lock", c.ID[15])
		}
	case c.AppliedGen >= c.DesiredGen:
		if c.Offline == "" {
			w.checkOnLock(c)
		}
		if c.Error != nil {
			w.fail("every request ends", "code %d is set with the error %s", c.ID[15], c.Error.Code)
		}
		if want := c.statusOn(l.Now); c.Status != want && !c.disabledWithPermission() {
			w.fail("every request ends", "code %d has status %s, want %s", c.ID[15], c.Status, want)
		}
	case r.kind == waitsForStartTime:
	case r.kind == isRefusedFinally:
		w.checkRefused(c)
	default:
		w.fail("every request ends", "code %d is %s and waits for %q until %v", c.ID[15], l.PhaseOf(c), r.kind, r.until)
	}
}

// checkRefused checks that a refusal has a cause.
func (w *walk) checkRefused(c *Code) {
	if c.Error == nil && c.staysOff() {
		return
	}
	want := simCode{ref: c.Ref, pin: c.PIN, name: domain.Value(c.VendorName)}
	honestly := w.sim.refusal(want, w.sim.codes) != nil
	if c.Error == nil {
		w.fail("every request ends", "code %d is refused without an error", c.ID[15])
	}
	if !honestly && !w.refusedForGood[c.ID] {
		w.fail("every request ends", "code %d is refused without a cause: %s", c.ID[15], c.Error.Code)
	}
}

// checkOnLock checks that the lock has the desired state of a code.
func (w *walk) checkOnLock(c *Code) {
	on := w.sim.find(c.Ref)
	bad := ""
	switch {
	case on == nil:
		bad = "is not on the lock"
		if !w.p.caps.ListCodes { // no read shows that
			bad = ""
		}
	case !w.p.caps.ListCodes:
	case !w.p.caps.PINVisible && (on.unseen || w.lied): // a code that was left out looks like a lost write of it
	case c.PIN != "" && on.pin != c.PIN && (w.p.caps.PINVisible || !c.hasWarning(domain.WarnExternal)):
		bad = fmt.Sprintf("has PIN %s on the lock, want %s", on.pin, c.PIN)
	case w.p.caps.NativeSchedule && NativeSchedule(c, w.p.caps) && !w.p.caps.StartsInFuture() &&
		(!sameSecond(on.starts, c.StartsAt) || !sameSecond(on.ends, c.EndsAt)):
		bad = fmt.Sprintf("is valid from %v until %v", on.starts, on.ends)
	case on.disabled && !c.disabledWithPermission():
		bad = "is disabled"
	}
	if bad != "" {
		w.fail("the lock has what is wanted", "code %d %s", c.ID[15], bad)
	}
}

// checkLockAtRest checks that a code on the lock belongs to a row, and a code of ours to a managed one.
func (w *walk) checkLockAtRest(l *Lock, on simCode) {
	if !w.p.caps.ListCodes {
		return
	}
	c := l.CodeByRef(on.ref)
	switch {
	case c == nil:
		w.fail("the lock has what is wanted", "%q of %d has no row", on.ref, on.key[15])
	case on.foreign || c.Managed || w.lied || !w.p.keys || w.abandoned[on.key]:
	case on.key == uuid.Nil && on.owner == uuid.Nil: // it was ours only because it looked like a lost write
	default:
		w.fail("the lock has what is wanted", "%q of %d stays on the lock", on.ref, on.key[15])
	}
}
