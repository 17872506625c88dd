package spec_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func get(t *testing.T, s *apptest.Server, device string) api.Device {
	t.Helper()
	var out api.DeviceResponse
	if status := s.Post(t, "/devices/get", map[string]any{"device_id": device}, &out); status != http.StatusOK {
		t.Fatalf("get the device: %d", status)
	}
	return out.Device
}

// told returns the number of events of a type about a device.
func told(t *testing.T, s *apptest.Server, device, kind string) int {
	t.Helper()
	var out api.EventsResponse
	if status := s.Post(
		t,
		"/events/list",
		map[string]any{"since": "2020-01-01T00:00:00Z", "device_id": device, "event_type": kind},
		&out,
	); status != http.StatusOK {
		t.Fatalf("list the events: %d", status)
	}
	return len(out.Events)
}

func TestDevices_NameAndMetadata(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "nuki"))
	device := s.Device(t, "august")
	vendors := get(t, s, device).DisplayName
	update := func(in map[string]any) {
		t.Helper()
		in["device_id"] = device
		if status := s.Post(t, "/devices/update", in, nil); status != http.StatusOK {
			t.Fatalf("%v: %d", in, status)
		}
	}
	update(
		map[string]any{
			"name":            "Front door",
			"custom_metadata": map[string]any{"floor": "2", "wet": true, "gone": "soon"},
		},
	)
	update(map[string]any{"custom_metadata": map[string]any{"gone": nil}})
	got := get(t, s, device)
	if got.DisplayName != "Front door" || got.Nickname != "Front door" ||
		got.Properties.Name != "Front door" || got.Properties.Appearance.Name != vendors ||
		!maps.Equal(got.CustomMetadata, api.Metadata{"floor": "2", "wet": true}) {
		t.Errorf("%+v", got)
	}
	for name, conditions := range map[string]map[string]any{
		"metadata": {"custom_metadata_has": map[string]any{"floor": "2"}},
		"search":   {"search": "front"},
		"flags and metadata": {
			"include_if":          []string{"can_remotely_lock"},
			"custom_metadata_has": map[string]any{"wet": true},
		},
	} {
		var found api.DevicesResponse
		if s.Post(
			t,
			"/devices/list",
			conditions,
			&found,
		); len(found.Devices) != 1 ||
			found.Devices[0].DeviceID != device {
			t.Errorf("by %s: %d devices", name, len(found.Devices))
		}
	}
	many := map[string]any{"floor": nil}
	for i := range 50 {
		many[fmt.Sprint("key", i)] = nil
	}
	for _, path := range []string{
		"/devices/list",
		"/devices/unmanaged/list",
		"/locks/list",
		"/connected_accounts/list",
		"/connect_webviews/list",
	} {
		var f failure
		if status := s.Post(
			t,
			path,
			map[string]any{"custom_metadata_has": many},
			&f,
		); status != http.StatusBadRequest ||
			f.Error.ValidationErrors["custom_metadata_has"] == nil {
			t.Errorf("%s by %d keys: %d %+v", path, len(many), status, f.Error)
		}
	}
	var by api.DeviceResponse
	if s.Post(t, "/devices/get", map[string]any{"name": "Front door"}, &by); by.Device.DeviceID != device {
		t.Error("it is not found by its new name")
	}
	update(map[string]any{"properties": map[string]any{"name": "Back door"}})
	if got := get(t, s, device); got.DisplayName != "Back door" {
		t.Errorf("by its properties it was named %q", got.DisplayName)
	}
	update(map[string]any{"name": nil})
	if got := get(t, s, device); got.DisplayName != vendors || got.Nickname != "" {
		t.Errorf("without a name of its own it goes by %q", got.DisplayName)
	}
	if n := told(t, s, device, "device.name_changed"); n != 3 {
		t.Errorf("%d events device.name_changed, want 3", n)
	}
	var f failure
	if status := s.Post(
		t,
		"/devices/update",
		map[string]any{"device_id": device, "custom_metadata": map[string]any{"a.b": "c"}},
		&f,
	); status != http.StatusBadRequest ||
		f.Error.ValidationErrors["custom_metadata"] == nil {
		t.Errorf("a key with a dot: %d %+v", status, f.Error)
	}
}

// unmanaged are steps of an unmanaged device that is deleted in the end.
var unmanaged = []step{
	{"an account is connected", nothing, life[0].want},
	{"a code is created", create(map[string]any{"code": pinOne}), life[1].want},
	{
		"it becomes unmanaged",
		post("/devices/update", map[string]any{"is_managed": false}),
		[]string{"device.converted_to_unmanaged"},
	},
	{"the code is deleted at the keypad", keypad(http.MethodDelete, pinOne, nil), nil},
	{"the battery runs low", all(control(http.MethodPost, "/battery", map[string]any{"battery_level": 15})), nil},
	{"the device goes offline", control(http.MethodPost, "/offline", nil), []string{"device.unmanaged.disconnected"}},
	{"the device reappears", control(http.MethodPost, "/online", nil), []string{"device.unmanaged.connected"}},
	{
		"it is managed again",
		post("/devices/unmanaged/update", map[string]any{"is_managed": true}),
		[]string{
			"device.unmanaged.converted_to_managed",
			"access_code.deleted_external_to_seam",
			"access_code.set_on_device",
			"device.low_battery",
			"device.battery_status_changed",
		},
	},
	{"it is deleted", post("/devices/delete", nil), []string{
		"device.deleted", "access_code.deleted", "device.added", "device.connected",
		"access_code.unmanaged.removed", "access_code.unmanaged.removed",
		"access_code.unmanaged.created", "access_code.unmanaged.created", "access_code.unmanaged.created",
	}},
}

// The server does not write to an unmanaged device. Once it is managed again, the server reconciles it.
func TestUnmanagedDevice_IsNotWritten(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	lock := s.Lock(t, device)
	var made api.AccessCodeCreatedResponse
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": device, "code": "74628351", "sync": true},
		&made,
	); status != http.StatusBadRequest {
		t.Fatalf("august takes 8 digits: %d", status)
	}
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": device, "code": "746283", "sync": true},
		&made,
	); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	code := made.AccessCode.AccessCodeID
	if status := s.Post(
		t,
		"/devices/update",
		map[string]any{"device_id": device, "is_managed": false},
		nil,
	); status != http.StatusOK {
		t.Fatalf("unmanage: %d", status)
	}

	var list api.UnmanagedDevicesResponse
	s.Post(t, "/devices/unmanaged/list", map[string]any{}, &list)
	var one api.UnmanagedDeviceResponse
	s.Post(t, "/devices/unmanaged/get", map[string]any{"device_id": device}, &one)
	if len(list.Devices) != 1 || list.Devices[0].DeviceID != device || one.Device.DeviceID != device ||
		one.Device.IsManaged || one.Device.DisplayName == "" ||
		one.Device.DisplayName != one.Device.Properties.Name || list.Devices[0].DisplayName != one.Device.DisplayName ||
		!one.Device.Properties.Online {
		t.Errorf("%+v, %+v", list, one)
	}
	var managed api.DevicesResponse
	if s.Post(t, "/devices/list", map[string]any{}, &managed); len(managed.Devices) != 0 {
		t.Error("it is listed among the managed devices")
	}
	for path, body := range map[string]map[string]any{
		"/devices/update":      {"device_id": device, "name": "New"},
		"/access_codes/create": {"device_id": device, "code": "746284"},
		"/access_codes/update": {"access_code_id": code, "name": "New"},
		"/access_codes/delete": {"access_code_id": code},
		"/locks/lock_door":     {"device_id": device},
	} {
		var f failure
		if status := s.Post(t, path, body, &f); status != http.StatusBadRequest || f.Error.Type != "device_unmanaged" {
			t.Errorf("%s: %d %+v", path, status, f.Error)
		}
	}
	var f failure
	if status := s.Post(t, "/devices/get", map[string]any{"device_id": device}, &f); status != http.StatusNotFound {
		t.Errorf("get as a managed one: %d", status)
	}
	var kept api.AccessCodeResponse
	if status := s.Post(
		t,
		"/access_codes/get",
		map[string]any{"access_code_id": code},
		&kept,
	); status != http.StatusOK ||
		!lock.Has(t, "746283") {
		t.Errorf("its code: %d, on the lock %v", status, lock.Has(t, "746283"))
	}

	// The code is deleted at the keypad, and the lock goes offline and online. Only the latter has events.
	for _, c := range lock.Memory(t) {
		if c.PIN == "746283" {
			lock.Control(t, http.MethodDelete, "/keypad/codes/"+c.ID, nil)
		}
	}
	lock.Control(t, http.MethodPost, "/offline", struct{}{})
	apptest.Until(
		t,
		"it is listed as offline",
		func() bool { return told(t, s, device, "device.unmanaged.disconnected") == 1 },
	)
	lock.Control(t, http.MethodPost, "/online", struct{}{})
	apptest.Until(
		t,
		"it is listed as online",
		func() bool { return told(t, s, device, "device.unmanaged.connected") == 1 },
	)
	if told(t, s, device, "device.disconnected") != 0 || lock.Has(t, "746283") {
		t.Error("the server has changed it")
	}

	if status := s.Post(
		t,
		"/devices/unmanaged/update",
		map[string]any{"device_id": device, "is_managed": true, "custom_metadata": map[string]any{"a": "b"}},
		nil,
	); status != http.StatusOK {
		t.Fatalf("manage: %d", status)
	}
	if got := get(t, s, device); !got.IsManaged || got.CustomMetadata["a"] != "b" {
		t.Errorf("%+v", got)
	}
	apptest.Until(t, "the code is back", func() bool { return lock.Has(t, "746283") })
	for _, kind := range []string{"device.converted_to_unmanaged", "device.unmanaged.converted_to_managed"} {
		if n := told(t, s, device, kind); n != 1 {
			t.Errorf("%d events %s", n, kind)
		}
	}
	for path, body := range map[string]map[string]any{
		"/devices/unmanaged/update": {"device_id": device, "is_managed": true},
	} {
		if status := s.Post(t, path, body, &f); status != http.StatusBadRequest || f.Error.Type != "device_managed" {
			t.Errorf("%s: %d %+v", path, status, f.Error)
		}
	}
}

func TestUnmanagedDevice_DefaultOfTheAccount(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	account := connect(t, s, account.NewAccount{DisplayName: "Seen only", Unmanaged: true})
	var list api.UnmanagedDevicesResponse
	apptest.Until(t, "its device appears", func() bool {
		s.Post(t, "/devices/unmanaged/list", map[string]any{"connected_account_id": account}, &list)
		return len(list.Devices) == 1
	})
	var codes api.UnmanagedAccessCodesResponse
	s.Post(t, "/access_codes/unmanaged/list", map[string]any{"device_id": list.Devices[0].DeviceID}, &codes)
	if len(codes.AccessCodes) != 0 {
		t.Error("its codes were read")
	}
	if got := accounts(
		t,
		s,
		map[string]any{"search": "seen only"},
	); len(got) != 1 ||
		got[0].AutomaticallyManageNewDevices {
		t.Errorf("%+v", got)
	}
}

// A deleted device is forgotten with its codes but not changed. While its account has it, it reappears as another
// device.
func TestDeletedDevice_ReappearsAsAnother(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	device := s.Device(t, "august")
	lock := s.Lock(t, device)
	var made api.AccessCodeCreatedResponse
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": device, "code": "746283", "sync": true},
		&made,
	); status != http.StatusOK {
		t.Fatalf("create: %d", status)
	}
	if status := s.Post(t, "/devices/delete", map[string]any{"device_id": device}, nil); status != http.StatusOK {
		t.Fatalf("delete: %d", status)
	}
	if status := s.Post(t, "/devices/get", map[string]any{"device_id": device}, nil); status != http.StatusNotFound {
		t.Errorf("the deleted device: %d", status)
	}
	for path, body := range map[string]params{
		"/access_codes/get":    {"access_code_id": made.AccessCode.AccessCodeID},
		"/access_codes/list":   {"device_id": device},
		"/access_codes/delete": {"access_code_id": made.AccessCode.AccessCodeID, "sync": true},
	} {
		if status := s.Post(t, path, body, nil); status != http.StatusNotFound {
			t.Errorf("%s on the deleted device: %d", path, status)
		}
	}
	for kind, want := range map[string]int{
		"device.deleted":                  1,
		"access_code.deleted":             1,
		"access_code.removed_from_device": 0, // the code still opens
		"access_code.unmanaged.removed":   3,
	} {
		if n := told(t, s, device, kind); n != want {
			t.Errorf("%d events %s, want %d", n, kind, want)
		}
	}
	var list api.DevicesResponse
	apptest.Until(t, "it appears again", func() bool {
		s.Post(t, "/devices/list", map[string]any{}, &list)
		return len(list.Devices) == 1
	})
	if list.Devices[0].DeviceID == device {
		t.Error("it has the same identifier")
	}
	apptest.Until(t, "the code is found on it, unmanaged", func() bool {
		return slices.ContainsFunc(
			s.UnmanagedCodes(t, list.Devices[0].DeviceID),
			func(c api.UnmanagedAccessCode) bool { return c.Code != nil && *c.Code == "746283" },
		)
	})
	if !lock.Has(t, "746283") {
		t.Error("the lock was touched")
	}
}
