// Package sandbox is a vendor's cloud with simulated locks behind it, reached over HTTP like any other
// (through adapter/devicecloud), so that what is tried here takes the path a real lock takes. It must not
// know the server that uses it: no database, no adapter, no notion of who owns a code.
//
// # The contract
//
// It speaks the public guide "building a Seam-compatible smart lock API" (seamapi/docs,
// docs/guides/device-manufacturer-guidance), authenticated by one bearer token per vendor account:
//
//	GET    /locks                        {locks:[…]}, all of the account in one answer
//	GET    /locks/{lock}
//	POST   /locks/{lock}/actions         {action:lock|unlock, custom_id} → {action_id, status:"pending"}
//	PUT    /locks/{lock}/auto_lock       {enabled, delay_seconds} → {status:"pending"}
//	POST   /locks/{lock}/offline_codes   {kind, starts_at, ends_at, custom_id} → {access_code_id, code, …}
//	GET    /locks/{lock}/access_codes    {access_codes:[…]}
//	POST   /locks/{lock}/access_codes    {name, code, starts_at, ends_at, custom_id} → {access_code_id, status}
//	PATCH  /access_codes/{code}          the fields to change
//	DELETE /access_codes/{code}          → {access_code_id, status}
//	POST   /webhooks                     {url, events[]} → {webhook_id, status:"active"}
//
// Errors are {error_code, message}. Where the guide is silent, this is decided:
//
//   - A lock carries both the fields of the guide's list (lock_id, name, model, address) and of its device
//     object (device_id, device_type "smart_lock", device_model, online, battery_level 0–100, lock_state, timezone,
//     device_time), manufacturer and serial_number, and an object "capabilities" (type capabilities) that
//     says what the lock can do.
//   - auto_lock {enabled, delay_seconds: 1–60} of a lock says whether it locks itself a while after it was unlocked, as
//     PUT auto_lock has it do; hub_online is there where it is behind a hub, and subscription_active where access codes
//     need one. lock.settings_changed tells of a change of any of them.
//   - POST offline_codes makes a code that the lock accepts without being told of it, kind "hourly", "daily" or
//     "one_time"; the lock need not be reached. The same custom_id gives the same code again. It is in no list, and
//     can be neither changed nor taken back.
//   - The status of a code is "pending" (on its way; what the lock still holds is shown), "active" (on the
//     lock, also before its time frame), "deleting" or "failed", the last with error_code and message. An
//     active code carries these two when the last change to it failed. A deletion that is complete at
//     once answers "deleted".
//   - custom_id, at most 64 characters, makes creation repeatable: the same one on the same lock answers with
//     the same code for as long as that exists and has not failed.
//   - PATCH leaves absent fields alone, and null clears a time frame. Nuki's cloud drops the time frame when
//     it is absent, and so does that profile.
//   - GET access_codes answers from the cloud's copy, with "stale":true while the lock is offline, and
//     ?refresh=true asks the lock (DEVICE_OFFLINE when it is). "code" is absent where the PIN is hidden.
//   - Status codes: 400 INVALID_REQUEST; 401 UNAUTHORIZED; 404 LOCK_NOT_FOUND, ACCESS_CODE_NOT_FOUND; 409
//     PIN_CONFLICT (with conflicting_access_code_id), DEVICE_FULL, DEVICE_OFFLINE, LOCK_JAMMED; 422 INVALID_PIN,
//     INVALID_NAME, INVALID_TIME_FRAME,
//     NOT_SUPPORTED; 402 SUBSCRIPTION_REQUIRED; 423 DEVICE_BUSY; 429 RATE_LIMITED; 503 SERVICE_UNAVAILABLE. The last
//     three carry Retry-After in whole seconds, and retry_after_ms in the body, which is exact.
//   - A webhook belongs to the account whose token made it; the same URL again is the same webhook. GET
//     /webhooks lists them and DELETE /webhooks/{id} ends one. Events carry device_id always and never a PIN.
//     A refused delivery is repeated eight times, not for 24 hours.
//
// # Logins
//
// People log in to their accounts by way of a partner, who has a token of its own (Tokens.Partner):
//
//	POST   /login  {partner, provider, email, password} → {account, email}
//
// All People have the same Password, an account at each provider, one with locks of all of them (Everything), and one
// with access systems (AccessSystems).
// A login has the account's token be accepted again. 401 UNAUTHORIZED is about the partner, LOGIN_REFUSED about
// the person.
//
// # Accounts
//
// Who runs the cloud makes and ends accounts, with a token of its own (Tokens.Owner, type Remote):
//
//	PUT    /accounts  {key, profiles[], locks_per_profile, systems}; what is there already stays
//	DELETE /accounts  {key}
//
// # Access systems
//
// An account at a vendor of access systems has these beside, or in place of, locks. A system keeps the people who may
// pass (users), groups of them, and the entrances that a group opens:
//
//	GET    /systems                        {systems:[{system_id, name, time_zone, online}]}
//	GET    /systems/{system}               the same, with users, groups and entrances
//	POST   /systems/{system}/users         {external_id, full_name, email, phone, starts_at, ends_at, suspended, group_ids} → the user
//	PUT    /systems/{system}/users/{user}  the same; what is absent is taken away
//	DELETE /systems/{system}/users/{user}
//
// external_id makes creation repeatable: the same one on the same system is the same user, changed to what is asked.
// An entrance opens for a user who is in one of its groups, not suspended, and within starts_at and ends_at, either of
// which may be null. A system that is offline answers SYSTEM_OFFLINE to everything but the list of systems. Status
// codes beside those above: 404 SYSTEM_NOT_FOUND, USER_NOT_FOUND; 409 SYSTEM_OFFLINE, SYSTEM_FULL; 422 INVALID_USER.
//
// # Time
//
// A write is acknowledged as pending, takes effect after the profile's latency divided by Options.Speed,
// and is then announced. What is on its way when the process ends never arrives; what has arrived is in
// the lock's file before it is announced.
//
// # Controls
//
// What a person would do to the hardware, and what goes wrong with it, under the same token (and also
// after a revocation):
//
//	POST   /sandbox/account/revoke | restore          the token stops, starts being accepted
//	GET    /sandbox/locks/{lock}/memory               what is really on the lock, with PINs
//	POST   /sandbox/locks/{lock}/online | offline | remove
//	POST   /sandbox/locks/{lock}/hub                  {online: bool}
//	POST   /sandbox/locks/{lock}/subscription         {expired: bool}
//	POST   /sandbox/locks/{lock}/name                 {name}
//	POST   /sandbox/locks/{lock}/battery              {battery_level: 0–100}
//	POST   /sandbox/locks/{lock}/jam                  {jammed: bool}
//	POST   /sandbox/locks/{lock}/keypad/codes         {name, code, request}: add a code by hand, at once; the same request, the same code
//	PATCH  /sandbox/locks/{lock}/keypad/codes/{code}  {name, code}
//	DELETE /sandbox/locks/{lock}/keypad/codes/{code}
//	POST   /sandbox/locks/{lock}/keypad/enter         {code} → {unlocked, access_code_id, name}
//	POST   /sandbox/locks/{lock}/keypad/lock          the button on the keypad that locks
//	GET    /sandbox/locks/{lock}/faults               the fault knobs, type Faults
//	PUT    /sandbox/locks/{lock}/faults
//
//	GET    /sandbox/systems/{system}/memory           what is really on the access system
//	POST   /sandbox/systems/{system}/online | offline | remove
//	POST   /sandbox/systems/{system}/users            as above, by hand; also PUT and DELETE …/users/{user}
//	DELETE /sandbox/systems/{system}/groups/{group}   also …/entrances/{entrance}
//	POST   /sandbox/systems/{system}/entrances/{entrance}/enter  {user_id} → {opened, reason}
//	GET    /sandbox/systems/{system}/faults           the fault knobs, type SystemFaults; also PUT
//
// The keypad works while the lock is offline; the cloud then learns of it on reconnection.
package sandbox

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Options of New. The zero value is a sandbox that forgets everything with its process.
type Options struct {
	Dir   string           // holds one file per lock and per account; empty: memory only
	Seed  uint64           // identifiers, tokens, latencies and faults follow from it
	Clock func() time.Time // what the locks' clocks show; nil: time.Now
	Log   *slog.Logger     // nil: none
	Speed float64          // divides the latency of every profile; 0: 1, where it is 50 to 600 ms
}

// Sandbox is the simulated cloud. Whoever knows its seed knows its tokens.
type Sandbox struct {
	opts    Options
	tokens  Tokens
	sched   *scheduler
	sender  *http.Client
	handler http.Handler

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	pushes sync.WaitGroup

	mu       sync.RWMutex
	closed   bool
	accounts map[[sha256.Size]byte]*account // by hash of the token
	bases    map[string]string              // by partner: what the keys of its accounts begin with
}

// New starts a sandbox without accounts. Close ends it.
func New(o Options) *Sandbox {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Speed <= 0 {
		o.Speed = 1
	}
	s := &Sandbox{
		opts:     o,
		tokens:   Tokens(o.Seed),
		sched:    newScheduler(),
		sender:   &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
		accounts: map[[sha256.Size]byte]*account{},
		bases:    map[string]string{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.handler = s.routes()
	return s
}

// Handler serves the contract and the controls.
func (s *Sandbox) Handler() http.Handler { return s.handler }

// Close stops what is on its way to locks and webhooks, and waits for it to end.
func (s *Sandbox) Close() {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for _, a := range s.accounts {
		a.mu.Lock()   // whoever saw the context alive has begun its delivery once this is had
		a.mu.Unlock() //nolint:staticcheck // nothing else to do
	}
	s.mu.Unlock()
	s.sched.close()
	s.pushes.Wait()
	s.sender.CloseIdleConnections()
}

// scaled is d at the sandbox's speed.
func (s *Sandbox) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.opts.Speed)
}
