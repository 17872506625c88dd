package lockstate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// walkProfile is one kind of lock.
type walkProfile struct {
	name string
	caps capability.Set
	// keys means that the vendor keeps our identifiers.
	keys bool
	// slots means that references are slots, which are used again, and that each write is confirmed at once.
	slots bool
	// async means that an accepted write reaches the lock later.
	async bool
	// late means that a list does not show a creation that has not reached the lock.
	late bool
}

var walkProfiles = []walkProfile{
	{
		name: "visible, native", keys: true, async: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, ModifyInPlace: true, PINVisible: true, NativeSchedule: true,
			DeleteUnmanaged: true, Convert: capability.ConvertAdopt, MaxCodes: 6,
		},
	},
	{
		name: "visible, confirmed at once", keys: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, ModifyInPlace: true, PINVisible: true,
			DeleteUnmanaged: true, Convert: capability.ConvertAdopt,
		},
	},
	{
		name: "hidden, keys", keys: true, async: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, ModifyInPlace: true, DeleteUnmanaged: true,
			Convert: capability.ConvertRewrite, MaxCodes: 5,
		},
	},
	{
		name: "hidden slots", slots: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, ModifyInPlace: true, DeleteUnmanaged: true,
			Convert: capability.ConvertRewrite, MaxCodes: 5,
		},
	},
	{
		name: "visible slots", slots: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, ModifyInPlace: true, PINVisible: true,
			Convert: capability.ConvertAdopt, MaxCodes: 4,
		},
	},
	{
		name: "vendor's PIN", keys: true, async: true, late: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, ModifyInPlace: true, PINVisible: true, ProviderPIN: true,
			NativeSchedule: true, DeleteUnmanaged: true, Convert: capability.ConvertAdopt,
		},
	},
	{
		name: "recreated, visible", keys: true, async: true, late: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, PINVisible: true, NativeSchedule: true,
			DeleteUnmanaged: true, Convert: capability.ConvertAdopt, MaxCodes: 6,
		},
	},
	{
		name: "recreated, hidden", keys: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, DeleteUnmanaged: true, Convert: capability.ConvertNever,
		},
	},
	{
		name: "no list", keys: true,
		caps: capability.Set{OnlineCodes: true, ModifyInPlace: true, NativeSchedule: true},
	},
	{
		name: "no list, recreated", keys: true,
		caps: capability.Set{OnlineCodes: true, MaxCodes: 5},
	},
	{
		name: "unique names, future starts", keys: true, async: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, ModifyInPlace: true, PINVisible: true, NativeSchedule: true,
			OfflineCodes: true, Convert: capability.ConvertNever, MaxCodes: 6,
			Constraints: []capability.Constraint{
				{Type: "name_must_be_unique"},
				{Type: "start_date_in_future"},
				{Type: "name_length", MinLength: 2, MaxLength: 8},
			},
		},
	},
	{
		name: "visible, no keys", async: true,
		caps: capability.Set{
			OnlineCodes: true, ListCodes: true, ModifyInPlace: true, PINVisible: true, NativeSchedule: true,
			DeleteUnmanaged: true, Convert: capability.ConvertAdopt,
		},
	},
}

// simCode is a code on the simulated lock.
type simCode struct {
	ref, name    string
	key          uuid.UUID
	pin          PIN
	starts, ends *time.Time
	disabled     bool
	// foreign means that the code is not ours: the server may neither change nor delete it.
	foreign bool
	// owner is the row that a client has asked to convert or to remove.
	owner uuid.UUID
	// changedAt is when people last changed a hidden PIN.
	changedAt time.Time
	// unseen means that a change of a hidden PIN cannot be told from the echo of a write.
	unseen bool
	// failure is why the vendor gave up the last write.
	failure *Failure
}

type simOp struct {
	action Action
	code   simCode
	// update means that the write changes a code in place.
	update bool
}

type simPast struct {
	until time.Time
	codes []Found
}

// simLock is a simulated lock with its vendor. It refuses duplicate PINs, more codes than fit, and duplicate names
// where they must be unique.
type simLock struct {
	p     *walkProfile
	codes []simCode
	// queue are the accepted writes that have not reached the lock.
	queue []simOp
	// failed are creations that the vendor gave up.
	failed []simCode
	serial int
	// past are earlier lists, for stale reads.
	past []simPast
	// breach reports a change of a code that is not ours.
	breach func(what string, c simCode)
}

func (v *simLock) find(ref string) *simCode {
	for i := range v.codes {
		if v.codes[i].ref == ref {
			return &v.codes[i]
		}
	}
	return nil
}

// intended are the codes after the pending writes. A code that is being deleted still counts.
func (v *simLock) intended() []simCode {
	if len(v.queue) == 0 {
		return v.codes
	}
	out := slices.Clone(v.codes)
	for _, o := range v.queue {
		i := slices.IndexFunc(out, func(c simCode) bool { return c.ref == o.code.ref })
		switch {
		case o.action == Put && i >= 0:
			out[i] = o.code
		case o.action == Put:
			out = append(out, o.code)
		}
	}
	return out
}

// refusal is why an honest lock refuses a code besides others; nil: it does not.
func (v *simLock) refusal(c simCode, others []simCode) *Failure {
	has := false
	for _, o := range others {
		switch {
		case o.ref == c.ref && c.ref != "":
			has = true
		case o.pin == c.pin:
			return &Failure{Class: FailedDuplicate, Message: "taken", ConflictRef: o.ref}
		case v.p.caps.UniqueNames() && strings.EqualFold(o.name, c.name):
			return &Failure{Class: FailedInvalid, Message: "name taken"}
		}
	}
	if !has && v.p.caps.MaxCodes > 0 && len(others) >= v.p.caps.MaxCodes {
		return &Failure{Class: FailedFull, Message: "full"}
	}
	return nil
}

func (v *simLock) newRef(used func(string) bool) string {
	if !v.p.slots {
		v.serial++
		return fmt.Sprint("r", v.serial)
	}
	for n := 1; ; n++ {
		ref := fmt.Sprint(n)
		queued := slices.ContainsFunc(v.queue, func(o simOp) bool { return o.code.ref == ref })
		if v.find(ref) == nil && !queued && (used == nil || !used(ref)) {
			return ref
		}
	}
}

// remember keeps the current list for stale reads.
func (v *simLock) remember(at time.Time) {
	if !v.p.caps.ListCodes {
		return
	}
	if len(v.past) >= 6 {
		v.past = slices.Delete(v.past, 0, 1)
	}
	v.past = append(v.past, simPast{at, v.list()})
}

// listAt is the list as it was at a time.
func (v *simLock) listAt(at time.Time) []Found {
	for _, p := range v.past {
		if p.until.After(at) {
			return slices.Clone(p.codes)
		}
	}
	return v.list()
}

func (v *simLock) list() []Found {
	out := make([]Found, 0, len(v.codes)+len(v.queue))
	for i := range v.codes {
		f := v.found(v.codes[i])
		f.Confirmed, f.Failure = true, v.codes[i].failure
		for _, o := range v.queue {
			switch {
			case o.code.ref != f.Ref:
			case o.action == Delete:
				f.Removing = true
			default:
				f.Confirmed, f.Failure = false, nil
			}
		}
		out = append(out, f)
	}
	for _, o := range v.queue {
		if o.action == Put && !v.p.late && v.find(o.code.ref) == nil {
			out = append(out, v.found(o.code))
		}
	}
	for _, c := range v.failed {
		f := v.found(c)
		f.Failure = c.failure
		out = append(out, f)
	}
	return out
}

func (v *simLock) found(c simCode) Found {
	f := Found{Ref: c.ref, Name: c.name, Disabled: c.disabled, ChangedAt: c.changedAt}
	if v.p.keys {
		f.Key, f.HasKey = c.key, c.key != uuid.Nil
	}
	if v.p.slots {
		f.Name = ""
		if !v.p.caps.PINVisible && !c.foreign {
			f.Key, f.HasKey, f.KeyGuessed = c.key, true, true
		}
	}
	if v.p.caps.PINVisible {
		f.PIN = c.pin
	}
	if v.p.caps.NativeSchedule {
		f.StartsAt, f.EndsAt = c.starts, c.ends
	}
	return f
}

// put writes a code for an operation and returns the answer. apply is false for a write that gets lost on its way.
// place records the slot of the write, and returns false to end it.
func (v *simLock) put(op Operation, key uuid.UUID, now time.Time, apply, async bool, place func(string) bool) Outcome {
	c := simCode{ref: op.Ref, name: op.Name, key: key, pin: op.PIN, starts: op.StartAt(now), ends: op.EndsAt}
	if was := v.find(op.Ref); was != nil {
		c.key, c.changedAt, c.foreign, c.owner = was.key, was.changedAt, was.foreign, was.owner
	}
	all := v.intended()
	switch {
	case op.Ref == "" && (v.p.keys || v.p.slots):
		if i := slices.IndexFunc(all, func(o simCode) bool { return o.key == key }); i >= 0 {
			known := all[i]
			leaves := func(o simOp) bool { return o.action == Delete && o.code.ref == known.ref }
			if slices.ContainsFunc(v.queue, leaves) {
				return Outcome{Failure: &Failure{Class: FailedForNow, Message: "being deleted"}}
			}
			return v.repeated(op, known, now, apply, async, place)
		}
	case op.Ref != "" && !slices.ContainsFunc(all, func(o simCode) bool { return o.ref == op.Ref }):
		return Outcome{Failure: &Failure{Class: FailedForNow, Message: "no such code", Absent: !v.p.caps.ListCodes}}
	case op.Ref != "" && v.p.caps.RecreateToChange():
		return Outcome{Failure: &Failure{Class: FailedUnsupported, Message: "codes do not change"}}
	}
	if v.p.caps.ProviderPIN {
		if i := slices.IndexFunc(all, func(o simCode) bool { return o.ref == op.Ref && op.Ref != "" }); i >= 0 {
			c.pin = all[i].pin
		} else {
			v.serial++
			c.pin = PIN(fmt.Sprint("v", v.serial))
		}
	}
	if f := v.refusal(c, all); f != nil {
		return Outcome{Failure: f}
	}
	if op.Ref == "" {
		c.ref = v.newRef(nil)
	}
	if v.p.slots && (op.Ref == "" || !v.p.caps.PINVisible) && !place(c.ref) {
		return Outcome{Failure: &Failure{Class: FailedForNow, Message: "obsolete"}}
	}
	if was := v.find(op.Ref); was != nil && was.foreign {
		v.breach("overwritten", *was)
	}
	if apply {
		v.write(simOp{Put, c, op.Ref != ""}, now, async)
	} else if op.Ref != "" && v.p.slots && !v.p.caps.PINVisible { // the slot was vacated
		v.write(simOp{action: Delete, code: c}, now, false)
	}
	out := Outcome{Ref: c.ref, Confirmed: !async}
	if v.p.caps.ProviderPIN {
		out.PIN = c.pin
	}
	return out
}

// repeated answers a repeated creation with the code that exists.
func (v *simLock) repeated(
	op Operation, known simCode, now time.Time, apply, async bool, place func(string) bool,
) Outcome {
	same := v.p.caps.ProviderPIN || known.pin == op.PIN && known.name == op.Name
	switch {
	case !same && v.p.caps.ModifyInPlace:
		op.Ref = known.ref
		out := v.put(op, known.key, now, apply, async, place)
		out.Ref = known.ref // even if the change has failed
		return out
	case !v.p.caps.ListCodes && known.pin != op.PIN:
		return Outcome{Ref: known.ref, Failure: &Failure{Class: FailedForNow, Message: "another PIN", Unsure: true}}
	}
	same = same || !v.p.caps.ListCodes // the vendor's state is trusted
	out := Outcome{Ref: known.ref, Confirmed: same && !async && !v.p.caps.ProviderPIN}
	if v.p.caps.ProviderPIN {
		out.PIN = known.pin
	}
	return out
}

func (v *simLock) remove(ref string, now time.Time, apply, async bool) Outcome {
	c := v.find(ref)
	if c == nil && !slices.ContainsFunc(v.queue, func(o simOp) bool { return o.code.ref == ref }) {
		v.failed = slices.DeleteFunc(v.failed, func(c simCode) bool { return c.ref == ref })
		return Outcome{Confirmed: true}
	}
	if c != nil && c.foreign {
		v.breach("deleted", *c)
	}
	if apply {
		v.write(simOp{action: Delete, code: simCode{ref: ref}}, now, async)
	}
	return Outcome{Confirmed: !async}
}

func (v *simLock) write(o simOp, now time.Time, async bool) {
	v.remember(now)
	if v.queue = append(v.queue, o); !async {
		for len(v.queue) > 0 {
			v.arrive(now, false)
		}
	}
}

// arrive applies the next pending write, which may fail.
func (v *simLock) arrive(now time.Time, broken bool) {
	if len(v.queue) == 0 {
		return
	}
	v.remember(now)
	o := v.queue[0]
	v.queue = slices.Clone(v.queue[1:])
	if !o.update {
		v.failed = slices.DeleteFunc(v.failed, func(c simCode) bool { return c.key == o.code.key })
	}
	has := v.find(o.code.ref)
	if o.action == Delete {
		if !broken {
			v.codes = slices.DeleteFunc(slices.Clone(v.codes), func(c simCode) bool { return c.ref == o.code.ref })
		}
		return
	}
	if o.update && has == nil { // it has left since
		return
	}
	f := v.refusal(o.code, v.codes)
	if broken {
		f = &Failure{Class: FailedForNow, Message: "did not execute"}
	}
	switch {
	case f != nil && has != nil:
		has.failure = f
	case f != nil:
		o.code.failure = f
		v.failed = append(v.failed, o.code)
		v.queue = slices.DeleteFunc(v.queue, func(next simOp) bool { return next.code.ref == o.code.ref })
	case has != nil:
		o.code.foreign = has.foreign
		*has = o.code
	default:
		v.codes = append(v.codes, o.code)
	}
}
