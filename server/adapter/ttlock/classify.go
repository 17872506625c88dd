package ttlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// Values of errcode that the adapter acts on.
const (
	codeNoToken      = 10003
	codeTokenRevoked = 10004
	codeNotAdmin     = 20002
	codeTooManyCalls = 30006
	codeMonthlyLimit = 30007
	codeNoLock       = -1003
	codeNoPasscodes  = -1007
	codeNoPasscode   = -2009
	codeNotPermitted = -2018
	codeDuplicate    = -3007
	codeNeverUsed    = -3008
)

// Waits after a refusal.
const (
	busyWait  = 2 * time.Second
	callsWait = time.Minute
	monthWait = time.Hour
)

// meaning is what an errcode means.
type meaning struct {
	class adapter.Class
	words string
	// wait is the minimum wait before a retry.
	wait time.Duration
}

// meanings lists the documented values of errcode: euopen.ttlock.com, "error code".
var meanings = map[int]meaning{
	10000: {adapter.GatewayDown, "TTLock does not know this server's client id; correct --vendor-client", 0},
	10001: {adapter.GatewayDown, "TTLock refuses this server's client secret; correct --vendor-client-secret-file", 0},

	codeNoToken:      {adapter.AuthRevoked, "TTLock does not know the account's token; log in again", 0},
	codeTokenRevoked: {adapter.AuthRevoked, "the account's token was revoked; log in again", 0},
	10007:            {adapter.AuthRevoked, "TTLock refuses the user name or the password of the TTLock app", 0},
	10011:            {adapter.AuthRevoked, "TTLock no longer renews the account's token; log in again", 0},

	codeNotAdmin:     {adapter.NotFound, "the account does not administer the lock", 0},
	codeNotPermitted: {adapter.NotFound, "the account does not administer the lock", 0},
	codeNoLock:       {adapter.NotFound, "TTLock has no such lock", 0},

	codeTooManyCalls: {adapter.Transient, "TTLock accepts no more calls for now", callsWait},
	codeMonthlyLimit: {
		adapter.Transient,
		"the calls of this month are used up; upgrade the application's plan at TTLock, or wait for the next month",
		monthWait,
	},
	30008: {
		adapter.GatewayDown,
		"the account is registered in another region; connect it with --url " + ChinaURL + " or --url " + DefaultURL, 0,
	},
	80000: {adapter.Transient, "the clock of this server is wrong by more than five minutes; set it", 0},

	codeNoPasscodes: {adapter.NotFound, "the lock has no passcodes", 0},
	codeNoPasscode:  {adapter.NotFound, "TTLock has no such passcode", 0},
	-3006:           {adapter.Invalid, "TTLock accepts PINs of 4 to 9 digits", 0},
	codeDuplicate:   {adapter.Duplicate, "the PIN is already on the lock", 0},
	codeNeverUsed:   {adapter.Transient, "TTLock does not change a passcode that was never used", 0},
	-3009:           {adapter.Full, "the lock stores no more passcodes", 0},
	-4056:           {adapter.Full, "the memory of the lock is full", 0},

	-2012: {adapter.Offline, "no gateway reaches the lock", 0},
	-3002: {adapter.Offline, "the gateway of the lock is offline", 0},
	-3034: {adapter.Offline, "the WiFi of the lock is not set up", 0},
	-3035: {adapter.Offline, "the lock saves power; switch its power saving off in the TTLock app", 0},
	-3036: {adapter.Offline, "the lock is offline", 0},
	-4037: {adapter.Offline, "the gateway of the lock was removed", 0},
	-4067: {adapter.Offline, "the NB-IoT module of the lock is not registered", 0},

	-3003: {adapter.Transient, "the gateway of the lock is busy", busyWait},
	-3037: {adapter.Transient, "the lock is busy", busyWait},
	-2025: {adapter.Transient, "the lock is frozen; unfreeze it in the TTLock app", 0},
	-4043: {adapter.NotSupported, "the lock does not support this", 0},
	-4082: {adapter.Invalid, "the lock does not support this auto-lock delay", 0},
}

// refusal is an error with its errcode.
type refusal struct {
	code int
	err  *adapter.Error
}

// Error implements error.
func (r *refusal) Error() string { return r.err.Error() }

// Unwrap returns the *adapter.Error.
func (r *refusal) Unwrap() error { return r.err }

// codeOf returns the errcode of an error, 0 if it has none.
func codeOf(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.code
	}
	return 0
}

// refused returns the error of an errcode. The outcome of a write with an unknown errcode is unknown.
func (a *Adapter) refused(
	ctx context.Context, c vendorhttp.Call, r vendorhttp.Response, code int, message string,
) error {
	m, known := meanings[code]
	switch {
	case !known && code == -3 && c.Write:
		m = meaning{adapter.Invalid, "TTLock refuses a value: " + message, 0}
	case !known:
		m = meaning{c.UnknownOutcome(), "TTLock reports: " + message, 0}
	}
	if code == codeTooManyCalls || code == codeMonthlyLimit {
		a.budget.ClientRefused(ctx, m.wait) // TTLock counts the calls of an application
	}
	e := r.Failure(m.class, m.words)
	e.Message += fmt.Sprintf(" (errcode %d)", code)
	e.RetryAfter = m.wait
	a.log.DebugContext(ctx, "TTLock refused a call", "path", c.Path, "errcode", code, "class", m.class)
	return &refusal{code: code, err: e}
}
