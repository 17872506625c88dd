// Package adaptertest is the suite that every adapter has to pass: what package adapter promises in its
// comments, tried on a device. It must not know any vendor; a Bed is all it sees of one.
package adaptertest

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Bed is an adapter with one device to try it on, and what can be done to the device behind the adapter's
// back. A check that needs a func that is nil is skipped.
type Bed struct {
	Adapter adapter.Adapter   // the check closes it
	Device  adapter.DeviceRef // online, with room for ten codes
	Within  time.Duration     // the longest that a write takes to reach the device; 0: testenv.WaitTimeout

	// PIN is a PIN the device takes, another one each time; nil: made from the device's capabilities.
	PIN func(length int) string

	Memory        func(t testing.TB) []OnDevice                        // what is really on the device
	SetOnline     func(t testing.TB, online bool)                      // takes it off its network and back
	AddForeign    func(t testing.TB, name, pin string) adapter.CodeRef // at the keypad
	ChangeForeign func(t testing.TB, code adapter.CodeRef, pin string) // at the keypad
	DeleteForeign func(t testing.TB, code adapter.CodeRef)             // at the keypad
	Enter         func(t testing.TB, pin string)                       // opens the door with a PIN that is good
	EnterWrong    func(t testing.TB, pin string)                       // tries a PIN that is not
	LockByHand    func(t testing.TB)                                   // with a button or a thumbturn
	Jam           func(t testing.TB)                                   // the bolt moves no more
	Fill          func(t testing.TB)                                   // leaves no room for another code
	Remove        func(t testing.TB)                                   // from the account
	Revoke        func(t testing.TB)                                   // the account's credentials
	DropNext      func(t testing.TB)                                   // the next write is accepted without effect
	BreakNext     func(t testing.TB)                                   // the next write is accepted and then fails
	CutNext       func(t testing.TB)                                   // the next write takes effect, its answer is lost
	FailNext      func(t testing.TB, class adapter.Class)              // calls fail so, until Heal
	Heal          func(t testing.TB)                                   // ends FailNext and CutNext
	Disconnect    func(t testing.TB)                                   // cuts all connections once
	Stall         func(t testing.TB)                                   // calls get no answer any more
	Stop          func(t testing.TB)                                   // nothing is there to be called any more
}

// OnDevice is a code as it really is on the device.
type OnDevice struct {
	Ref              adapter.CodeRef
	PIN              string
	Name             string
	StartsAt, EndsAt *time.Time
}

// checks are run in parallel, each on a bed of its own.
var checks = []struct {
	name string
	run  func(*trial)
}{
	{"the device is listed as it is read", listedAsRead},
	{"capabilities agree with each other", capsAgree},
	{"every code length is accepted", lengthsAccepted},
	{"other code lengths are refused", lengthsRefused},
	{"a PIN that breaks a constraint is refused", constraintsKept},
	{"a name of the wrong length is refused", namesKept},
	{"a time frame is kept or not supported", timeFrameKept},
	{"half a time frame is refused", timeFrameHalf},
	{"a start in the past is refused where it must lie in the future", timeFramePast},

	{"a put code is read back and on the device", putReadBack},
	{"a code is put once for one key", putOnce},
	{"a key can be used again after its code is gone", putAgain},
	{"a code is overwritten by its ref", overwritten},
	{"an overwritten code keeps its time frame", overwrittenTimed},
	{"overwriting an absent code is not found", overwriteAbsent},
	{"a deleted code is off the device", deleted},
	{"deleting an absent code succeeds", deleteAbsent},
	{"a foreign code can be deleted", deleteForeign},

	{"a duplicate PIN is refused and names the code that has it", duplicateRefused},
	{"a PIN that was put on at the keypad is a duplicate", duplicateForeign},
	{"a full device refuses", fullRefuses},
	{"an unknown device is not found", unknownDevice},
	{"a removed device is not found", removedDevice},
	{"an offline device refuses and then goes on", offlineRefuses},
	{"a revoked account is told", revokedTold},
	{"a write that was dropped is seen by reading", droppedSeen},
	{"a deletion that was dropped is seen by reading", droppedDeleteSeen},
	{"a write that failed on the device is seen by reading", brokenSeen},
	{"a write without an answer is unconfirmed and can be repeated", cutUnconfirmed},
	{"each fault has its class", faultsClassified},
	{"a cut connection is made again", reconnected},
	{"a call ends with its context", contextEnds},
	{"nothing is sent by who may not any more", nothingSent},
	{"a stopped gateway is told", stoppedTold},

	{"the bolt is moved and shows it", lockMoved},
	{"a moved bolt is told", lockTold},
	{"a bolt that cannot be moved from afar is not supported", lockUnsupported},
	{"the bolt of an unknown device is not found", lockUnknown},
	{"the bolt of an offline device is not moved", lockOffline},
	{"a jammed bolt is told", jamTold},
	{"the use of a code is told", codeUseTold},
	{"a wrong code is told", wrongCodeTold},
	{"locking by hand is told", handTold},

	{"a code put on at the keypad is told and read", foreignAdded},
	{"a code changed at the keypad is told and read", foreignChanged},
	{"a code deleted at the keypad is told and read", foreignDeleted},
	{"what happened while offline is read afterwards", offlineChanges},
	{"going offline and online is told", connectionTold},
	{"removing a device is told", removalTold},
	{"closing ends the events, also twice", closed},
}

// Run runs the suite; newBed makes a bed for each check, and cleans it up with t.
func Run(t *testing.T, newBed func(t *testing.T) Bed) {
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			t.Parallel()
			check.run(newTrial(t, newBed(t)))
		})
	}
}
