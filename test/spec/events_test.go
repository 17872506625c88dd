package spec_test

import (
	"cmp"
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// life are steps of a lock that shows its codes.
var life = []step{
	{
		"an account is connected",
		nothing,
		[]string{
			"connected_account.created", "connected_account.connected", "connected_account.completed_first_sync",
			"device.added", "device.connected", "access_code.unmanaged.created", "access_code.unmanaged.created",
		},
	},
	{
		"a code is created", create(map[string]any{"code": pinOne, "name": "Guest"}),
		[]string{"access_code.created", "access_code.mutations_requested", "access_code.set_on_device"},
	},
	{
		"its name is changed",
		update(map[string]any{"name": "Friend"}),
		[]string{
			"access_code.mutations_requested",
			"access_code.changed",
			"access_code.name_changed",
			"access_code.set_on_device",
		},
	},
	{
		"its PIN is changed",
		update(map[string]any{"code": pinTwo}),
		[]string{
			"access_code.mutations_requested",
			"access_code.changed",
			"access_code.code_changed",
			"access_code.set_on_device",
		},
	},
	{"nothing of it is changed", update(map[string]any{"code": pinTwo, "name": "Friend"}), nil},
	{
		"it opens the door", post("/locks/simulate/keypad_code_entry", map[string]any{"code": pinTwo}),
		[]string{"action_attempt.simulate_keypad_code_entry.succeeded", "lock.unlocked"},
	},
	{
		"a wrong code is tried", post("/locks/simulate/keypad_code_entry", map[string]any{"code": pinOther}),
		[]string{"action_attempt.simulate_keypad_code_entry.succeeded", "lock.access_denied"},
	},
	{
		"the door is locked by hand", post("/locks/simulate/manual_lock_via_keypad", nil),
		[]string{"action_attempt.simulate_manual_lock_via_keypad.succeeded", "lock.locked"},
	},
	{
		"the door is unlocked",
		post("/locks/unlock_door", nil),
		[]string{"action_attempt.unlock_door.succeeded", "lock.unlocked"},
	},
	{
		"it detects tampering", tampers,
		[]string{"device.tampered"},
	},
	{
		"the door is locked",
		post("/locks/lock_door", nil),
		[]string{"action_attempt.lock_door.succeeded", "lock.locked"},
	},
	{
		"the bolt jams",
		all(
			control(http.MethodPost, "/jam", pushed),
			post("/locks/unlock_door", map[string]any{"sync": true}),
			post("/locks/lock_door", nil),
		),
		[]string{"action_attempt.unlock_door.failed", "action_attempt.lock_door.failed"},
	},
	{
		"the jammed lock is tried at the door",
		all(
			post("/locks/simulate/keypad_code_entry", map[string]any{"code": pinTwo}),
			post("/locks/simulate/manual_lock_via_keypad", nil),
		),
		[]string{
			"action_attempt.simulate_keypad_code_entry.failed",
			"action_attempt.simulate_manual_lock_via_keypad.failed",
		},
	},
	{"the bolt is freed", all(control(http.MethodPost, "/jam", freed), look), nil},
	{
		"the code is changed at the keypad", keypad(http.MethodPatch, pinTwo, map[string]any{"code": pinThree}),
		[]string{"access_code.modified_external_to_seam", "access_code.set_on_device"},
	},
	{
		"the code is deleted at the keypad", keypad(http.MethodDelete, pinTwo, nil),
		[]string{"access_code.deleted_external_to_seam", "access_code.set_on_device"},
	},
	{
		"changes at the keypad are allowed and happen",
		all(update(map[string]any{"is_external_modification_allowed": true}),
			keypad(http.MethodPatch, pinTwo, map[string]any{"code": pinThree})),
		[]string{"access_code.modified_external_to_seam", "access_code.code_changed"},
	},
	{
		"its time frame is changed",
		update(ahead),
		[]string{
			"access_code.mutations_requested",
			"access_code.changed",
			"access_code.time_frame_changed",
			"access_code.scheduled_on_device",
		},
	},
	{
		"the code is deleted",
		remove,
		[]string{"access_code.mutations_requested", "access_code.removed_from_device", "access_code.deleted"},
	},
	{
		"a code is added at the keypad",
		control(http.MethodPost, "/keypad/codes", map[string]any{"name": "Neighbour", "code": pinOther}),
		[]string{"access_code.unmanaged.created"},
	},
	{"it is converted", func(t *testing.T, s *tale) {
		for _, c := range s.s.UnmanagedCodes(t, s.device) {
			if c.Code != nil && *c.Code == pinOther {
				s.code = c.AccessCodeID
			}
		}
		s.post(t, "/access_codes/unmanaged/convert_to_managed", map[string]any{"access_code_id": s.code}, nil)
	}, []string{"access_code.unmanaged.converted_to_managed"}},
	{
		"it becomes unmanaged and is deleted at the keypad",
		all(update(map[string]any{"is_managed": false}), keypad(http.MethodDelete, pinOther, nil)),
		[]string{"access_code.unmanaged.created", "access_code.unmanaged.removed"},
	},
	{
		"the battery runs low",
		control(http.MethodPost, "/battery", map[string]any{"battery_level": 15}),
		[]string{"device.low_battery", "device.battery_status_changed"},
	},
	{
		"the battery runs lower",
		all(control(http.MethodPost, "/battery", map[string]any{"battery_level": 12}), look),
		nil,
	},
	{
		"the battery is replaced",
		control(http.MethodPost, "/battery", map[string]any{"battery_level": 100}),
		[]string{"device.battery_status_changed"},
	},
	{
		"the device is renamed",
		all(control(http.MethodPost, "/name", map[string]any{"name": "Cellar"}), look),
		[]string{"device.name_changed"},
	},
	{"the device goes offline", post("/devices/simulate/disconnect", nil), []string{"device.disconnected"}},
	{"an offline door is unlocked", post("/locks/unlock_door", nil), []string{"action_attempt.unlock_door.failed"}},
	{"the device reappears", post("/devices/simulate/connect", nil), []string{"device.connected"}},
	{
		"the credentials are revoked",
		func(t *testing.T, s *tale) { s.lock.Account(t, "revoke") },
		[]string{"connected_account.disconnected"},
	},
	{
		"the credentials are good again",
		all(func(t *testing.T, s *tale) { s.lock.Account(t, "restore") }, syncAccount),
		[]string{"connected_account.connected", "connected_account.completed_first_sync_after_reconnection"},
	},
	{
		"the device is removed", post("/devices/simulate/remove", nil),
		[]string{"device.removed", "access_code.unmanaged.removed", "access_code.unmanaged.removed"},
	},
}

// delays are steps of a device that is offline for long.
var delays = []step{
	{"an account is connected", nothing, life[0].want},
	{"a code is created", create(map[string]any{"code": pinOne}), life[1].want},
	{"the device goes offline", post("/devices/simulate/disconnect", nil), []string{"device.disconnected"}},
	{"the code is deleted", remove, []string{"access_code.mutations_requested"}},
	{
		"another is created",
		create(map[string]any{"code": pinTwo}),
		[]string{"access_code.created", "access_code.mutations_requested"},
	},
	{
		"an hour passes",
		anHourPasses,
		[]string{"access_code.delay_in_removing_from_device", "access_code.delay_in_setting_on_device"},
	},
	{"another hour passes", anHourPasses, nil},
	{
		"the device reappears",
		post("/devices/simulate/connect", nil),
		[]string{
			"device.connected",
			"access_code.removed_from_device",
			"access_code.deleted",
			"access_code.set_on_device",
		},
	},
}

// refusals are steps of a lock that rejects writes.
var refusals = []step{
	{
		"an account is connected",
		nothing,
		[]string{
			"connected_account.created", "connected_account.connected", "connected_account.completed_first_sync",
			"device.added", "device.connected", "access_code.unmanaged.created", "access_code.unmanaged.created",
		},
	},
	{"a code of a vendor that forbids it is converted", func(t *testing.T, s *tale) {
		s.post(
			t,
			"/access_codes/unmanaged/convert_to_managed",
			map[string]any{"access_code_id": s.s.UnmanagedCodes(t, s.device)[0].AccessCodeID},
			nil,
		)
	}, []string{"access_code.unmanaged.failed_to_convert_to_managed"}},
	{
		"a code is created for a full lock",
		all(
			control(http.MethodPut, "/faults", map[string]any{"slots_taken": 1000}),
			create(map[string]any{"code": pinOne}),
		),
		[]string{"access_code.created", "access_code.mutations_requested", "access_code.failed_to_set_on_device"},
	},
	{"that code is deleted", remove, []string{"access_code.deleted"}},
	{
		"a code is created for later", all(control(http.MethodPut, "/faults", map[string]any{}),
			create(map[string]any{"code": pinTwo, "starts_at": 200 * time.Hour, "ends_at": 300 * time.Hour})),
		[]string{"access_code.created", "access_code.mutations_requested"},
	},
	{"a code is created for today", create(map[string]any{"code": pinThree}), life[1].want},
	{
		"the lock refuses to have it changed",
		all(
			control(http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"invalid": 1}}),
			update(map[string]any{"name": "Friend"}),
		),
		[]string{"access_code.mutations_requested", "access_code.changed", "access_code.failed_to_update"},
	},
	{
		"it cannot be removed",
		all(control(http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"busy": 1}}), remove),
		[]string{"access_code.mutations_requested", "access_code.failed_to_remove_from_device"},
	},
}

// ends are steps of a code that cannot be removed when it expires.
var ends = []step{
	{"an account is connected", nothing, life[0].want},
	{
		"a code is created for half an hour",
		create(map[string]any{"code": pinOne, "starts_at": time.Duration(0), "ends_at": 30 * time.Minute}),
		life[1].want,
	},
	{
		"an hour passes, and the lock is busy",
		all(
			control(http.MethodPut, "/faults", map[string]any{"failure_rate": map[string]any{"busy": 1}}),
			anHourPasses,
		),
		[]string{"access_code.failed_to_expire"},
	},
}

// flaps are steps of a device with short outages.
var flaps = []step{
	{"an account is connected", nothing, life[0].want},
	{"its connection is lost three times", all(loss, loss, loss), []string{"device.connection_became_flaky"}},
	{"it disappears again", all(warns("device_has_flaky_connection"), loss), nil},
	{"an hour passes", anHourPasses, []string{"device.connection_stabilized"}},
	{"another hour passes", all(warns(), anHourPasses), nil},
}

// TestEvents_OncePerCause causes each event over HTTP and checks the events.
func TestEvents_OncePerCause(t *testing.T) {
	t.Parallel()
	options := func(o *access.Options) { o.ReadLag, o.DelayAfter = 50*time.Millisecond, 59*time.Minute }
	shared := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithAccess(options))
	for name, c := range map[string]struct {
		profile  string
		steps    []step
		own      bool // needs a server with its own clock or its own kind of simulated locks
		debounce time.Duration
	}{
		"life":      {profile: "yale", steps: life},
		"refusals":  {profile: "kwikset", steps: refusals},
		"unmanaged": {profile: "yale", steps: unmanaged},
		"backups":   {profile: "yale", steps: backups},
		"logins":    {profile: "yale", steps: logins, own: true},
		"unpaid":    {profile: "nuki", steps: unpaid},
		"hubs":      {profile: "august", steps: hubs},
		"delays":    {profile: "yale", steps: delays, own: true},
		"ends":      {profile: "kwikset", steps: ends, own: true},
		"flaps": {
			profile:  "yale",
			steps:    flaps,
			own:      true,
			debounce: 24 * time.Hour,
		},
		"issues": {profile: "igloohome", steps: issues, own: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &tale{seen: map[string]bool{}}
			if c.own {
				s.s = apptest.Start(t, apptest.WithProfiles(c.profile), apptest.WithAccess(func(o *access.Options) {
					options(o)
					o.OfflineDebounce = cmp.Or(c.debounce, o.OfflineDebounce)
					o.Now = func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
				}))
			} else {
				s.s = shared.Sandbox(t, apptest.WithProfiles(c.profile))
			}
			s.device = s.s.Device(t, c.profile)
			s.lock = s.s.Lock(t, s.device)
			for _, step := range c.steps {
				step.do(t, s)
				s.tells(t, step)
			}
		})
	}
}
