package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

const (
	devicesData   = "data.deviceaccess_devices.these"
	unmanagedData = "data.deviceaccess_unmanaged_access_codes.these"
)

func device(id, deviceType string, properties map[string]any) map[string]any {
	properties["online"], properties["name"] = true, "Front Door"
	return map[string]any{
		"device_id": id, "device_type": deviceType, "display_name": "Front Door", "connected_account_id": "a1", "workspace_id": fakeWorkspace,
		"created_at": "2026-01-02T03:04:05Z", "is_managed": true, "capabilities_supported": []string{"access_code"}, "properties": properties,
	}
}

func TestDevicesAreReadToTheLastPage(t *testing.T) {
	for name, noPagination := range map[string]bool{"pages": false, "a server without pagination": true} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.noPagination, f.pageSize = noPagination, 2
			for i := range 5 {
				f.devices = append(f.devices, device(fmt.Sprint("d", i), "august_lock", map[string]any{}))
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{{
				Config: f.config(`data "deviceaccess_devices" "these" {}`),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(devicesData, tfjsonpath.New("devices"), knownvalue.ListSizeExact(5)),
					statecheck.ExpectKnownValue(devicesData, tfjsonpath.New("devices").AtSliceIndex(4).AtMapKey("device_id"), isText("d4")),
				},
			}}})
		})
	}
}

func TestDevicesSayWhatIsKnown(t *testing.T) {
	f := startFake(t)
	full := device("d1", "nuki_lock", map[string]any{
		"manufacturer": "nuki", "model": map[string]any{"display_name": "Smart Lock"}, "supported_code_lengths": []int{6}, "max_active_codes_supported": 100,
		"code_constraints": []map[string]any{{"constraint_type": "no_zeros"}, {"constraint_type": "name_length", "min_length": 1, "max_length": 20}},
	})
	full["location"] = map[string]any{"location_name": "Paris", "time_zone": "Europe/Paris"}
	full["can_program_online_access_codes"], full["can_program_offline_access_codes"] = true, true
	f.devices = []map[string]any{full, device("d2", "nuki_lock", map[string]any{}), device("d3", "august_lock", map[string]any{})}
	is := func(index int, attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(devicesData, tfjsonpath.New("devices").AtSliceIndex(index).AtMapKey(attribute), value)
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: f.config("data \"deviceaccess_devices\" \"these\" {\n  device_type = \"nuki_lock\"\n  search = \"door\"\n  connected_account_id = \"a1\"\n}\n"),
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(devicesData, tfjsonpath.New("devices"), knownvalue.ListSizeExact(2)),
			is(0, "manufacturer", isText("nuki")), is(0, "model", isText("Smart Lock")), is(0, "time_zone", isText("Europe/Paris")),
			is(0, "location_name", isText("Paris")), is(0, "online", knownvalue.Bool(true)), is(0, "created_at", isText("2026-01-02T03:04:05Z")),
			is(0, "supported_code_lengths", knownvalue.ListExact([]knownvalue.Check{knownvalue.Int64Exact(6)})),
			is(0, "max_active_codes_supported", knownvalue.Int64Exact(100)), is(0, "can_program_online_access_codes", knownvalue.Bool(true)),
			is(1, "manufacturer", knownvalue.Null()), is(1, "model", knownvalue.Null()), is(1, "time_zone", knownvalue.Null()),
			is(1, "supported_code_lengths", knownvalue.ListSizeExact(0)), is(1, "max_active_codes_supported", knownvalue.Null()),
			is(1, "can_program_online_access_codes", knownvalue.Null()),
			is(0, "can_program_offline_access_codes", knownvalue.Bool(true)), is(1, "can_program_offline_access_codes", knownvalue.Null()),
			is(0, "code_constraints", knownvalue.ListExact([]knownvalue.Check{
				knownvalue.ObjectExact(map[string]knownvalue.Check{"constraint_type": isText("no_zeros"), "min_length": knownvalue.Null(), "max_length": knownvalue.Null()}),
				knownvalue.ObjectExact(map[string]knownvalue.Check{"constraint_type": isText("name_length"), "min_length": knownvalue.Int64Exact(1), "max_length": knownvalue.Int64Exact(20)}),
			})),
			is(1, "code_constraints", knownvalue.ListSizeExact(0)),
		},
	}}})
	for _, body := range f.bodies("/devices/list") {
		if body["search"] != "door" || body["connected_account_id"] != "a1" || body["page_cursor"] != nil || body["limit"] != 500.0 {
			t.Errorf("the list asked for %v", body)
		}
	}
}

// What has a for_each over the devices would plan to delete all that it has made.
func TestAConditionThatIsEmptyLeavesNoDeviceOut(t *testing.T) {
	f := startFakeLocks(t)
	var steps []resource.TestStep
	for _, conditions := range []string{"", `device_type = ""`, `connected_account_id = ""`, `search = ""`} {
		steps = append(steps, resource.TestStep{
			Config: f.config("data \"deviceaccess_devices\" \"these\" {\n" + conditions + "\n}\n"),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(devicesData, tfjsonpath.New("devices"), knownvalue.ListSizeExact(len(f.devices))),
			},
		})
	}
	run(t, resource.TestCase{Steps: steps})
}

func TestADeviceTypeThatNothingHasIsWarnedOf(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	config := func(conditions string) string {
		return f.config("data \"deviceaccess_devices\" \"these\" {\n" + conditions + "\n}\n")
	}
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": config(`device_type = "agust"`)})
	const warning = "Warning: No device of this type"
	expectSaid(t, "a mistyped type", w.plain("plan"), warning, `no device of the type "agust"`, "Check its spelling. There are devices of the types august_lock.")
	for _, conditions := range []string{`device_type = "august_lock"`, "device_type = \"august_lock\"\nconnected_account_id = \"a2\"", `connected_account_id = "a2"`} {
		w.rewrite(config(conditions))
		if said := w.plain("plan"); strings.Contains(said, "Warning") {
			t.Errorf("%s: %s", conditions, said)
		}
	}
	f.do(func() { f.devices = nil })
	w.rewrite(config(`device_type = "august_lock"`))
	expectSaid(t, "an empty workspace", w.plain("plan"), warning, "it has no devices")
}

func TestUnmanagedAccessCodesAreAllListedAndHiddenPINsAreNull(t *testing.T) {
	f := startFake(t)
	f.pageSize = 1
	f.unmanaged(fakeCode{name: "Plumber", code: "2468", startsAt: "2030-01-01T02:00:00+02:00", endsAt: "2030-01-02T00:00:00Z"})
	f.unmanaged(fakeCode{name: "Plumber", code: "2468", startsAt: "2030-01-01T02:00:00+02:00", endsAt: "2030-01-02T00:00:00Z"})
	empty := "33333333-2222-4222-8222-222222222222"
	is := func(index int, attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(unmanagedData, tfjsonpath.New("access_codes").AtSliceIndex(index).AtMapKey(attribute), value)
	}
	config := func(device string) string {
		return f.config(fmt.Sprintf("data \"deviceaccess_unmanaged_access_codes\" \"these\" {\n  device_id = %q\n}\n", device))
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config(fakeDevice),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(unmanagedData, tfjsonpath.New("access_codes"), knownvalue.ListSizeExact(2)),
				is(1, "name", isText("Plumber")), is(1, "code", isText("2468")), is(1, "type", isText("time_bound")), is(1, "status", isText("set")),
				is(1, "starts_at", isText("2030-01-01T00:00:00Z")), is(1, "ends_at", isText("2030-01-02T00:00:00Z")), is(1, "cannot_be_managed", knownvalue.Bool(false)),
				statecheck.ExpectSensitiveValue(unmanagedData, tfjsonpath.New("access_codes").AtSliceIndex(1).AtMapKey("code")),
			},
		},
		{
			PreConfig: func() {
				f.do(func() {
					clear(f.codes)
					f.codes["c1"] = &fakeCode{device: fakeDevice, status: "set", cannotBeManaged: true}
				})
			},
			Config: config(fakeDevice),
			ConfigStateChecks: []statecheck.StateCheck{
				is(0, "name", knownvalue.Null()), is(0, "code", knownvalue.Null()), is(0, "starts_at", knownvalue.Null()), is(0, "cannot_be_managed", knownvalue.Bool(true)),
			},
		},
		{
			Config:            config(empty),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(unmanagedData, tfjsonpath.New("access_codes"), knownvalue.ListSizeExact(0))},
		},
	}})
}
