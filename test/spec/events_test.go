package spec_test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// tale is a device to which things happen, one after another.
type tale struct {
	s      *apptest.Server
	device string
	lock   *apptest.Lock
	code   string // the managed code that the last step has made
	seen   map[string]bool
	ahead  atomic.Int64 // how far the server's clock is

	webview api.ConnectWebview
}

// step is one cause and the events that it has: these, once each, and no others.
type step struct {
	cause string
	do    func(*testing.T, *tale)
	want  []string
}

// The PINs of the tales. They are long, so that no identifier has them in it by chance.
const (
	pinOne   = "74628351"
	pinTwo   = "74628352"
	pinThree = "74628353"
	pinOther = "74628359"
)

var pins = []string{pinOne, pinTwo, pinThree, pinOther}

// carryPINs are the event types that carry PINs (spec/contract.md section 7).
var carryPINs = []string{
	"access_code.set_on_device", "access_code.scheduled_on_device", "access_code.deleted", "access_code.changed",
	"access_code.code_changed", "access_code.mutations_requested", "lock.locked", "lock.unlocked",
}

func (s *tale) post(t *testing.T, path string, in map[string]any, out any) {
	t.Helper()
	if status := s.s.Post(t, path, in, out); status != http.StatusOK {
		t.Fatalf("%s: %d", path, status)
	}
}

// onDevice adds the device to the parameters.
func (s *tale) onDevice(t *testing.T, path string, in map[string]any) {
	t.Helper()
	if in == nil {
		in = map[string]any{}
	}
	in["device_id"] = s.device
	s.post(t, path, in, nil)
}

func (s *tale) create(t *testing.T, in map[string]any) {
	t.Helper()
	in["device_id"] = s.device
	var out api.AccessCodeCreatedResponse
	s.post(t, "/access_codes/create", in, &out)
	s.code = out.AccessCode.AccessCodeID
}

// onLock is the lock's own identifier of the code with a PIN.
func (s *tale) onLock(t *testing.T, pin string) string {
	t.Helper()
	for _, c := range s.lock.Memory(t) {
		if c.PIN == pin {
			return c.ID
		}
	}
	t.Fatal("the code is not on the lock")
	return ""
}

func post(path string, in map[string]any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) { s.onDevice(t, path, maps.Clone(in)) }
}

func create(in map[string]any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) { s.create(t, maps.Clone(in)) }
}

func update(in map[string]any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) {
		in := maps.Clone(in)
		in["access_code_id"] = s.code
		s.post(t, "/access_codes/update", in, nil)
	}
}

func remove(t *testing.T, s *tale) {
	s.post(t, "/access_codes/delete", map[string]any{"access_code_id": s.code}, nil)
}

func control(method, path string, body any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) { s.lock.Control(t, method, path, body) }
}

// all does one thing after another.
func all(do ...func(*testing.T, *tale)) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) {
		for _, f := range do {
			f(t, s)
		}
	}
}

// look has the vendor account looked at, by bringing a device online that may be it already.
var look = post("/devices/simulate/connect", nil)

// syncAccount has the account looked at, also while it is disconnected.
func syncAccount(t *testing.T, s *tale) {
	var out api.DeviceResponse
	s.post(t, "/devices/get", map[string]any{"device_id": s.device}, &out)
	s.post(t, "/connected_accounts/sync", map[string]any{"connected_account_id": out.Device.ConnectedAccountID}, nil)
}

func keypad(method, pin string, body map[string]any) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) { s.lock.Control(t, method, "/keypad/codes/"+s.onLock(t, pin), body) }
}

// anHourPasses puts the server's clock forward, and has it look at the device.
func anHourPasses(t *testing.T, s *tale) {
	s.ahead.Add(int64(time.Hour))
	p := access.Principal{WorkspaceID: uuid.MustParse(s.s.WorkspaceID)}
	d, err := s.s.App.Access.GetDevice(t.Context(), p, s.device, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.s.App.Access.Hint(t.Context(), d.AccountID, d.Ref); err != nil {
		t.Fatal(err)
	}
}

func nothing(*testing.T, *tale) {}

var (
	pushed = map[string]any{"jammed": true}
	freed  = map[string]any{"jammed": false}
	ahead  = map[string]any{"starts_at": time.Now().Add(time.Hour), "ends_at": time.Now().Add(48 * time.Hour)}
)

// life is what happens to a lock whose codes are readable.
var life = []step{
	{"an account is connected", nothing, []string{"connected_account.created", "connected_account.connected", "connected_account.completed_first_sync",
		"device.added", "device.connected", "access_code.unmanaged.created", "access_code.unmanaged.created"}},
	{"a code is created", create(map[string]any{"code": pinOne, "name": "Guest"}),
		[]string{"access_code.created", "access_code.mutations_requested", "access_code.set_on_device"}},
	{"its name is changed", update(map[string]any{"name": "Friend"}),
		[]string{"access_code.mutations_requested", "access_code.changed", "access_code.name_changed", "access_code.set_on_device"}},
	{"its PIN is changed", update(map[string]any{"code": pinTwo}),
		[]string{"access_code.mutations_requested", "access_code.changed", "access_code.code_changed", "access_code.set_on_device"}},
	{"nothing of it is changed", update(map[string]any{"code": pinTwo, "name": "Friend"}), nil},
	{"it opens the door", post("/locks/simulate/keypad_code_entry", map[string]any{"code": pinTwo}),
		[]string{"action_attempt.simulate_keypad_code_entry.succeeded", "lock.unlocked"}},
	{"a wrong code is tried", post("/locks/simulate/keypad_code_entry", map[string]any{"code": pinOther}),
		[]string{"action_attempt.simulate_keypad_code_entry.succeeded", "lock.access_denied"}},
	{"the door is locked by hand", post("/locks/simulate/manual_lock_via_keypad", nil),
		[]string{"action_attempt.simulate_manual_lock_via_keypad.succeeded", "lock.locked"}},
	{"the door is unlocked", post("/locks/unlock_door", nil), []string{"action_attempt.unlock_door.succeeded", "lock.unlocked"}},
	{"the door is locked", post("/locks/lock_door", nil), []string{"action_attempt.lock_door.succeeded", "lock.locked"}},
	{"the bolt jams", all(control(http.MethodPost, "/jam", pushed), post("/locks/unlock_door", map[string]any{"sync": true}), post("/locks/lock_door", nil)),
		[]string{"action_attempt.unlock_door.failed", "action_attempt.lock_door.failed"}},
	{"the jammed lock is tried at the door", all(post("/locks/simulate/keypad_code_entry", map[string]any{"code": pinTwo}), post("/locks/simulate/manual_lock_via_keypad", nil)),
		[]string{"action_attempt.simulate_keypad_code_entry.failed", "action_attempt.simulate_manual_lock_via_keypad.failed"}},
	{"the bolt is freed", all(control(http.MethodPost, "/jam", freed), look), nil},
	{"the code is changed at the keypad", keypad(http.MethodPatch, pinTwo, map[string]any{"code": pinThree}),
		[]string{"access_code.modified_external_to_seam", "access_code.set_on_device"}},
	{"the code is deleted at the keypad", keypad(http.MethodDelete, pinTwo, nil),
		[]string{"access_code.deleted_external_to_seam", "access_code.set_on_device"}},
	{"changes at the keypad are allowed, and made", all(update(map[string]any{"is_external_modification_allowed": true}),
		keypad(http.MethodPatch, pinTwo, map[string]any{"code": pinThree})),
		[]string{"access_code.modified_external_to_seam", "access_code.code_changed"}},
	{"its time frame is changed", update(ahead),
		[]string{"access_code.mutations_requested", "access_code.changed", "access_code.time_frame_changed", "access_code.scheduled_on_device"}},
	{"the code is deleted", remove, []string{"access_code.mutations_requested", "access_code.removed_from_device", "access_code.deleted"}},
	{"a code is added at the keypad", control(http.MethodPost, "/keypad/codes", map[string]any{"name": "Neighbour", "code": pinOther}),
		[]string{"access_code.unmanaged.created"}},
	{"it is converted", func(t *testing.T, s *tale) {
		for _, c := range s.s.UnmanagedCodes(t, s.device) {
			if c.Code != nil && *c.Code == pinOther {
				s.code = c.AccessCodeID
			}
		}
		s.post(t, "/access_codes/unmanaged/convert_to_managed", map[string]any{"access_code_id": s.code}, nil)
	}, []string{"access_code.unmanaged.converted_to_managed"}},
	{"its management is given up, and it is deleted at the keypad", all(update(map[string]any{"is_managed": false}), keypad(http.MethodDelete, pinOther, nil)),
		[]string{"access_code.unmanaged.created", "access_code.unmanaged.removed"}},
	{"the battery runs low", control(http.MethodPost, "/battery", map[string]any{"battery_level": 15}), []string{"device.low_battery", "device.battery_status_changed"}},
	{"the battery runs lower", all(control(http.MethodPost, "/battery", map[string]any{"battery_level": 12}), look), nil},
	{"the battery is replaced", control(http.MethodPost, "/battery", map[string]any{"battery_level": 100}), []string{"device.battery_status_changed"}},
	{"the device is renamed", all(control(http.MethodPost, "/name", map[string]any{"name": "Cellar"}), look), []string{"device.name_changed"}},
	{"the device goes offline", post("/devices/simulate/disconnect", nil), []string{"device.disconnected"}},
	{"an offline door is unlocked", post("/locks/unlock_door", nil), []string{"action_attempt.unlock_door.failed"}},
	{"the device comes back", post("/devices/simulate/connect", nil), []string{"device.connected"}},
	{"the credentials are revoked", func(t *testing.T, s *tale) { s.lock.Account(t, "revoke") }, []string{"connected_account.disconnected"}},
	{"the credentials are good again", all(func(t *testing.T, s *tale) { s.lock.Account(t, "restore") }, syncAccount),
		[]string{"connected_account.connected", "connected_account.completed_first_sync_after_reconnection"}},
	{"the device is removed", post("/devices/simulate/remove", nil),
		[]string{"device.removed", "access_code.unmanaged.removed", "access_code.unmanaged.removed"}},
}

// delays is what happens to a device that is offline for long.
var delays = []step{
	{"an account is connected", nothing, life[0].want},
	{"a code is created", create(map[string]any{"code": pinOne}), life[1].want},
	{"the device goes offline", post("/devices/simulate/disconnect", nil), []string{"device.disconnected"}},
	{"the code is deleted", remove, []string{"access_code.mutations_requested"}},
	{"another is created", create(map[string]any{"code": pinTwo}), []string{"access_code.created", "access_code.mutations_requested"}},
	{"an hour passes", anHourPasses, []string{"access_code.delay_in_removing_from_device", "access_code.delay_in_setting_on_device"}},
	{"another hour passes", anHourPasses, nil},
	{"the device comes back", post("/devices/simulate/connect", nil),
		[]string{"device.connected", "access_code.removed_from_device", "access_code.deleted", "access_code.set_on_device"}},
}

// refusals is what happens to a lock that does not do as it is told.
var refusals = []step{
	{"an account is connected", nothing, []string{"connected_account.created", "connected_account.connected", "connected_account.completed_first_sync",
		"device.added", "device.connected", "access_code.unmanaged.created", "access_code.unmanaged.created"}},
	{"a code of a vendor that forbids it is converted", func(t *testing.T, s *tale) {
		s.post(t, "/access_codes/unmanaged/convert_to_managed", map[string]any{"access_code_id": s.s.UnmanagedCodes(t, s.device)[0].AccessCodeID}, nil)
	}, []string{"access_code.unmanaged.failed_to_convert_to_managed"}},
	{"a code is created for a full lock", all(control(http.MethodPut, "/faults", map[string]any{"slots_taken": 1000}), create(map[string]any{"code": pinOne})),
		[]string{"access_code.created", "access_code.mutations_requested", "access_code.failed_to_set_on_device"}},
	{"that code is deleted", remove, []string{"access_code.deleted"}},
	{"a code is created for later", all(control(http.MethodPut, "/faults", map[string]any{}),
		create(map[string]any{"code": pinTwo, "starts_at": time.Now().Add(200 * time.Hour), "ends_at": time.Now().Add(300 * time.Hour)})),
		[]string{"access_code.created", "access_code.mutations_requested"}},
	{"a code is created for today", create(map[string]any{"code": pinThree}), life[1].want},
	{"the lock refuses to have it changed", all(control(http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"invalid": 1}}), update(map[string]any{"name": "Friend"})),
		[]string{"access_code.mutations_requested", "access_code.changed", "access_code.failed_to_update"}},
	{"it cannot be removed", all(control(http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"busy": 1}}), remove),
		[]string{"access_code.mutations_requested", "access_code.failed_to_remove_from_device"}},
}

// ends is what happens to a code that cannot be taken off its lock when its time is over.
var ends = []step{
	{"an account is connected", nothing, life[0].want},
	{"a code is created for half an hour", create(map[string]any{"code": pinOne, "starts_at": time.Now(), "ends_at": time.Now().Add(30 * time.Minute)}), life[1].want},
	{"an hour passes, and the lock is busy", all(control(http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"busy": 1}}), anHourPasses),
		[]string{"access_code.failed_to_expire"}},
}

// warns looks at the device's warnings.
func warns(want ...string) func(*testing.T, *tale) {
	return func(t *testing.T, s *tale) {
		t.Helper()
		var out api.DeviceResponse
		s.post(t, "/devices/get", map[string]any{"device_id": s.device}, &out)
		var got []string
		for _, w := range out.Device.Warnings {
			got = append(got, w.WarningCode)
		}
		if !slices.Equal(got, want) {
			t.Errorf("it warns of %v, want %v", got, want)
		}
	}
}

var loss = all(post("/devices/simulate/disconnect", nil), post("/devices/simulate/connect", nil))

// flaps is what happens to a device that is never offline for long.
var flaps = []step{
	{"an account is connected", nothing, life[0].want},
	{"its connection is lost three times", all(loss, loss, loss), []string{"device.connection_became_flaky"}},
	{"it is lost once more", all(warns("device_has_flaky_connection"), loss), nil},
	{"an hour passes", anHourPasses, []string{"device.connection_stabilized"}},
	{"another hour passes", all(warns(), anHourPasses), nil},
}

// TestEventsAreToldOnceEach drives each cause over HTTP and looks at what has been told of it.
func TestEventsAreToldOnceEach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile  string
		debounce time.Duration
		steps    []step
	}{
		"life": {"yale", 0, life}, "delays": {"yale", 0, delays}, "refusals": {"kwikset", 0, refusals}, "ends": {"kwikset", 0, ends}, "flaps": {"yale", 24 * time.Hour, flaps},
		"unmanaged": {"yale", 0, unmanaged}, "backups": {"yale", 0, backups}, "logins": {"yale", 0, logins},
		"unpaid": {"nuki", 0, unpaid}, "hubs": {"august", 0, hubs},
		"issues": {"igloohome", 0, issues},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &tale{seen: map[string]bool{}}
			s.s = apptest.Start(t, apptest.WithProfiles(c.profile), apptest.WithAccess(func(o *access.Options) {
				o.ListLag, o.DelayAfter = 50*time.Millisecond, 59*time.Minute
				o.OfflineDebounce = cmp.Or(c.debounce, o.OfflineDebounce)
				o.Now = func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
			}))
			s.device = s.s.Device(t, c.profile)
			s.lock = s.s.Lock(t, s.device)
			for _, step := range c.steps {
				step.do(t, s)
				s.tells(t, step)
			}
		})
	}
}

// tells waits until the step's events are there, and says what is wrong with them.
func (s *tale) tells(t *testing.T, step step) {
	t.Helper()
	want := slices.Sorted(slices.Values(step.want))
	var got []api.Event
	deadline := time.Now().Add(60 * time.Second)
	for settled := false; !settled || len(got) < len(want) && time.Now().Before(deadline); {
		settled = len(got) >= len(want)
		if settled { // what is told too often is told by now
			s.quiet(t)
		}
		got = s.news(t)
	}
	var types []string
	for _, e := range got {
		s.seen[e.EventID] = true
		types = append(types, e.EventType)
		s.whole(t, e)
	}
	sort.Strings(types)
	if !slices.Equal(types, want) {
		t.Fatalf("%s: told\n%s\nwant\n%s", step.cause, strings.Join(types, "\n"), strings.Join(want, "\n"))
	}
}

// quiet waits until nothing is left to do for the server.
func (s *tale) quiet(t *testing.T) {
	t.Helper()
	device := uuid.MustParse(s.device)
	apptest.Until(t, "the device needs no more looks", func() bool {
		due, err := s.s.App.Access.DeviceDue(t.Context(), device)
		return err == nil && !due
	})
}

// news lists the events that were not there after the step before.
func (s *tale) news(t *testing.T) (out []api.Event) {
	t.Helper()
	var list api.EventsResponse
	s.post(t, "/events/list", map[string]any{"since": "2020-01-01T00:00:00Z", "limit": 10_000}, &list)
	for _, e := range list.Events {
		if !s.seen[e.EventID] {
			out = append(out, e)
		}
	}
	return out
}

// Parts 6 of the specification and 7 of the contract: which events a list holds.
func TestEventsAreListedByTimeAndSubject(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august", "yale"))
	list := func(in map[string]any) []api.Event {
		t.Helper()
		var out api.EventsResponse
		if status := s.Post(t, "/events/list", in, &out); status != http.StatusOK {
			t.Fatalf("%v: %d", in, status)
		}
		return out.Events
	}
	const since = "2020-01-01T00:00:00Z"
	every := list(map[string]any{"since": since})
	if len(every) < 8 || !slices.IsSortedFunc(every, func(a, b api.Event) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
		t.Fatalf("%d events", len(every))
	}
	middle := every[len(every)/2].CreatedAt
	device, other := s.Device(t, "august"), s.Device(t, "yale")
	only := func(events []api.Event, is func(api.Event) bool) int {
		n := 0
		for _, e := range events {
			if is(e) {
				n++
			}
		}
		return n
	}
	about := func(id string) func(api.Event) bool {
		return func(e api.Event) bool { return e.AdditionalProperties["device_id"] == id }
	}
	for name, c := range map[string]struct {
		in   map[string]any
		want int
	}{
		"since the middle": {map[string]any{"since": middle}, only(every, func(e api.Event) bool { return !e.CreatedAt.Before(middle) })},
		"between":          {map[string]any{"between": []any{since, middle}}, only(every, func(e api.Event) bool { return e.CreatedAt.Before(middle) })},
		"since tomorrow":   {map[string]any{"since": time.Now().Add(24 * time.Hour)}, 0},
		"limit":            {map[string]any{"since": since, "limit": 3}, 3},
		"of a type":        {map[string]any{"since": since, "event_type": "device.added"}, 2},
		"of types":         {map[string]any{"since": since, "event_types": []string{"device.added", "device.connected"}}, 4},
		"of no type":       {map[string]any{"since": since, "event_types": []string{}}, 0},
		"of a device":      {map[string]any{"since": since, "device_id": device}, only(every, about(device))},
		"of devices":       {map[string]any{"since": since, "device_ids": []string{device, other}}, only(every, about(device)) + only(every, about(other))},
		"of an account":    {map[string]any{"since": since, "connected_account_id": every[0].AdditionalProperties["connected_account_id"]}, len(every)},
		"of nobody":        {map[string]any{"since": since, "connected_account_id": uuid.Nil}, 0},
		"by identifier":    {map[string]any{"since": since, "event_ids": []string{every[0].EventID, every[1].EventID}}, 2},
	} {
		if got := list(c.in); len(got) != c.want {
			t.Errorf("%s: %d events, want %d", name, len(got), c.want)
		}
	}
	for name, in := range map[string]map[string]any{"neither": {}, "both": {"since": since, "between": []any{since, since}}} {
		var f failure
		if status := s.Post(t, "/events/list", in, &f); status != http.StatusBadRequest || f.Error.Type != "invalid_input" || f.Error.Message == "" {
			t.Errorf("%s of since and between: %d %+v", name, status, f.Error)
		}
	}
	var latest api.EventResponse
	if status := s.Post(t, "/events/get", map[string]any{"device_id": device, "event_type": "device.connected"}, &latest); status != http.StatusOK || latest.Event.EventType != "device.connected" {
		t.Errorf("the latest of a type on a device: %d %s", status, latest.Event.EventType)
	}
}
