// Package sandbox is a vendor's cloud with simulated locks, thermostats, and noise sensors, which is called over HTTP like any other
// vendor (through adapter/devicecloud). Requests thus take the path of those to a real device. It must not know the
// server that uses it: no database, no adapter, no owners of codes.
//
// # The contract
//
// It implements the public guide "building a Seam-compatible smart lock API" (seamapi/docs,
// docs/guides/device-manufacturer-guidance), authenticated by one bearer token per vendor account:
//
//	GET    /locks                        {locks:[…]}, all of the account in one response
//	GET    /locks/{lock}
//	POST   /locks/{lock}/actions         {action:lock|unlock, custom_id} → {action_id, status:"pending"}
//	PUT    /locks/{lock}/auto_lock       {enabled, delay_seconds} → {status:"pending"}
//	PUT    /locks/{lock}/thermostat      {mode, fan, heat_set_point, cool_set_point} → {status}
//	POST   /locks/{lock}/noise_thresholds  {name, starts_daily_at, ends_daily_at, time_zone, decibels, nrs, custom_id}
//	                                     → {threshold_id, status}
//	PUT    /locks/{lock}/noise_thresholds/{threshold}  the same
//	DELETE /locks/{lock}/noise_thresholds/{threshold}
//	POST   /locks/{lock}/offline_codes   {kind, starts_at, ends_at, custom_id} → {access_code_id, code, …}
//	GET    /locks/{lock}/access_codes    {access_codes:[…]}
//	POST   /locks/{lock}/access_codes    {name, code, starts_at, ends_at, custom_id} → {access_code_id, status}
//	PATCH  /access_codes/{code}          the fields to change
//	DELETE /access_codes/{code}          → {access_code_id, status}
//	POST   /webhooks                     {url, events[]} → {webhook_id, status:"active"}
//
// Errors are {error_code, message}. Where the guide is silent, the package decides:
//
//   - A lock carries both the fields of the guide's list (lock_id, name, model, address) and of its device
//     object (device_id, device_type "smart_lock", device_model, online, battery_level 0–100, lock_state, timezone,
//     device_time), manufacturer and serial_number, and an object "capabilities" (type capabilities) that
//     says what the lock can do.
//   - auto_lock {enabled, delay_seconds: 1–60} is the auto-lock setting of a lock, which PUT auto_lock changes.
//     hub_online is present for locks with a hub, and subscription_active for locks whose access codes require a
//     subscription. lock.settings_changed reports a change of any of them.
//   - POST offline_codes issues a code that the lock accepts without a connection, of kind "hourly", "daily", or
//     "one_time". The same custom_id returns the same code. Offline codes are not listed, and cannot be changed
//     or deleted.
//   - The status of a code is "pending" (being written; the lock's current content is shown), "active" (on the
//     lock, also before its time frame), "deleting", or "failed", the last with error_code and message. An
//     active code has these two when its last change failed. A deletion that completes immediately returns
//     "deleted".
//   - custom_id, at most 64 characters, makes creation repeatable: the same one on the same lock returns the
//     same code while that exists and has not failed.
//   - PATCH keeps absent fields, and null clears a time frame. Nuki's cloud clears an absent time frame, and so
//     does that profile.
//   - GET access_codes returns the cloud's copy, with "stale":true while the lock is offline, and ?refresh=true
//     reads the lock (DEVICE_OFFLINE when it is offline). "code" is absent when the PIN is hidden.
//   - Thermostats are in the list of locks, like the guide's hubs, with device_type "thermostat" and an object
//     "thermostat" (type wireThermostat). All temperatures are in °C; a device rounds to its own resolution. PUT
//     thermostat keeps absent fields. Its status is "active" if the device has applied the setting, else "pending".
//     thermostat.changed reports a change of the state, and also a write that failed. Requests about codes and bolts
//     are NOT_SUPPORTED.
//   - Noise sensors are in the list of locks with device_type "noise_sensor", an object "noise_sensor" (type wireNoise),
//     and "capabilities"."noise_sensor" (type noiseLimits). Times are HH:MM:SS in time_zone, which defaults to that of the
//     device, UTC. The same custom_id returns the same threshold. noise_sensor.changed reports a change of the
//     thresholds or of those that the noise exceeds.
//   - Status codes: 400 INVALID_REQUEST; 401 UNAUTHORIZED; 404 LOCK_NOT_FOUND, ACCESS_CODE_NOT_FOUND; 409
//     PIN_CONFLICT (with conflicting_access_code_id), DEVICE_FULL, DEVICE_OFFLINE, LOCK_JAMMED; 422 INVALID_PIN,
//     INVALID_NAME, INVALID_TIME_FRAME,
//     INVALID_SETTING, NOT_SUPPORTED; 402 SUBSCRIPTION_REQUIRED; 423 DEVICE_BUSY; 429 RATE_LIMITED; 503 SERVICE_UNAVAILABLE. The last
//     three carry Retry-After in whole seconds, and retry_after_ms in the body, which is exact.
//   - A webhook belongs to the account whose token created it; the same URL returns the same webhook. GET
//     /webhooks lists them and DELETE /webhooks/{id} deletes one. Events always contain device_id, and never a
//     PIN. A rejected delivery is repeated eight times, not for 24 hours.
//
// # Logins
//
// People log in to their accounts through a partner, which has its own token (Tokens.Partner):
//
//	POST   /login  {partner, provider, email, password, code} → {account, email}
//
// All People have the same Password and an account at each provider, including one with devices of all
// DefaultProfiles (Everything) and one with access systems (AccessSystems). A login restores a revoked token of the account. 401
// UNAUTHORIZED concerns the partner, LOGIN_REFUSED the person.
//
// The provider august answers SECOND_FACTOR_REQUIRED to a login without a code, and SECOND_FACTOR_REFUSED to a code other
// than SecondFactor.
//
// # Accounts
//
// The operator of the cloud creates and deletes accounts with its own token (Tokens.Owner, type Remote):
//
//	PUT    /accounts  {key, profiles[], locks_per_profile, systems}; keeps what exists
//	DELETE /accounts  {key}
//
// # Access systems
//
// An account can have access systems in addition to, or instead of, locks. A system has users, groups of users, and
// entrances that a group opens:
//
//	GET    /systems                        {systems:[{system_id, name, time_zone, online}]}
//	GET    /systems/{system}               the same, with users, groups and entrances
//	POST   /systems/{system}/users         {external_id, full_name, email, phone, starts_at, ends_at, suspended,
//	                                       group_ids, entrance_ids} → the user
//	PUT    /systems/{system}/users/{user}  the same; absent fields are cleared
//	DELETE /systems/{system}/users/{user}
//	DELETE /systems/{system}/groups/{group}
//	POST   /systems/{system}/entrances/{entrance}/unlock  unlocks it once
//
// external_id makes creation repeatable: the same one on the same system updates the same user. An entrance opens for
// a user that is in one of its groups or has it in entrance_ids, is not suspended, and is within starts_at and ends_at,
// either of which may be null. entrance_ids is absent if it is empty.
// A system that is offline returns SYSTEM_OFFLINE for everything except the list of systems. Further status codes:
// 404 SYSTEM_NOT_FOUND, USER_NOT_FOUND, GROUP_NOT_FOUND, ENTRANCE_NOT_FOUND; 409 SYSTEM_OFFLINE, SYSTEM_FULL,
// UNLOCK_REFUSED; 422 INVALID_USER. A cloud that cannot do it returns 422 NOT_SUPPORTED for the last two requests.
//
// # Time
//
// A write is acknowledged as pending, takes effect after the profile's latency divided by Options.Speed, and is then
// announced. A write that is pending when the process ends never arrives. A write is stored in the lock's file before
// it is announced.
//
// # Controls
//
// Controls do what a person would do at the hardware, and configure faults. They use the same token, and work after a
// revocation:
//
//	POST   /sandbox/account/revoke | restore          revokes, restores the token
//	GET    /sandbox/locks/{lock}/memory               the codes on the lock, with PINs
//	POST   /sandbox/locks/{lock}/online | offline | remove
//	POST   /sandbox/locks/{lock}/hub                  {online: bool}
//	POST   /sandbox/locks/{lock}/subscription         {expired: bool}
//	POST   /sandbox/locks/{lock}/name                 {name}
//	POST   /sandbox/locks/{lock}/battery              {battery_level: 0–100}
//	POST   /sandbox/locks/{lock}/jam                  {jammed: bool}
//	POST   /sandbox/locks/{lock}/keypad/codes         {name, code, request}: adds a code by hand, once per request
//	PATCH  /sandbox/locks/{lock}/keypad/codes/{code}  {name, code}
//	DELETE /sandbox/locks/{lock}/keypad/codes/{code}
//	POST   /sandbox/locks/{lock}/keypad/enter         {code} → {unlocked, access_code_id, name}
//	POST   /sandbox/locks/{lock}/keypad/lock          presses the lock button of the keypad
//	POST   /sandbox/locks/{lock}/thermostat/adjust    as PUT thermostat, by hand
//	POST   /sandbox/locks/{lock}/thermostat/preset    {key}: chooses a preset by hand
//	POST   /sandbox/locks/{lock}/thermostat/room      {temperature, humidity}: °C, percent
//	POST   /sandbox/locks/{lock}/noise                {decibels}: noise for a minute, by default above the thresholds
//	POST   /sandbox/locks/{lock}/noise_thresholds     as above, by hand; also PUT and DELETE …/{threshold}
//	GET    /sandbox/locks/{lock}/faults               the faults, type Faults
//	PUT    /sandbox/locks/{lock}/faults
//
//	GET    /sandbox/systems/{system}/memory           the content of the access system
//	POST   /sandbox/systems/{system}/online | offline | remove
//	POST   /sandbox/systems/{system}/users            as above, by hand; also PUT and DELETE …/users/{user}
//	DELETE /sandbox/systems/{system}/groups/{group}   also …/entrances/{entrance}
//	POST   /sandbox/systems/{system}/entrances/{entrance}/enter  {user_id} → {opened, reason}
//	GET    /sandbox/systems/{system}/faults           the faults, type SystemFaults; also PUT
//
// The keypad and the thermostat work while they are offline; the cloud shows the changes after the reconnection.
package sandbox

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Options configures New. The zero value is a sandbox whose state ends with its process.
type Options struct {
	// Dir holds one file per device and per account. If empty, the state is in memory only.
	Dir string
	// Seed determines identifiers, tokens, latencies, and faults.
	Seed uint64
	// Clock is the clock of the locks. It defaults to time.Now.
	Clock func() time.Time
	// Log defaults to no logging.
	Log *slog.Logger
	// Speed divides the latency of every profile. It defaults to 1, at which latencies are 50 to 600 ms.
	Speed float64
}

// Sandbox is the simulated cloud. Its tokens are as secret as its seed.
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
	bases    map[string]string              // by partner: the prefix of the keys of its accounts
}

// New returns a running sandbox without accounts. Close stops it.
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

// Handler returns the handler of the contract and the controls.
func (s *Sandbox) Handler() http.Handler { return s.handler }

// Close cancels pending writes and deliveries, and waits for the running ones.
func (s *Sandbox) Close() {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for _, a := range s.accounts {
		a.mu.Lock()   // a push that has seen the context alive has started its delivery by now
		a.mu.Unlock() //nolint:staticcheck // nothing else to do
	}
	s.mu.Unlock()
	s.sched.close()
	s.pushes.Wait()
	s.sender.CloseIdleConnections()
}

// scaled returns d divided by Options.Speed.
func (s *Sandbox) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.opts.Speed)
}
