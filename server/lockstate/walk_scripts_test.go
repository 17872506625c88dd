package lockstate

import (
	"slices"
	"testing"
)

// The scripts of this file are named walks: the old complaints (TestComplaints), and the faults that
// random walks have found. They are the seeds of FuzzWalk.

// The positions of the profiles.
const (
	lockVisible = iota
	lockAtOnce
	lockHidden
	lockHiddenSlots
	lockVisibleSlots
	lockVendorPIN
	lockRecreated
	lockRecreatedHidden
	lockNoList
	lockNoListRecreated
	lockUniqueNames
	lockNoKeys
)

// Choices of steps.
const (
	soonFrame   = 1
	farFrame    = 2
	ongoing     = 9
	allowed     = 48
	newFrame    = 4
	hintedEvent = 1
)

func steps(parts ...[]walkStep) []walkStep { return slices.Concat(parts...) }

func one(kind walkKind, args ...byte) []walkStep {
	args = append(args, 0, 0, 0)
	return []walkStep{{kind, args[0], args[1], args[2]}}
}

func create(pin byte, options ...byte) []walkStep {
	return one(stepCreate, append([]byte{ongoing, pin}, options...)...)
}
func changePIN(pin byte) []walkStep    { return one(stepUpdate, 0, 0, pin) }
func handAdd(pin byte) []walkStep      { return one(stepHandAdd, 0, pin, hintedEvent) }
func handChange(pin byte) []walkStep   { return one(stepHandChange, 0, pin, hintedEvent) }
func handDelete(code byte) []walkStep  { return one(stepHandDelete, code, 0, hintedEvent) }
func handDisable(code byte) []walkStep { return one(stepHandDisable, code, 0, hintedEvent) }

func again(n int, parts ...[]walkStep) []walkStep { return slices.Repeat(steps(parts...), n) }

// started begins a pass, reads, and starts the first operation.
func started() []walkStep { return again(2, one(stepPass)) }

// readWith is a pass whose read has a fault.
func readWith(f walkFault, choice byte) []walkStep {
	return steps(one(stepCrash), one(stepPass), one(stepPass, with(f), choice), one(stepDrain))
}

// sendWith is a pass whose first operation has a fault.
func sendWith(f walkFault) []walkStep {
	return steps(started(), one(stepPass, with(f)), one(stepDrain))
}

var (
	drain   = one(stepDrain)
	arrive  = one(stepArrive)
	seconds = one(stepSeconds, 13)
	minutes = one(stepMinutes, 4)
	hours   = one(stepHours, 1)
	twoSet  = steps(create(1), create(2), drain, arrive, arrive, drain)
)

// walkNamed is a named script.
type walkNamed struct {
	name    string
	profile byte
	steps   []walkStep
}

var walkComplaints = []walkNamed{
	{
		"infinite loop on a duplicate PIN", lockVisible,
		steps(handAdd(1), create(1), again(4, drain, hours, one(stepCrash))),
	},
	{
		"infinite loop on a duplicate PIN that shows nowhere", lockVisible,
		steps(create(1), again(4, sendWith(refusedDuplicate), hours)),
	},
	{
		"already exists after it was deleted", lockVisible,
		steps(create(1), drain, arrive, drain, one(stepDelete), drain, arrive, drain, create(1),
			sendWith(refusedConflict), minutes, drain),
	},
	{"an idle lock is read all the time", lockVisible, steps(create(1), drain, arrive, again(5, drain, hours))},
	{
		"full lock: a new code silently gets nowhere", lockVisibleSlots,
		steps(create(1), create(2), create(3), handAdd(8), handAdd(9), create(4), drain, hours, handDelete(0), drain),
	},
	{
		"infinite loop on a masked PIN", lockHidden,
		steps(create(1), drain, arrive, again(3, drain, hours, one(stepCrash))),
	},
	{
		"occupied but unreadable slot is rewritten", lockHiddenSlots,
		steps(handAdd(1), drain, create(2), drain, hours, drain),
	},
	{
		"permanent error is taken for offline", lockVisible,
		steps(create(1), sendWith(refusedInvalid), hours, drain),
	},
	{
		"unknown error right after boot is taken for permanent", lockVisible,
		steps(create(1), sendWith(refusedForNow), minutes, drain),
	},
	{
		"list still empty after a code was added", lockAtOnce,
		steps(create(1), drain, one(stepSeconds), readWith(readEmpty, 0), one(stepSeconds), drain),
	},
	{
		"upstream list briefly empty wipes all codes", lockAtOnce,
		steps(create(1), handAdd(2), drain, hours, readWith(readEmpty, 0), one(stepSeconds, 4),
			readWith(readEmpty, 0), drain),
	},
	{
		"upstream list empty before and after an outage", lockAtOnce,
		steps(create(1), handAdd(2), drain, hours, readWith(readEmpty, 0), readWith(readFails, 0), hours,
			readWith(readEmpty, 0), drain),
	},
	{
		"upstream list empty before and after the server stood still", lockAtOnce,
		steps(create(1), handAdd(2), drain, hours, readWith(readEmpty, 0), hours, readWith(readEmpty, 0), drain),
	},
	{
		"list stays empty while writes fail", lockAtOnce,
		steps(create(1), handAdd(2), drain, hours, again(2, handDelete(0)), sendWith(lostUnapplied),
			minutes, drain),
	},
	{"codes vanish seconds after they were set", lockAtOnce, steps(create(1), drain, minutes, handDelete(0), drain)},
	{"stuck in setting forever", lockVisible, steps(create(1), again(4, sendWith(answerDropped), hours))},
	{
		"stuck in removing forever", lockVisible,
		steps(create(1), drain, arrive, drain, one(stepDelete), again(4, sendWith(answerDropped), hours)),
	},
	{
		"guest locked out because codes were moved between slots", lockVisibleSlots,
		steps(create(1), drain, one(stepDelete), create(1), sendWith(refusedForNow), again(3, drain, minutes)),
	},
	{
		"change of the dates is not propagated", lockVisible,
		steps(create(1), drain, arrive, drain, one(stepUpdate, 0, newFrame, soonFrame), drain, arrive, drain),
	},
	{
		"two controllers fighting", lockAtOnce,
		steps(create(1), again(3, drain, minutes, handChange(2), drain, minutes, handChange(3))),
	},
	{"set and clear churn", lockAtOnce, steps(create(1), drain, again(6, minutes, handDisable(0), drain))},
}

// walkRare are what random walks reach seldom.
var walkRare = []walkNamed{
	{"two codes exchange their PINs", lockVisible, steps(twoSet, one(stepExchange, 0, 1), drain)},
	{"two codes exchange their PINs, recreated", lockRecreated, steps(twoSet, one(stepExchange, 0, 1), drain)},
	{
		"a deleted code arrives late", lockRecreated,
		steps(create(1), started(), one(stepPass, with(lostApplied)), one(stepDelete), again(3, drain,
			minutes), arrive, drain),
	},
	{
		"a slot that was vacated for a change is filled again", lockHiddenSlots,
		steps(create(1), drain, changePIN(2), started(), one(stepPass, with(unsureLost)),
			one(stepPass), one(stepCrash), minutes,
			drain),
	},
}

var walkFound = []walkNamed{
	{
		"a code whose last change failed is hidden from clients", lockNoKeys,
		steps(create(1), drain, arrive, drain, changePIN(2), drain, one(stepRemoval), one(stepBreak),
			one(stepDelete),
			one(stepRemoval), drain),
	},
	{
		"a disabled code keeps an old PIN", lockAtOnce,
		steps(create(1, allowed), drain, minutes, handDisable(0), drain, handChange(2), drain),
	},
	{
		"a changed code counts as open while it is disabled", lockRecreatedHidden,
		steps(create(1, allowed), drain, minutes, handChange(2), drain, handDisable(0), drain),
	},
	{
		"a failed creation stays as an unmanaged code", lockNoKeys,
		steps(create(1), drain, one(stepDelete), drain, seconds, readWith(readEmpty, 0), drain,
			one(stepBreak), drain),
	},
	{
		"a code that steps aside counts as deleted at the device when its slot is reused", lockHiddenSlots,
		steps(one(stepCreate, 0), drain, one(stepCreate, 0, 251, 239), one(stepPass), one(stepPass), one(stepPass),
			one(stepExchange, 0, 111, 136), one(stepPass), one(stepPass, 230, 0, 157)),
	},
	{
		"a list that is older than a code proves its removal", lockVisible,
		steps(one(stepSubscription), handAdd(1), one(stepMinutes), handAdd(2), drain, one(stepDeleteUnmanaged, 1),
			readWith(readStale, 9)),
	},
	{
		"a code that is deleted while it arrives stays", lockVendorPIN,
		steps(create(1), started(), one(stepDelete), one(stepPass, with(wrongRefUnstorable)), drain),
	},
	{
		"a hidden code with an older PIN counts as set", lockRecreatedHidden,
		steps(create(1), started(), changePIN(2), one(stepPass, with(wrongRefUnstorable)), drain),
	},
	{
		"the next code in a vacated slot sets a code that must leave", lockHiddenSlots,
		steps(create(1), drain, changePIN(2), started(), one(stepPass, with(unsureLost)), create(3),
			one(stepDelete),
			drain, drain, minutes),
	},
	{
		"a lock without a list is polled for a refused write", lockNoList,
		steps(create(1), started(), one(stepCrash), changePIN(2), handAdd(2), drain),
	},
	{
		"a code that the vendor sets after its end stays", lockVendorPIN,
		steps(one(stepCreate, 0), drain, again(6, hours), drain, drain),
	},
	{
		"codes of unknown PINs exchange them forever", lockHidden,
		steps(create(1), create(2), drain, one(stepExchange, 0, 1), drain, arrive, arrive, drain),
	},
	{
		"codes that change twice exchange their PINs forever", lockVisible,
		steps(twoSet, changePIN(3), drain, changePIN(4), arrive, drain, one(stepExchange, 0, 1), drain),
	},
	{
		"a change that needs no write hides one at the device", lockRecreatedHidden,
		steps(create(1), drain, create(2), one(stepExchange), hours, handChange(3), drain),
	},
	{
		"a code that arrives after its removal without a subscription stays", lockRecreated,
		steps(create(1), drain, one(stepSubscription), one(stepDelete), minutes, minutes, drain),
	},
	{
		"a refused code whose start is ahead again is forgotten", lockRecreatedHidden,
		steps(one(stepCreate, farFrame, 1), drain, one(stepDue), started(), one(stepPass, with(wrongRefUnstorable)),
			one(stepBack, 42)),
	},
	{
		"a pending code counts as set after its conversion", lockNoKeys,
		steps(create(1), drain, one(stepRemoval), one(stepDelete), one(stepRemoval), drain, one(stepConvert), drain,
			one(stepBreak), drain),
	},
	{
		"a code becomes unmanaged while it leaves until its start", lockRecreatedHidden,
		steps(create(1), drain, one(stepUpdate, 0, newFrame, farFrame), started(), one(stepUnmanage), drain),
	},
	{
		"a stranger's code of the desired PIN counts as a lost write",
		lockVisible,
		steps(
			create(1),
			started(),
			handAdd(2),
			one(stepPass, with(lostApplied)),
			changePIN(2),
			drain,
			arrive,
			drain,
		),
	},
}

func TestWalk_NamedScripts(t *testing.T) {
	t.Parallel()
	for _, n := range slices.Concat(walkComplaints, walkFound, walkRare) {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			s := walkScript{n.profile, n.steps}
			if err := s.run(nil); err != nil {
				s.report(t, n.name, err)
			}
		})
	}
}
