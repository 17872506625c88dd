// Package adaptertest is the conformance suite of adapters: it checks on a device what package adapter documents. It
// must not know any vendor; it sees one only through a Bed.
package adaptertest

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Bed is an adapter with one device, and functions that act on the device behind the adapter. A check that needs a
// nil function is skipped.
type Bed struct {
	// Adapter is closed by the check.
	Adapter adapter.Adapter
	// Device is online and has room for ten codes.
	Device adapter.DeviceRef
	// Timeout is the maximum time that a write takes to reach the device; 0 means testenv.WaitTimeout.
	Timeout time.Duration

	// PIN returns a different PIN that the device accepts on each call. If nil, the suite generates PINs from the
	// capabilities of the device.
	PIN func(length int) string

	// Memory returns the codes that are on the device.
	Memory func(t testing.TB) []OnDevice
	// SetOnline disconnects the device from its network, or reconnects it.
	SetOnline func(t testing.TB, online bool)
	// AddForeign adds a code at the keypad.
	AddForeign func(t testing.TB, name, pin string) adapter.CodeRef
	// ChangeForeign changes a code at the keypad.
	ChangeForeign func(t testing.TB, code adapter.CodeRef, pin string)
	// DeleteForeign deletes a code at the keypad.
	DeleteForeign func(t testing.TB, code adapter.CodeRef)
	// Enter opens the door with a valid PIN.
	Enter func(t testing.TB, pin string)
	// EnterWrong enters an invalid PIN.
	EnterWrong func(t testing.TB, pin string)
	// LockByHand locks the door with a button or a thumbturn.
	LockByHand func(t testing.TB)
	// Jam blocks the bolt.
	Jam func(t testing.TB)
	// Fill fills the device with codes.
	Fill func(t testing.TB)
	// Remove removes the device from the account.
	Remove func(t testing.TB)
	// Revoke revokes the account's credentials.
	Revoke func(t testing.TB)
	// DropNext accepts the next write without effect.
	DropNext func(t testing.TB)
	// BreakNext accepts the next write, which then fails on the device.
	BreakNext func(t testing.TB)
	// CutNext executes the next write and loses its response.
	CutNext func(t testing.TB)
	// LoseNext loses the next creation before it arrives.
	LoseNext func(t testing.TB)
	// FailNext fails all calls with the class until Heal.
	FailNext func(t testing.TB, class adapter.Class)
	// Heal ends FailNext, CutNext, and LoseNext.
	Heal func(t testing.TB)
	// Disconnect closes all connections once.
	Disconnect func(t testing.TB)
	// Stall leaves all calls unanswered.
	Stall func(t testing.TB)
	// Stop stops the service that the adapter calls.
	Stop func(t testing.TB)

	// AdjustByHand changes the setting of a thermostat as a person at the device. Only RunThermostat uses it.
	AdjustByHand func(t testing.TB, setting adapter.ThermostatSetting)
	// SetTemperature changes the temperature that a thermostat measures, in °C. Only RunThermostat uses it.
	SetTemperature func(t testing.TB, celsius float64)
	// MakeNoise makes noise of a level in decibels. Only RunNoiseSensor uses it.
	MakeNoise func(t testing.TB, decibels float64)
}

// OnDevice is a code in the memory of the device.
type OnDevice struct {
	Ref              adapter.CodeRef
	PIN              string
	Name             string
	StartsAt, EndsAt *time.Time
}

// checks run in parallel, each on its own bed.
var checks = []struct {
	name string
	run  func(*trial)
}{
	{"the device is equal when listed and when read", listedAsRead},
	{"capabilities agree with each other", capsAgree},
	{"every code length is accepted", lengthsAccepted},
	{"other code lengths are refused", lengthsRefused},
	{"a PIN that breaks a constraint is refused", constraintsKept},
	{"a name of the wrong length is refused", namesKept},
	{"a name with other characters is refused", nameCharactersKept},
	{"a name that another code has is refused", namesUnique},
	{"a time frame is applied or not supported", timeFrameKept},
	{"half a time frame is refused", timeFrameHalf},
	{"a start in the past is refused where it must be in the future", timeFramePast},

	{"a put code is read back and on the device", putReadBack},
	{"one key creates one code", putOnce},
	{"a key can be reused after its code is deleted", putAgain},
	{"a code is overwritten by its ref", overwritten},
	{"an overwritten code keeps its time frame", overwrittenTimed},
	{"overwriting an absent code is not found", overwriteAbsent},
	{"a deleted code is off the device", deleted},
	{"deleting an absent code succeeds", deleteAbsent},
	{"a foreign code can be deleted", deleteForeign},
	{"a foreign code that its vendor must take over is converted", convertForeign},

	{"a duplicate PIN is refused and names the code that has it", duplicateRefused},
	{"a PIN that was added at the keypad is a duplicate", duplicateForeign},
	{"a full device refuses", fullRefuses},
	{"an unknown device is not found", unknownDevice},
	{"a removed device is not found", removedDevice},
	{"an offline device refuses, and accepts when back online", offlineRefuses},
	{"a revoked account is reported", revokedTold},
	{"a dropped write is detected by reading", droppedSeen},
	{"a dropped deletion is detected by reading", droppedDeleteSeen},
	{"a write that failed on the device is detected by reading", brokenSeen},
	{"a write without a response is unconfirmed and repeatable", cutUnconfirmed},
	{"a code of another person is not taken for one whose response was lost", strangerKept},
	{"a code that another person made after a lost creation is kept", laterStrangerKept},
	{"each fault has its class", faultsClassified},
	{"a closed connection is reestablished", reconnected},
	{"a call ends with its context", contextEnds},
	{"nothing is sent without the lease", nothingSent},
	{"a stopped gateway is reported", stoppedTold},

	{"the bolt moves and shows its position", lockMoved},
	{"a moved bolt is reported", lockTold},
	{"moving a bolt without remote control is not supported", lockUnsupported},
	{"the bolt of an unknown device is not found", lockUnknown},
	{"the bolt of an offline device does not move", lockOffline},
	{"a jammed bolt is reported", jamTold},
	{"the use of a code is reported", codeUseTold},
	{"a wrong code is reported", wrongCodeTold},
	{"locking by hand is reported", handTold},
	{"a lock cannot be set like a thermostat", thermostatUnsupported},

	{"a code added at the keypad is reported and listed", foreignAdded},
	{"a code changed at the keypad is reported and listed", foreignChanged},
	{"a code deleted at the keypad is reported", foreignDeleted},
	{"changes while offline are read afterwards", offlineChanges},
	{"going offline and online is reported", connectionTold},
	{"removing a device is reported", removalTold},
	{"closing twice ends the events", closed},
}

// Run runs the suite for a lock. newBed returns a new bed for each check and cleans it up with t.
func Run(t *testing.T, newBed func(t *testing.T) Bed) {
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			t.Parallel()
			check.run(newTrial(t, newBed(t)))
		})
	}
}
