package spec_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func configure(t *testing.T, s *apptest.Server, in map[string]any) api.ActionAttempt {
	t.Helper()
	var out api.ActionAttemptResponse
	if status := s.Post(t, "/locks/configure_auto_lock", in, &out); status != http.StatusOK {
		t.Fatalf("configure_auto_lock: %d", status)
	}
	return out.ActionAttempt
}

func hasError(problems []api.Problem, code string) bool {
	return slices.ContainsFunc(problems, func(p api.Problem) bool { return p.ErrorCode == code })
}

// A lock with auto-lock locks itself, shows the setting, and stops when it is turned off.
func TestLockSettings_AutoLock(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "kwikset"))
	device := s.Device(t, "august")
	if d := get(
		t,
		s,
		device,
	); !*d.CanConfigureAutoLock || *d.Properties.AutoLockEnabled ||
		d.Properties.AutoLockDelaySeconds != nil {
		t.Errorf("at first: %t, %v", *d.Properties.AutoLockEnabled, d.Properties.AutoLockDelaySeconds)
	}
	set := configure(
		t,
		s,
		map[string]any{"device_id": device, "auto_lock_enabled": true, "auto_lock_delay_seconds": 1.5, "sync": true},
	)
	if set.ActionType != "CONFIGURE_AUTO_LOCK" || set.Status != "success" {
		t.Fatalf("the attempt: %+v", set)
	}
	if p := get(t, s, device).Properties; !*p.AutoLockEnabled || *p.AutoLockDelaySeconds != 1.5 {
		t.Errorf("it shows %t, %v", *p.AutoLockEnabled, *p.AutoLockDelaySeconds)
	}
	locked := func() int {
		t.Helper()
		var told api.EventsResponse
		s.Post(
			t,
			"/events/list",
			map[string]any{"since": "2020-01-01", "device_id": device, "event_type": "lock.locked"},
			&told,
		)
		n := 0
		for _, e := range told.Events {
			if e.AdditionalProperties["method"] == "automatic" {
				n++
			}
		}
		return n
	}
	unlock := func() {
		t.Helper()
		var out api.ActionAttemptResponse
		if s.Post(
			t,
			"/locks/unlock_door",
			map[string]any{"device_id": device, "sync": true},
			&out,
		); out.ActionAttempt.Status != "success" {
			t.Fatalf("unlock: %+v", out.ActionAttempt)
		}
	}
	unlock()
	apptest.Until(t, "it locks itself", func() bool { return locked() == 1 && *get(t, s, device).Properties.Locked })

	// Without auto-lock, the lock stays unlocked and keeps the delay.
	configure(t, s, map[string]any{"device_id": device, "auto_lock_enabled": false, "sync": true})
	if p := get(t, s, device).Properties; *p.AutoLockEnabled || *p.AutoLockDelaySeconds != 1.5 {
		t.Errorf("switched off it shows %t, %v", *p.AutoLockEnabled, *p.AutoLockDelaySeconds)
	}
	unlock()
	if locked() > 1 {
		t.Error("it has locked itself although auto-lock is off")
	}
	configure(t, s, map[string]any{"device_id": device, "auto_lock_enabled": true, "auto_lock_delay_seconds": 1})
	apptest.Until(t, "a door that is open when it is switched on is locked", func() bool { return locked() == 2 })

	s.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": device}, nil)
	offline := configure(t, s, map[string]any{"device_id": device, "auto_lock_enabled": false})
	if offline.Status != "error" || offline.Error.Type != "device_offline" {
		t.Errorf("of an offline lock: %+v", offline)
	}
	for name, c := range map[string]struct {
		in     map[string]any
		status int
		kind   string
	}{
		"no delay": {map[string]any{"device_id": device, "auto_lock_enabled": true}, 400, "invalid_input"},
		"too long": {
			map[string]any{"device_id": device, "auto_lock_enabled": true, "auto_lock_delay_seconds": 61},
			400,
			"invalid_input",
		},
		"too short": {
			map[string]any{"device_id": device, "auto_lock_enabled": true, "auto_lock_delay_seconds": 0.5},
			400,
			"invalid_input",
		},
		"nothing said": {map[string]any{"device_id": device}, 400, "invalid_input"},
		"one that cannot": {
			map[string]any{"device_id": s.Device(t, "kwikset"), "auto_lock_enabled": false},
			400,
			"device_type_not_supported",
		},
		"no such device": {
			map[string]any{"device_id": uuid.NewString(), "auto_lock_enabled": false},
			404,
			"device_not_found",
		},
	} {
		var f failure
		if status := s.Post(t, "/locks/configure_auto_lock", c.in, &f); status != c.status || f.Error.Type != c.kind {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
}

func TestLockSettings_OfflineHub(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	device := s.Device(t, "august")
	if d := get(
		t,
		s,
		device,
	); !*d.CanSimulateHubConnection || !*d.CanSimulateHubDisconnection ||
		*get(t, s, s.Device(t, "yale")).CanSimulateHubConnection {
		t.Error("the devices behind a hub are not marked")
	}
	if status := s.Post(
		t,
		"/devices/simulate/disconnect_from_hub",
		map[string]any{"device_id": device},
		nil,
	); status != http.StatusOK {
		t.Fatalf("disconnect_from_hub: %d", status)
	}
	d := get(t, s, device)
	if d.Properties.Online || !hasError(d.Errors, "hub_disconnected") || hasError(d.Errors, "device_offline") {
		t.Errorf("online %t, errors %+v", d.Properties.Online, d.Errors)
	}
	var made api.AccessCodeCreatedResponse
	s.Post(t, "/access_codes/create", map[string]any{"device_id": device, "code": "746283"}, &made)
	if got := code(
		t,
		s,
		made.AccessCode.AccessCodeID,
	); !hasError(got.Errors, "hub_disconnected") ||
		got.Status == "set" {
		t.Errorf("a code is %s, errors %+v", got.Status, got.Errors)
	}
	s.Post(t, "/devices/simulate/connect_to_hub", map[string]any{"device_id": device}, nil)
	untilSet(t, s, []api.AccessCode{code(t, s, made.AccessCode.AccessCodeID)})
	if d := get(t, s, device); !d.Properties.Online || len(d.Errors) > 0 {
		t.Errorf("with the hub back: online %t, errors %+v", d.Properties.Online, d.Errors)
	}

	// A lock that is offline itself does not return with its hub.
	s.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": device}, nil)
	s.Post(t, "/devices/simulate/disconnect_from_hub", map[string]any{"device_id": device}, nil)
	s.Post(t, "/devices/simulate/connect_to_hub", map[string]any{"device_id": device}, nil)
	if d := get(
		t,
		s,
		device,
	); d.Properties.Online || !hasError(d.Errors, "device_offline") ||
		hasError(d.Errors, "hub_disconnected") {
		t.Errorf("online %t, errors %+v", d.Properties.Online, d.Errors)
	}
	var f failure
	if status := s.Post(
		t,
		"/devices/simulate/connect_to_hub",
		map[string]any{"device_id": s.Device(t, "yale")},
		&f,
	); status != http.StatusBadRequest ||
		f.Error.Type != "device_type_not_supported" {
		t.Errorf("a device behind no hub: %d %+v", status, f.Error)
	}
}

func TestLockSettings_PaidSubscription(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("nuki", "yale"))
	device := s.Device(t, "nuki")
	expire := func(expired bool) {
		t.Helper()
		if status := s.Post(
			t,
			"/devices/simulate/paid_subscription",
			map[string]any{"device_id": device, "is_expired": expired},
			nil,
		); status != http.StatusOK {
			t.Fatalf("paid_subscription: %d", status)
		}
	}
	var kept, made api.AccessCodeCreatedResponse
	s.Post(t, "/access_codes/create", map[string]any{"device_id": device, "code": "746283", "sync": true}, &kept)
	expire(true)
	if d := get(
		t,
		s,
		device,
	); !*d.CanSimulatePaidSubscription || !d.Properties.Online ||
		!hasError(d.Errors, "subscription_required") {
		t.Errorf("errors %+v", d.Errors)
	}
	s.Post(t, "/access_codes/create", map[string]any{"device_id": device, "code": "746284", "sync": true}, &made)
	if a := made.ActionAttempt; a.Status != "error" || a.Error.Type != "subscription_required" ||
		!hasError(made.AccessCode.Errors, "subscription_required") {
		t.Errorf("the attempt of a new code: %+v", a)
	}
	if s.Lock(t, device).Has(t, "746284") {
		t.Error("the code is on the lock")
	}
	var gone api.ActionAttemptResponse
	s.Post(
		t,
		"/access_codes/delete",
		map[string]any{"access_code_id": kept.AccessCode.AccessCodeID, "sync": true},
		&gone,
	)
	if a := gone.ActionAttempt; a.Status != "error" || a.Error.Type != "subscription_required" {
		t.Errorf("the attempt of a deletion: %+v", a)
	}
	expire(false)
	untilSet(t, s, []api.AccessCode{code(t, s, made.AccessCode.AccessCodeID)})
	apptest.Until(t, "the other code is removed", func() bool { return !s.Lock(t, device).Has(t, "746283") })
	if d := get(t, s, device); len(d.Errors) > 0 {
		t.Errorf("errors %+v", d.Errors)
	}
	var f failure
	if status := s.Post(
		t,
		"/devices/simulate/paid_subscription",
		map[string]any{"device_id": s.Device(t, "yale"), "is_expired": true},
		&f,
	); status != http.StatusBadRequest {
		t.Errorf("a vendor that wants nothing: %d %+v", status, f.Error)
	}
}

// unpaid are the steps of a vendor that requires a subscription, and of an offline hub.
var (
	unpaid = []step{
		{
			"an account is connected",
			nothing,
			[]string{
				"connected_account.created", "connected_account.connected", "connected_account.completed_first_sync",
				"device.added", "device.connected", "access_code.unmanaged.created",
			},
		},
		{
			"the subscription expires",
			post("/devices/simulate/paid_subscription", map[string]any{"is_expired": true}),
			[]string{"device.error.subscription_required"},
		},
		{
			"it expires again",
			all(post("/devices/simulate/paid_subscription", map[string]any{"is_expired": true}), look),
			nil,
		},
		{
			"it is renewed",
			post("/devices/simulate/paid_subscription", map[string]any{"is_expired": false}),
			[]string{"device.error.subscription_required.resolved"},
		},
	}
	hubs = []step{
		{"an account is connected", nothing, append([]string{"access_code.unmanaged.created"}, life[0].want...)},
		{"the hub goes offline", post("/devices/simulate/disconnect_from_hub", nil), []string{"device.disconnected"}},
		{"it returns", post("/devices/simulate/connect_to_hub", nil), []string{"device.connected"}},
	}
)

func TestLockSettings_TimeZones(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("schlage", "yale"))
	device, other := s.Device(t, "schlage"), s.Device(t, "yale")
	report := func(devices ...map[string]any) (f failure, status int) {
		t.Helper()
		status = s.Post(t, "/devices/report_provider_metadata", map[string]any{"devices": devices}, &f)
		return f, status
	}
	zone := func(device, vendor, zone string) map[string]any {
		return map[string]any{"device_id": device, vendor + "_metadata": map[string]any{"time_zone": zone}}
	}
	if _, status := report(
		zone(device, "schlage", "Europe/Zurich"),
	); status != http.StatusOK ||
		get(t, s, device).Location.TimeZone != "Europe/Zurich" {
		t.Fatalf("report: %d %+v", status, get(t, s, device).Location)
	}
	for name, c := range map[string]struct {
		devices []map[string]any
		status  int
		kind    string
	}{
		"none":         {nil, 400, "invalid_input"},
		"no time zone": {[]map[string]any{zone(device, "schlage", "Zurich")}, 400, "invalid_input"},
		"another vendor's": {
			[]map[string]any{zone(device, "schlage", "Asia/Tokyo"), zone(other, "ultraloq", "Asia/Tokyo")},
			400,
			"invalid_input",
		},
		"twice": {
			[]map[string]any{zone(device, "schlage", "Asia/Tokyo"), zone(device, "schlage", "Asia/Tokyo")},
			400,
			"invalid_input",
		},
		"no device": {
			[]map[string]any{zone(device, "schlage", "Asia/Tokyo"), zone(uuid.NewString(), "schlage", "Asia/Tokyo")},
			404,
			"device_not_found",
		},
	} {
		if f, status := report(c.devices...); status != c.status || f.Error.Type != c.kind {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
	if got := get(t, s, device).Location.TimeZone; got != "Europe/Zurich" {
		t.Errorf("a rejected change has set it to %s", got)
	}
}
