package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// The tests of this file play against the server of this repository, with simulated locks.

func onServer(srv *apptest.Server, more string) string {
	return fmt.Sprintf(
		"provider \"deviceaccess\" {\n  endpoint = %q\n  api_key = %q\n  workspace_id = %q\n}\n",
		srv.URL,
		srv.APIKey,
		srv.WorkspaceID,
	) + more
}

func accessCodeOn(device, more string) string {
	return fmt.Sprintf("resource \"deviceaccess_access_code\" \"front\" {\n  device_id = %q\n  %s\n}\n", device, more)
}

// expectConversions fails the test when conversions were asked for another number of times.
func expectConversions(t *testing.T, srv *apptest.Server, when string, want int) {
	t.Helper()
	if got := srv.Count(converting); got != want {
		t.Errorf("%s: %d conversions, want %d", when, got, want)
	}
}

// attribute is what the state of a resource says.
func attribute(s *terraform.State, address, name string) string {
	return s.RootModule().Resources[address].Primary.Attributes[name]
}

func TestServerWebhookIsCreatedChangedReplacedAndDestroyed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	drive(t, resource.TestCase{
		CheckDestroy: func(s *terraform.State) error {
			if status := srv.Post(
				t,
				"/webhooks/get",
				map[string]any{"webhook_id": attribute(s, hook, "webhook_id")},
				nil,
			); status != http.StatusNotFound {
				return fmt.Errorf("the webhook answers %d", status)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config:            onServer(srv, webhook("https://example.com/a", "")),
				ConfigStateChecks: []statecheck.StateCheck{eventTypes("*")},
			},
			{
				Config: onServer(
					srv,
					webhook("https://example.com/a", `event_types = ["device.disconnected", "device.connected"]`),
				),
				ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, hook),
				ConfigStateChecks: []statecheck.StateCheck{eventTypes("device.connected", "device.disconnected")},
			},
			{
				ResourceName:                         hook,
				ImportState:                          true,
				ImportStateVerify:                    true,
				ImportStateVerifyIdentifierAttribute: "webhook_id",
				ImportStateIdFunc:                    func(s *terraform.State) (string, error) { return attribute(s, hook, "webhook_id"), nil },
			},
			{
				Config:           onServer(srv, webhook("https://example.com/b", `event_types = ["device.connected"]`)),
				ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, hook),
			},
			{ // deleted behind Terraform's back
				PreConfig: func() {
					var list api.WebhooksResponse
					srv.Post(t, "/webhooks/list", map[string]any{}, &list)
					srv.Post(t, "/webhooks/delete", map[string]any{"webhook_id": list.Webhooks[0].WebhookID}, nil)
				},
				Config:           onServer(srv, webhook("https://example.com/b", `event_types = ["device.connected"]`)),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, hook),
			},
			{
				Config:      onServer(srv, webhook("https://example.com/b", `event_types = ["no.such_type"]`)),
				ExpectError: says("Error: Could not update webhook", "HTTP 400"),
			},
		},
	})
}

func TestServerAccessCodeOnEveryKindOfLock(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t)
	profiles := []string{
		"august",
		"yale",
		"schlage",
		"kwikset",
		"igloohome",
		"smartthings",
		"ttlock",
		"nuki",
		"salto_ks",
		"tedee",
	}
	locks := func(name string) string {
		var blocks strings.Builder
		for _, profile := range profiles {
			fmt.Fprintf(
				&blocks,
				"resource \"deviceaccess_access_code\" %q {\n  device_id = %q\n  name = %q\n}\n",
				profile,
				srv.Device(t, profile),
				name,
			)
		}
		return onServer(srv, blocks.String())
	}
	var checks []statecheck.StateCheck
	for _, profile := range profiles {
		address := "deviceaccess_access_code." + profile
		checks = append(checks,
			statecheck.ExpectKnownValue(address, tfjsonpath.New("status"), isText("set")),
			statecheck.ExpectKnownValue(address, tfjsonpath.New("is_managed"), knownvalue.Bool(true)))
	}
	const long, longer = "Reservation 2025-07 Ana Gómez", "Ana Gómez, Reservation 2025-07" // some locks shorten them
	onLocks := func(name string, want bool) resource.TestCheckFunc {
		return func(*terraform.State) error {
			for _, profile := range profiles {
				memory := srv.Lock(t, srv.Device(t, profile)).Memory(t)
				if slices.ContainsFunc(memory, func(c apptest.CodeOnLock) bool { return c.Name == name }) != want {
					return fmt.Errorf("%s: %v", profile, memory)
				}
			}
			return nil
		}
	}
	drive(t, resource.TestCase{
		CheckDestroy: onLocks("Guest B", false),
		Steps: []resource.TestStep{
			{Config: locks("Guest A"), ConfigStateChecks: checks, Check: onLocks("Guest A", true)},
			{Config: locks(long), ConfigStateChecks: checks, Check: onLocks("Guest A", false)},
			{Config: locks(longer), ConfigStateChecks: checks},
			{Config: locks("Guest B"), ConfigStateChecks: checks, Check: onLocks("Guest B", true)},
		},
	})
}

func TestServerAccessCodeIsChangedReplacedAndRepaired(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	august, yale := srv.Device(t, "august"), srv.Device(t, "yale")
	opens := func(device, pin string, want bool) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if srv.Lock(t, device).Has(t, pin) != want {
				return fmt.Errorf("opens for %s: %v", pin, !want)
			}
			return nil
		}
	}
	behind := func(path string, more map[string]any) func() {
		return func() {
			var list api.AccessCodesResponse
			srv.Post(t, "/access_codes/list", map[string]any{"device_id": august}, &list)
			more["access_code_id"], more["sync"] = list.AccessCodes[0].AccessCodeID, true
			if status := srv.Post(t, path, more, nil); status != http.StatusOK {
				t.Fatalf("%s: %d", path, status)
			}
		}
	}
	config := onServer(srv, accessCodeOn(august, "code = \"2468\"\n  name = \"Nanny\""))
	starts := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	frame := fmt.Sprintf("code = \"2468\"\n  name = \"Nanny\"\n  starts_at = %q\n  ends_at = %q",
		starts.In(time.FixedZone("", 7200)).Format(time.RFC3339), starts.Add(time.Hour).UTC().Format(time.RFC3339))
	drive(t, resource.TestCase{
		CheckDestroy: opens(yale, "2468", false),
		Steps: []resource.TestStep{
			{Config: config, Check: opens(august, "2468", true)},
			{
				PreConfig:        behind("/access_codes/update", map[string]any{"code": "8642"}),
				Config:           config,
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
				Check:            opens(august, "2468", true),
			},
			{
				PreConfig:         behind("/access_codes/update", map[string]any{"is_managed": false}),
				Config:            config,
				ConfigPlanChecks:  convertsInPlace(),
				ConfigStateChecks: isManagedNow(),
			},
			{
				PreConfig:        behind("/access_codes/delete", map[string]any{}),
				Config:           config,
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, front),
				Check:            opens(august, "2468", true),
			},
			{
				Config:            onServer(srv, accessCodeOn(august, frame)),
				ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, front),
				ConfigStateChecks: []statecheck.StateCheck{has("type", isText("time_bound"))},
			},
			{
				Config:           config,
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
				ConfigStateChecks: []statecheck.StateCheck{
					has("type", isText("ongoing")),
					has("status", isText("set")),
					has("starts_at", knownvalue.Null()),
				},
				Check: opens(august, "2468", true),
			},
			{
				Config:           onServer(srv, accessCodeOn(yale, "code = \"2468\"\n  name = \"Nanny\"")),
				ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front),
				Check: resource.ComposeAggregateTestCheckFunc(
					opens(august, "2468", false),
					opens(yale, "2468", true),
				),
			},
			{
				Config:      onServer(srv, accessCodeOn(yale, `code = "246"`)),
				ExpectError: says("`code` must be 4 to 12 digits"),
			},
			{
				Config:      onServer(srv, accessCodeOn(yale, `code = "246824682468"`)),
				ExpectError: says("Error: Could not update access code", "HTTP 400"),
			},
		},
	})
}

func TestServerImportByBareIDConvertsAtOnce(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	id := srv.UnmanagedCodes(t, device)[0].AccessCodeID
	config := onServer(srv, accessCodeOn(device, ""))
	play(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:             config,
			ResourceName:       front,
			ImportState:        true,
			ImportStateId:      id,
			ImportStatePersist: true,
			ImportStateCheck: func(states []*terraform.InstanceState) error {
				expectConversions(t, srv, "after the import", 1)
				if managed := states[0].Attributes["is_managed"]; managed != "true" {
					return fmt.Errorf("is_managed = %s", managed)
				}
				return nil
			},
		},
		{Config: config, ConfigPlanChecks: plansNothing(), ConfigStateChecks: isManagedNow()},
	}})
	expectConversions(t, srv, "in the end", 1)
}

func TestServerImportByDeviceAndIDIsPreviewedAndConvertsOnce(t *testing.T) {
	forms := map[string]func(config, id string) []resource.TestStep{
		"terraform import": func(config, id string) []resource.TestStep {
			return []resource.TestStep{
				{
					Config:             config,
					ResourceName:       front,
					ImportState:        true,
					ImportStateId:      id,
					ImportStatePersist: true,
				},
				{Config: config, PlanOnly: true, ExpectNonEmptyPlan: true},
				{Config: config},
			}
		},
		"import block": func(config, id string) []resource.TestStep {
			config += importBlock(id)
			return []resource.TestStep{{Config: config, PlanOnly: true, ExpectNonEmptyPlan: true}, {Config: config}}
		},
	}
	for name, steps := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := apptest.Shared(t, apptest.WithProfiles("august"))
			device := srv.Device(t, "august")
			code := srv.UnmanagedCodes(t, device)[1]
			config := onServer(srv, accessCodeOn(device, `name = "Gardener"`))
			story := steps(config, device+"/"+code.AccessCodeID)
			last := &story[len(story)-1]
			last.PreConfig = func() { expectConversions(t, srv, "after the plan", 0) }
			last.ConfigPlanChecks = convertsInPlace()
			last.ConfigStateChecks = append(
				isManagedNow(),
				has("name", isText("Gardener")),
				has("code", isText(*code.Code)),
			)
			story = append(story, resource.TestStep{Config: last.Config, ConfigPlanChecks: plansNothing()})
			play(t, resource.TestCase{
				Steps: story,
				CheckDestroy: func(*terraform.State) error {
					if srv.Lock(t, device).Has(t, *code.Code) {
						return fmt.Errorf("the PIN is still on the lock")
					}
					return nil
				},
			})
			expectConversions(t, srv, "in the end", 1)
		})
	}
}

func TestServerConversionThatTheVendorRefuses(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome", "kwikset", "smartthings"))
	for _, profile := range []string{"igloohome", "kwikset", "smartthings"} {
		device := srv.Device(t, profile)
		id := srv.UnmanagedCodes(t, device)[0].AccessCodeID
		config := onServer(srv, accessCodeOn(device, ""))
		drive(t, resource.TestCase{Steps: []resource.TestStep{
			{
				Config:      config + importBlock(id),
				ExpectError: says("does not allow existing codes to be converted", "Nothing was imported"),
			},
			{
				Config:             config,
				ResourceName:       front,
				ImportState:        true,
				ImportStateId:      device + "/" + id,
				ImportStatePersist: true,
			},
			{Config: config, ExpectError: says("does not allow existing codes to be converted", "removed {")},
			{Config: onServer(srv, "removed {\n  from = "+front+"\n  lifecycle {\n    destroy = false\n  }\n}\n")},
		}})
		if left := srv.UnmanagedCodes(
			t,
			device,
		); !slices.ContainsFunc(
			left,
			func(c api.UnmanagedAccessCode) bool { return c.AccessCodeID == id },
		) {
			t.Errorf("%s: the code is gone", profile)
		}
	}
	expectConversions(t, srv, "in the end", 0)
}

func TestServerLockThatIsOffline(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	lock := srv.Lock(t, device)
	config := onServer(
		srv,
		accessCodeOn(device, "code = \"2468\"\n  timeouts {\n    create = \"15s\"\n    delete = \"5m\"\n  }"),
	)
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if lock.Has(t, "2468") {
				return fmt.Errorf("the PIN is still on the lock")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				PreConfig: func() {
					lock.Control(t, http.MethodPost, "/offline", nil)
					apptest.Until(t, "the server knows", func() bool {
						var d api.DeviceResponse
						return srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &d) == http.StatusOK &&
							!d.Device.Properties.Online
					})
				},
				Config: config,
				ExpectError: says(
					"Error: Could not create access code",
					"(CREATE_ACCESS_CODE) was still pending when the time was up",
					"the access code says:",
					"device_offline",
					"terraform untaint",
				),
			},
			{
				PreConfig:         func() { lock.Control(t, http.MethodPost, "/online", nil) },
				Config:            config,
				ConfigPlanChecks:  plans(plancheck.ResourceActionDestroyBeforeCreate, front),
				ConfigStateChecks: isManagedNow(),
			},
		},
	})
}

func TestServerLockThatIsSlow(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	lock := srv.Lock(t, device)
	latency := func(ms int) func() {
		return func() {
			lock.Control(
				t,
				http.MethodPut,
				"/faults",
				map[string]any{"latency_ms": map[string]int{"min": ms, "max": ms}},
			)
		}
	}
	config := onServer(srv, accessCodeOn(device, "code = \"2468\"\n  timeouts {\n    create = \"15s\"\n  }"))
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if lock.Has(t, "2468") {
				return fmt.Errorf("the PIN is still on the lock")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				PreConfig:   latency(30_000),
				Config:      config,
				ExpectError: says("was still pending when the time was up", "marked as tainted"),
			},
			{PreConfig: latency(1), Config: config, Destroy: true},
		},
	})
}

func TestServerKeyOfAnotherWorkspaceEmptiesNoState(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	other := apptest.Shared(t, apptest.WithProfiles("august"))
	config := accessCodeOn(srv.Device(t, "august"), `code = "2468"`)
	stranger := strings.Replace(onServer(srv, config), srv.APIKey, other.APIKey, 1)
	stranger = strings.Replace(stranger, srv.URL, other.URL, 1)
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: onServer(srv, config)},
		{Config: stranger, ExpectError: says("belongs to workspace", "Nothing was read or changed")},
		{Config: onServer(srv, config), ConfigPlanChecks: plansNothing()},
	}})
}

func TestServerDataSources(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "smartthings"))
	config := onServer(srv, fmt.Sprintf(workspaceData+`
data "deviceaccess_devices" "all" {}
data "deviceaccess_devices" "august" {
  device_type = "august_lock"
}
data "deviceaccess_unmanaged_access_codes" "august" {
  device_id = %q
}
data "deviceaccess_unmanaged_access_codes" "smartthings" {
  device_id = %q
}
`, srv.Device(t, "august"), srv.Device(t, "smartthings")))
	codes := func(profile, attribute string) (string, tfjsonpath.Path) {
		return "data.deviceaccess_unmanaged_access_codes." + profile, tfjsonpath.New("access_codes").
			AtSliceIndex(0).
			AtMapKey(attribute)
	}
	expect := func(address string, path tfjsonpath.Path, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(address, path, value)
	}
	augustCode, augustPath := codes("august", "code")
	hiddenCode, hiddenPath := codes("smartthings", "code")
	drive(
		t,
		resource.TestCase{Steps: []resource.TestStep{{Config: config, ConfigStateChecks: append(
			workspaceIs(srv.WorkspaceID),
			statecheck.ExpectKnownValue(
				"data.deviceaccess_workspace.this",
				tfjsonpath.New("is_sandbox"),
				knownvalue.Bool(true),
			),
			expect("data.deviceaccess_devices.all", tfjsonpath.New("devices"), knownvalue.ListSizeExact(2)),
			expect(
				"data.deviceaccess_devices.august",
				tfjsonpath.New("devices").AtSliceIndex(0).AtMapKey("device_id"),
				isText(srv.Device(t, "august")),
			),
			expect(augustCode, augustPath, knownvalue.StringFunc(func(pin string) error {
				if !validators.IsPIN(pin) {
					return fmt.Errorf("no PIN")
				}
				return nil
			})),
			statecheck.ExpectSensitiveValue(augustCode, augustPath),
			expect(hiddenCode, hiddenPath, knownvalue.Null()),
			expect(
				hiddenCode,
				tfjsonpath.New("access_codes").AtSliceIndex(0).AtMapKey("cannot_be_managed"),
				knownvalue.Bool(true),
			),
		)}}},
	)
}
