package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const (
	devicesData   = "data.deviceaccess_devices.these"
	unmanagedData = "data.deviceaccess_unmanaged_access_codes.these"
)

func device(id, deviceType string, properties map[string]any) map[string]any {
	properties["online"], properties["name"] = true, "Front Door"
	return map[string]any{
		"device_id":              id,
		"device_type":            deviceType,
		"display_name":           "Front Door",
		"connected_account_id":   "a1",
		"workspace_id":           fakeWorkspace,
		"created_at":             "2026-01-02T03:04:05Z",
		"is_managed":             true,
		"capabilities_supported": []string{"access_code"},
		"properties":             properties,
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
					statecheck.ExpectKnownValue(
						devicesData,
						tfjsonpath.New("devices").AtSliceIndex(4).AtMapKey("device_id"),
						isText("d4"),
					),
				},
			}}})
		})
	}
}

func TestDevicesSayWhatIsKnown(t *testing.T) {
	f := startFake(t)
	full := device("d1", "nuki_lock", map[string]any{
		"manufacturer":               "nuki",
		"model":                      map[string]any{"display_name": "Smart Lock"},
		"supported_code_lengths":     []int{6},
		"max_active_codes_supported": 100,
		"code_constraints": []map[string]any{
			{"constraint_type": "no_zeros"},
			{"constraint_type": "name_length", "min_length": 1, "max_length": 20},
		},
	})
	full["location"] = map[string]any{"location_name": "Paris", "time_zone": "Europe/Paris"}
	full["can_program_online_access_codes"], full["can_program_offline_access_codes"] = true, true
	f.devices = []map[string]any{
		full,
		device("d2", "nuki_lock", map[string]any{}),
		device("d3", "august_lock", map[string]any{}),
	}
	is := func(index int, attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(
			devicesData,
			tfjsonpath.New("devices").AtSliceIndex(index).AtMapKey(attribute),
			value,
		)
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(
				"data \"deviceaccess_devices\" \"these\" {\n  device_type = \"nuki_lock\"\n  search = \"door\"\n  connected_account_id = \"a1\"\n}\n",
			),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(devicesData, tfjsonpath.New("devices"), knownvalue.ListSizeExact(2)),
				is(
					0,
					"manufacturer",
					isText("nuki"),
				),
				is(0, "model", isText("Smart Lock")),
				is(0, "time_zone", isText("Europe/Paris")),
				is(
					0,
					"location_name",
					isText("Paris"),
				),
				is(0, "online", knownvalue.Bool(true)),
				is(0, "created_at", isText("2026-01-02T03:04:05Z")),
				is(0, "supported_code_lengths", knownvalue.ListExact([]knownvalue.Check{knownvalue.Int64Exact(6)})),
				is(
					0,
					"max_active_codes_supported",
					knownvalue.Int64Exact(100),
				),
				is(0, "can_program_online_access_codes", knownvalue.Bool(true)),
				is(
					1,
					"manufacturer",
					knownvalue.Null(),
				),
				is(1, "model", knownvalue.Null()),
				is(1, "time_zone", knownvalue.Null()),
				is(
					1,
					"supported_code_lengths",
					knownvalue.ListSizeExact(0),
				),
				is(1, "max_active_codes_supported", knownvalue.Null()),
				is(1, "can_program_online_access_codes", knownvalue.Null()),
				is(
					0,
					"can_program_offline_access_codes",
					knownvalue.Bool(true),
				),
				is(1, "can_program_offline_access_codes", knownvalue.Null()),
				is(0, "code_constraints", knownvalue.ListExact([]knownvalue.Check{
					knownvalue.ObjectExact(
						map[string]knownvalue.Check{
							"constraint_type": isText("no_zeros"),
							"min_length":      knownvalue.Null(),
							"max_length":      knownvalue.Null(),
						},
					),
					knownvalue.ObjectExact(
						map[string]knownvalue.Check{
							"constraint_type": isText("name_length"),
							"min_length":      knownvalue.Int64Exact(1),
							"max_length":      knownvalue.Int64Exact(20),
						},
					),
				})),
				is(1, "code_constraints", knownvalue.ListSizeExact(0)),
			},
		},
	}})
	for _, body := range f.bodies("/devices/list") {
		if body["search"] != "door" || body["connected_account_id"] != "a1" || body["page_cursor"] != nil ||
			body["limit"] != 500.0 {
			t.Errorf("the list asked for %v", body)
		}
	}
}

// What has a for_each over the devices would plan to delete all that it has made.
func TestAConditionThatIsEmptyLeavesNoDeviceOut(t *testing.T) {
	f := startListedLocks(t)
	var steps []resource.TestStep
	for _, conditions := range []string{"", `device_type = ""`, `connected_account_id = ""`, `search = ""`} {
		steps = append(steps, resource.TestStep{
			Config: f.config("data \"deviceaccess_devices\" \"these\" {\n" + conditions + "\n}\n"),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(
					devicesData,
					tfjsonpath.New("devices"),
					knownvalue.ListSizeExact(len(f.devices)),
				),
			},
		})
	}
	run(t, resource.TestCase{Steps: steps})
}

func TestADeviceTypeThatNothingHasIsWarnedOf(t *testing.T) {
	t.Parallel()
	f := startListedLocks(t)
	config := func(conditions string) string {
		return f.config("data \"deviceaccess_devices\" \"these\" {\n" + conditions + "\n}\n")
	}
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": config(`device_type = "agust"`)})
	const warning = "Warning: No device of this type"
	expectSaid(
		t,
		"a mistyped type",
		w.plain("plan"),
		warning,
		`no device of the type "agust"`,
		"Check its spelling. The workspace has devices of the types august_lock.",
	)
	for _, conditions := range []string{`device_type = "august_lock"`, "device_type = \"august_lock\"\nconnected_account_id = \"a2\"", `connected_account_id = "a2"`} {
		w.rewrite(config(conditions))
		if said := w.plain("plan"); strings.Contains(said, "Warning") {
			t.Errorf("%s: %s", conditions, said)
		}
	}
	f.do(func() { f.devices = []map[string]any{} })
	w.rewrite(config(`device_type = "august_lock"`))
	expectSaid(t, "an empty workspace", w.plain("plan"), warning, "this one has no devices")
}

func TestUnmanagedAccessCodesAreAllListedAndHiddenPINsAreNull(t *testing.T) {
	f := startFake(t)
	f.pageSize = 1
	f.unmanaged(
		fakeCode{
			name:     "Plumber",
			code:     "2468",
			startsAt: "2030-01-01T02:00:00+02:00",
			endsAt:   "2030-01-02T00:00:00Z",
		},
	)
	f.unmanaged(
		fakeCode{
			name:     "Plumber",
			code:     "2468",
			startsAt: "2030-01-01T02:00:00+02:00",
			endsAt:   "2030-01-02T00:00:00Z",
		},
	)
	empty := "33333333-2222-4222-8222-222222222222"
	is := func(index int, attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(
			unmanagedData,
			tfjsonpath.New("access_codes").AtSliceIndex(index).AtMapKey(attribute),
			value,
		)
	}
	config := func(device string) string {
		return f.config(
			fmt.Sprintf("data \"deviceaccess_unmanaged_access_codes\" \"these\" {\n  device_id = %q\n}\n", device),
		)
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config(fakeDevice),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(unmanagedData, tfjsonpath.New("access_codes"), knownvalue.ListSizeExact(2)),
				is(
					1,
					"name",
					isText("Plumber"),
				),
				is(1, "code", isText("2468")),
				is(1, "type", isText("time_bound")),
				is(1, "status", isText("set")),
				is(
					1,
					"starts_at",
					isText("2030-01-01T00:00:00Z"),
				),
				is(1, "ends_at", isText("2030-01-02T00:00:00Z")),
				is(1, "cannot_be_managed", knownvalue.Bool(false)),
				statecheck.ExpectSensitiveValue(
					unmanagedData,
					tfjsonpath.New("access_codes").AtSliceIndex(1).AtMapKey("code"),
				),
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
				is(
					0,
					"name",
					knownvalue.Null(),
				),
				is(0, "code", knownvalue.Null()),
				is(0, "starts_at", knownvalue.Null()),
				is(0, "cannot_be_managed", knownvalue.Bool(true)),
			},
		},
		{
			Config: config(empty),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(unmanagedData, tfjsonpath.New("access_codes"), knownvalue.ListSizeExact(0)),
			},
		},
	}})
}

const deviceData = "data.deviceaccess_device.this"

func deviceBlock(attribute, value string) string {
	return fmt.Sprintf("data \"deviceaccess_device\" \"this\" {\n  %s = %q\n}\n", attribute, value)
}

func TestDeviceIsFoundByIDAndByName(t *testing.T) {
	f := startFake(t)
	garage := device("d2", "nuki_lock", map[string]any{"supported_code_lengths": []int{6}})
	garage["display_name"] = "Front Door Garage"
	f.devices = []map[string]any{device("d1", "august_lock", map[string]any{}), garage}
	is := func(attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(deviceData, tfjsonpath.New(attribute), value)
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(deviceBlock("device_id", "d2")),
			ConfigStateChecks: []statecheck.StateCheck{
				is(
					"display_name",
					isText("Front Door Garage"),
				),
				is("device_type", isText("nuki_lock")),
				is("name", knownvalue.Null()),
				is("supported_code_lengths", knownvalue.ListExact([]knownvalue.Check{knownvalue.Int64Exact(6)})),
			},
		},
		{ // although the name of the other holds it too
			Config:            f.config(deviceBlock("name", "Front Door")),
			ConfigStateChecks: []statecheck.StateCheck{is("device_id", isText("d1")), is("name", isText("Front Door"))},
		},
	}})
}

func TestDeviceThatCannotBeToldIsAnError(t *testing.T) {
	cases := map[string]struct{ block, problem string }{
		"two of that name": {
			deviceBlock("name", "Front Door"),
			`2 devices have the name "Front Door": d1, d2. Name one by its device_id`,
		},
		"none":       {deviceBlock("name", "front door"), `has no device with the name "front door"`},
		"no such id": {deviceBlock("device_id", "d9"), "Device not found"},
		"both": {
			"data \"deviceaccess_device\" \"this\" {\n  device_id = \"d1\"\n  name = \"x\"\n}\n",
			"Invalid Attribute Combination",
		},
		"neither": {"data \"deviceaccess_device\" \"this\" {}\n", "Missing Attribute Configuration"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.devices = []map[string]any{
				device("d1", "august_lock", map[string]any{}),
				device("d2", "nuki_lock", map[string]any{}),
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{{
				Config: f.config(c.block), ExpectError: says(c.problem),
			}}})
		})
	}
}

func TestAccessCodesOfADeviceAreListedWithoutPINs(t *testing.T) {
	const data, pin = "data.deviceaccess_access_codes.these", "905173846251"
	f := startFake(t)
	f.listsAllDevices = true
	f.pageSize = 1
	for i, managed := range []bool{true, true, false} {
		f.codes[fmt.Sprint("c", i)] = &fakeCode{
			device:  fakeDevice,
			name:    "Cleaner",
			code:    pin,
			managed: managed,
			status:  "set",
		}
	}
	f.codes["c9"] = &fakeCode{device: "another", managed: true, status: "set"}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(
				fmt.Sprintf("data \"deviceaccess_access_codes\" \"these\" {\n  device_id = %q\n}\n", fakeDevice),
			),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(data, tfjsonpath.New("access_codes"), knownvalue.ListSizeExact(2)),
				statecheck.ExpectKnownValue(
					data,
					tfjsonpath.New("access_codes").AtSliceIndex(1),
					knownvalue.ObjectPartial(map[string]knownvalue.Check{
						"access_code_id": isText(
							"c1",
						),
						"device_id": isText(fakeDevice),
						"name":      isText("Cleaner"),
						"status":    isText("set"),
						"type":      isText("ongoing"),
						"is_external_modification_allowed": knownvalue.Bool(
							false,
						),
						"starts_at":  knownvalue.Null(),
						"created_at": isText("2026-01-02T03:04:05.678Z"),
					}),
				),
			},
			Check: holds(pin, false),
		},
	}})
}

// People name codes after their PINs.
func TestListsOfCodesHaveNoPINsInNames(t *testing.T) {
	for name, managed := range map[string]bool{"deviceaccess_access_codes": true, "deviceaccess_unmanaged_access_codes": false} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.codes["c1"] = &fakeCode{
				device:  fakeDevice,
				name:    "Plumber 715938426052",
				code:    "715938426052",
				managed: managed,
				status:  "set",
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{{
				Config: f.config("data \"" + name + "\" \"these\" {\n  device_id = \"" + fakeDevice + "\"\n}\n"),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("data."+name+".these",
					tfjsonpath.New("access_codes").AtSliceIndex(0).AtMapKey("name"), isText("Plumber (hidden)"))},
			}}})
		})
	}
}

func TestCodesAreNotListedOfALockWithoutAName(t *testing.T) {
	for _, name := range []string{"deviceaccess_access_codes", "deviceaccess_unmanaged_access_codes"} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config: f.config(
						"data \"" + name + "\" \"these\" {\n  device_id = \"\"\n}\n",
					),
					ExpectError: says("`device_id` is empty. Name a lock"),
				},
			}})
		})
	}
}

func TestWebhooksAreListedWithoutSecrets(t *testing.T) {
	const data = "data.deviceaccess_webhooks.these"
	f := startFake(t)
	f.webhooks["w1"] = &fakeWebhook{
		url:        "https://example.com/a",
		eventTypes: []string{"device.connected", "access_code.created"},
	}
	f.webhooks["w2"] = &fakeWebhook{url: "https://example.com/b", eventTypes: []string{"*"}, more: map[string]any{
		"disabled":        true,
		"disabled_at":     "2026-01-02T03:04:05.678Z",
		"disabled_reason": "The endpoint answered 410 Gone.",
	}}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(`data "deviceaccess_webhooks" "these" {}`),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(data, tfjsonpath.New("webhooks"), knownvalue.ListExact([]knownvalue.Check{
					knownvalue.ObjectExact(map[string]knownvalue.Check{
						"webhook_id": isText("w1"),
						"url":        isText("https://example.com/a"),
						"event_types": knownvalue.SetExact(
							[]knownvalue.Check{isText("access_code.created"), isText("device.connected")},
						),
						"disabled":        knownvalue.Null(),
						"disabled_at":     knownvalue.Null(),
						"disabled_reason": knownvalue.Null(), // it does not tell
					}),
					knownvalue.ObjectExact(map[string]knownvalue.Check{
						"webhook_id": isText(
							"w2",
						),
						"url":         isText("https://example.com/b"),
						"event_types": knownvalue.SetExact([]knownvalue.Check{isText("*")}),
						"disabled": knownvalue.Bool(
							true,
						),
						"disabled_at":     isText("2026-01-02T03:04:05Z"),
						"disabled_reason": isText("The endpoint answered 410 Gone."),
					}),
				})),
			},
			Check: holds(fakeSecret, false),
		},
	}})
}

// holds checks whether a text is anywhere in the state.
func holds(text string, want bool) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		if strings.Contains(s.String(), text) != want {
			return fmt.Errorf("the state holds %s: %v", text, !want)
		}
		return nil
	}
}

func TestDeviceProvidersSayWhatIsKnown(t *testing.T) {
	const data = "data.deviceaccess_device_providers.these"
	f := startFake(t)
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(
				"data \"deviceaccess_device_providers\" \"these\" {\n  provider_category = \"stable\"\n}\n",
			),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(
					data,
					tfjsonpath.New("device_providers").AtSliceIndex(0),
					knownvalue.ObjectExact(map[string]knownvalue.Check{
						"device_provider_name": isText(
							"august",
						),
						"display_name":                     isText("August"),
						"provider_categories":              knownvalue.ListExact([]knownvalue.Check{isText("stable")}),
						"can_program_online_access_codes":  knownvalue.Null(),
						"can_program_offline_access_codes": knownvalue.Null(),
						"can_configure_auto_lock":          knownvalue.Null(),
						"can_remotely_unlock":              knownvalue.Bool(true),
						"can_remotely_lock":                knownvalue.Null(),
					}),
				),
			},
		},
	}})
	if category := f.bodies("/devices/list_device_providers")[0]["provider_category"]; category != "stable" {
		t.Errorf("the list asked for %v", category)
	}
}

func TestServerMoreDataSources(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "nuki"))
	august := srv.Device(t, "august")
	for _, body := range []map[string]any{{"name": "Nanny", "code": "905173"}, {"name": "Guest"}} {
		body["device_id"] = august
		if status := srv.Post(t, "/access_codes/create", body, nil); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	if status := srv.Post(
		t,
		"/webhooks/create",
		map[string]any{"url": "https://example.com/a"},
		nil,
	); status != http.StatusOK {
		t.Fatal(status)
	}
	config := onServer(srv, fmt.Sprintf(`
data "deviceaccess_devices" "nuki" {
  device_type = "nuki_lock"
}
data "deviceaccess_device" "this" {
  name = data.deviceaccess_devices.nuki.devices[0].display_name
}
data "deviceaccess_access_codes" "these" {
  device_id = %q
}
data "deviceaccess_webhooks" "these" {}
data "deviceaccess_device_providers" "these" {}
`, august))
	expect := func(address, attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), value)
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{{Config: config, ConfigStateChecks: []statecheck.StateCheck{
		expect(deviceData, "device_id", isText(srv.Device(t, "nuki"))),
		expect("data.deviceaccess_access_codes.these", "access_codes", knownvalue.ListSizeExact(2)),
		expect("data.deviceaccess_webhooks.these", "webhooks", knownvalue.ListSizeExact(1)),
		statecheck.ExpectKnownValue(
			"data.deviceaccess_device_providers.these",
			tfjsonpath.New("device_providers").AtSliceIndex(0).AtMapKey("device_provider_name"),
			knownvalue.NotNull(),
		),
	}}}})
}
