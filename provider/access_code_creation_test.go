package provider

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// frame is a time frame of that long, which begins so long from now.
func frame(begins, lasts time.Duration) string {
	starts := time.Now().Add(begins).UTC()
	return fmt.Sprintf("  starts_at = %q\n  ends_at = %q\n", starts.Format(time.RFC3339), starts.Add(lasts).Format(time.RFC3339))
}

// managedOn are the managed codes that the server lists for a device.
func managedOn(t *testing.T, srv *apptest.Server, device string) []api.AccessCode {
	t.Helper()
	var list api.AccessCodesResponse
	if status := srv.Post(t, "/access_codes/list", map[string]any{"device_id": device}, &list); status != http.StatusOK {
		t.Fatalf("list the codes: %d", status)
	}
	return list.AccessCodes
}

// forgotten lets go of a code that cannot be destroyed.
const forgotten = "removed {\n  from = deviceaccess_access_code.front\n  lifecycle {\n    destroy = false\n  }\n}\n"

func frontID(s *terraform.State) (string, error) { return attribute(s, front, "access_code_id"), nil }

// verifiesImport imports the code that is there, and compares it but for these attributes.
func verifiesImport(but ...string) resource.TestStep {
	return resource.TestStep{ResourceName: front, ImportState: true, ImportStateVerify: true, ImportStateIdFunc: frontID,
		ImportStateVerifyIdentifierAttribute: "access_code_id", ImportStateVerifyIgnore: but}
}

// importsAgain imports the one code of a device that was forgotten.
func importsAgain(t *testing.T, srv *apptest.Server, device, config string) resource.TestStep {
	return resource.TestStep{Config: config, ResourceName: front, ImportState: true, ImportStatePersist: true, ImportStateIdFunc: func(*terraform.State) (string, error) {
		return managedOn(t, srv, device)[0].AccessCodeID, nil
	}}
}

func TestServerOfflineCodeIsIssuedAndCannotBeChangedOrDestroyed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := srv.Device(t, "igloohome")
	srv.Lock(t, device).Control(t, http.MethodPost, "/offline", nil)
	// Not on the hour, so that the server widens it.
	begins := time.Until(time.Now().Truncate(time.Hour)) + 20*time.Minute
	time20 := frame(begins, 3*time.Hour)
	offline := func(more string) string {
		return onServer(srv, accessCodeOn(device, "is_offline_access_code = true\n"+more))
	}
	config := offline("name = \"Guest\"\n" + time20)
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectUnknownValue(front, tfjsonpath.New("code")), plancheck.ExpectKnownValue(front, tfjsonpath.New("type"), isText("time_bound")),
				plancheck.ExpectKnownValue(front, tfjsonpath.New("is_one_time_use"), knownvalue.Bool(false)),
			}},
			ConfigStateChecks: []statecheck.StateCheck{has("code", knownvalue.StringRegexp(regexp.MustCompile(`^\d{9}$`))), has("is_offline_access_code", knownvalue.Bool(true))},
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
		verifiesImport("starts_at", "ends_at", "status"),
		{ // what is taken by default anyway
			Config: offline("name = \"Guest\"\n  max_time_rounding = \"1h\"\n  prefer_native_scheduling = true\n" + time20), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
		},
		{Config: offline("name = \"Guest\"\n  max_time_rounding = \"1hour\"\n  prefer_native_scheduling = true\n" + time20), ConfigPlanChecks: plansNothing()},
		{Config: offline("name = \"Guest\"\n  max_time_rounding = \"1day\"\n" + time20), ExpectError: says("max_time_rounding", "neither changed nor deleted")},
		{Config: config, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{Config: offline("name = \"Guest\"\n  prefer_native_scheduling = false\n" + time20), ExpectError: says("prefer_native_scheduling", "neither changed nor deleted")},
		{Config: offline("name = \"Guest\"\n  preferred_code_length = 6\n" + time20), ExpectError: says("preferred_code_length", "neither changed nor deleted")},
		{Config: offline("name = \"Guest\"\n  max_time_rounding = \"1d\"\n" + time20), ExpectError: says("max_time_rounding", "neither changed nor deleted")},
		{Config: offline("name = \"Guest\"" + keptFor + "\"Ada\" }\n" + time20), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{Config: offline("name = \"Guest\"" + keptFor + "\"Grace\" }\n" + time20), ExpectError: says("keepers", "neither changed nor deleted")},
		{Config: config, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{Config: offline("name = \"Friend\"\n" + time20), ExpectError: says("Error: Update access code", "has made the offline access code", "without being told", "neither changed nor deleted", "Put its configuration back", "destroy = false")},
		{Config: offline("name = \"Guest\"\n" + frame(begins, 9*time.Hour)), ExpectError: says("with deviceaccess_access_code.front", "ends_at", "neither changed nor deleted")},
		{Config: onServer(srv, accessCodeOn(device, "is_offline_access_code = false\n  name = \"Guest\"\n"+time20)), ExpectError: says("neither changed nor deleted")},
		{Config: config, Destroy: true, ExpectError: says("Error: Delete access code", "cannot be revoked remotely", "take it out with a removed block", "terraform untaint")},
		{Config: config, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		{ // the time frame that was asked for is the server's
			Config:           config + fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", front, "${one(data.deviceaccess_access_codes.all.access_codes).access_code_id}") + allCodes(device),
			ConfigPlanChecks: plans(plancheck.ResourceActionNoop, front),
		},
		{Config: onServer(srv, forgotten)},
	}})
	if codes := managedOn(t, srv, device); len(codes) != 1 || srv.Count("/access_codes/create") != 1 || srv.Count("/access_codes/update") != 0 {
		t.Errorf("%d codes, %d creations, %d changes", len(codes), srv.Count("/access_codes/create"), srv.Count("/access_codes/update"))
	}
}

func allCodes(device string) string {
	return fmt.Sprintf("data \"deviceaccess_access_codes\" \"all\" {\n  device_id = %q\n}\n", device)
}

func TestServerOneTimeCodeNeedsNoTimeFrame(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	device := srv.Device(t, "igloohome")
	const once = "is_offline_access_code = true\n  is_one_time_use = true\n"
	config := onServer(srv, accessCodeOn(device, once))
	begins := onServer(srv, accessCodeOn(device, once+strings.SplitAfter(frame(time.Hour, time.Hour), "\n")[0]))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigStateChecks: []statecheck.StateCheck{has("type", isText("time_bound")), has("starts_at", knownvalue.Null()), has("is_one_time_use", knownvalue.Bool(true))}},
		{Config: config, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		importsAgain(t, srv, device, config),
		{Config: config, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front), ConfigStateChecks: []statecheck.StateCheck{has("ends_at", knownvalue.Null())}},
		{Config: config, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		{Config: begins, ConfigStateChecks: []statecheck.StateCheck{has("starts_at", knownvalue.NotNull()), has("ends_at", knownvalue.Null())}},
		{Config: begins, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
	}})
}

func TestServerDailyOfflineCodeKeepsTheTimeFrameThatWasAskedFor(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("igloohome"))
	config := onServer(srv, accessCodeOn(srv.Device(t, "igloohome"), "is_offline_access_code = true\n  max_time_rounding = \"1d\"\n"+frame(time.Hour, 30*24*time.Hour+5*time.Minute)))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{Config: config, ConfigPlanChecks: plansNothing()},
		{Config: strings.Replace(config, `"1d"`, `"1h"`, 1), ExpectError: says("neither changed nor deleted")},
		{Config: onServer(srv, forgotten)},
	}})
}

func TestServerOfflineCodeThatTheDeviceCannotHave(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "igloohome"))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:      onServer(srv, accessCodeOn(srv.Device(t, "august"), "is_offline_access_code = true\n"+frame(0, time.Hour))),
			ExpectError: says("Error: Create access code", "is_offline_access_code = true", "can_program_offline_access_codes is false"),
		},
		{
			Config:      onServer(srv, accessCodeOn(srv.Device(t, "igloohome"), "is_offline_access_code = true\n"+frame(0, 700*time.Hour))),
			ExpectError: says("ends_at", "1 to 672 hours", "max_time_rounding"),
		},
	}})
}

func TestServerBackupPoolStandsBehindACode(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	same, other := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	id := tfjsonpath.New("access_code_id")
	time5 := frame(0, 5*time.Hour)
	config := func(more string) string { return onServer(srv, accessCodeOn(device, time5+more)) }
	const pool = "  use_backup_access_code_pool = true\n"
	available := func(pulled bool) func() {
		return func() {
			apptest.Until(t, "the backup codes are there", func() bool { return managedOn(t, srv, device)[0].IsBackupAccessCodeAvailable })
			if pulled {
				srv.Post(t, "/access_codes/pull_backup_access_code", map[string]any{"access_code_id": managedOn(t, srv, device)[0].AccessCodeID}, nil)
			}
		}
	}
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if codes := managedOn(t, srv, device); len(codes) != 0 {
				return fmt.Errorf("%d codes are left", len(codes))
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: config(pool), ConfigStateChecks: []statecheck.StateCheck{same.AddStateValue(front, id), other.AddStateValue(front, id)}},
			{PreConfig: available(false), Config: config(pool), ConfigPlanChecks: plansNothing()},
			{
				Config:            config(pool + "  name = \"Guest\"\n"),
				ConfigStateChecks: []statecheck.StateCheck{has("is_backup_access_code_available", knownvalue.Bool(true)), has("pulled_backup_access_code_id", knownvalue.Null())},
			},
			verifiesImport("use_backup_access_code_pool"),
			{Config: onServer(srv, forgotten)},
			// Whether it has a pool is not known after an import, and nothing to replace it for.
			importsAgain(t, srv, device, config("")),
			{Config: config("  name = \"Guest\"\n"), ConfigPlanChecks: plansNothing()},
			{
				Config:           config(pool + "  name = \"Guest\"\n"),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front), ConfigStateChecks: []statecheck.StateCheck{same.AddStateValue(front, id)},
			},
			{
				PreConfig: available(true), Config: config(pool + "  name = \"Guest\"\n"), ConfigPlanChecks: plansNothing(),
			},
			{
				RefreshState: true, Check: resource.TestCheckResourceAttrSet(front, "pulled_backup_access_code_id"),
			},
			{ // it is known now
				Config:           config("  name = \"Guest\"\n"),
				ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front), ConfigStateChecks: []statecheck.StateCheck{other.AddStateValue(front, id)},
			},
		},
	})
}

func TestServerCodesAreMadeAsAskedFor(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	august, yale := srv.Device(t, "august"), srv.Device(t, "yale")
	const shared = "deviceaccess_access_code.shared"
	same, other := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	id, pin := tfjsonpath.New("access_code_id"), tfjsonpath.New("code")
	config := func(length int, more string) string {
		one := accessCodeOn(august, fmt.Sprintf("common_code_key = \"stay-17\"\n  preferred_code_length = %d\n%s", length, more))
		return onServer(srv, one+fmt.Sprintf("resource \"deviceaccess_access_code\" \"shared\" {\n  device_id = %q\n  common_code_key = %s.common_code_key\n  depends_on = [%[2]s]\n}\n", yale, front))
	}
	digits := func(n int) statecheck.StateCheck {
		return has("code", knownvalue.StringRegexp(regexp.MustCompile(fmt.Sprintf(`^\d{%d}$`, n))))
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config(6, ""), ConfigStateChecks: []statecheck.StateCheck{digits(6), same.AddStateValue(front, pin), same.AddStateValue(shared, pin), other.AddStateValue(front, id)}},
		{Config: config(6, ""), ConfigPlanChecks: plansNothing()},
		verifiesImport("preferred_code_length"),
		{ // which is no property of the code
			Config:           config(6, "  attempt_for_offline_device = false\n  prefer_native_scheduling = true\n"),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front), ConfigStateChecks: []statecheck.StateCheck{same.AddStateValue(front, pin)},
		},
		{
			PreConfig: func() {
				srv.Lock(t, august).Control(t, http.MethodPost, "/offline", nil)
				apptest.Until(t, "it is known", func() bool { return !onlineNow(t, srv, august) })
			},
			Config:      config(6, "  attempt_for_offline_device = false\n  name = \"Guest\"\n"),
			ExpectError: says("Error: Update access code", "The device is offline", "Leave attempt_for_offline_device out"),
		},
		{
			PreConfig:        func() { srv.Lock(t, august).Control(t, http.MethodPost, "/online", nil) },
			Config:           config(6, "  prefer_native_scheduling = false\n"),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front), ConfigStateChecks: []statecheck.StateCheck{other.AddStateValue(front, id)},
		},
	}})
	if asked := srv.Requests(); !slices.ContainsFunc(asked, func(r apptest.Request) bool { return r.Path == "/access_codes/update" }) {
		t.Error("nothing was asked to be changed")
	}
}

// A code has no key while nobody manages it, and none that it was not created with: that must not take its PIN off the door.
func TestServerCodeThatLostItsKeyIsConvertedAndNotReplaced(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	settings := onServer(srv, accessCodeOn(device, "common_code_key = \"stay-17\""))
	same := statecheck.CompareValue(compare.ValuesSame())
	sameCode := func() []statecheck.StateCheck {
		return []statecheck.StateCheck{
			same.AddStateValue(front, tfjsonpath.New("access_code_id")), has("is_managed", knownvalue.Bool(true)), has("common_code_key", isText("stay-17")),
		}
	}
	unmanage := func() {
		id := managedOn(t, srv, device)[0].AccessCodeID
		if status := srv.Post(t, "/access_codes/update", map[string]any{"access_code_id": id, "is_managed": false, "sync": true}, nil); status != http.StatusOK {
			t.Fatalf("unmanage: %d", status)
		}
	}
	var adopted string
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: settings, ConfigStateChecks: sameCode()},
		{
			PreConfig: func() { adopted = managedOn(t, srv, device)[0].AccessCodeID; unmanage() },
			Config:    settings, ConfigPlanChecks: convertsInPlace(), ConfigStateChecks: sameCode(),
		},
		{Config: settings, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		{
			PreConfig: unmanage,
			Config:    settings, ResourceName: front, ImportState: true, ImportStatePersist: true,
			ImportStateIdFunc: func(*terraform.State) (string, error) { return device + "/" + adopted, nil },
		},
		{Config: settings, ConfigPlanChecks: convertsInPlace(), ConfigStateChecks: sameCode()},
		{Config: settings, ConfigPlanChecks: plansNothing()},
		{Config: onServer(srv, forgotten)},
		importsAgain(t, srv, device, settings),
		{Config: settings, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front), ConfigStateChecks: sameCode()},
		{Config: settings, ConfigPlanChecks: plansNothing()},
		{ // which is asked for, and not a consequence of a key that was lost
			PreConfig: func() {
				if n := srv.Count("/access_codes/delete") + srv.Count("/access_codes/unmanaged/delete"); n != 0 {
					t.Errorf("%d codes were deleted", n)
				}
			},
			Config:           onServer(srv, accessCodeOn(device, "common_code_key = \"stay-18\"")),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front),
		},
	}})
	expectConversions(t, srv, "in the end", 2)
}

func TestKeyThatWasLostIsWarnedOf(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(accessCode("common_code_key = \"stay-17\""))})
	w.expect(true, "apply", "-auto-approve")
	f.do(func() { _, code := f.only(); code.managed = false })
	expectSaid(t, "the plan", w.plain("plan"), "Warning: Access code will be converted to managed", "Warning: The code shares no PIN", "0 to add, 1 to change, 0 to destroy")
	w.expect(true, "apply", "-auto-approve")
	if said := w.plain("plan"); !strings.Contains(said, "No changes.") {
		t.Errorf("a plan of nothing says %s", said)
	}
	f.expectWrites(t, "in the end", "/access_codes/create", converting)
}

func onlineNow(t *testing.T, srv *apptest.Server, device string) bool {
	t.Helper()
	var out api.DeviceResponse
	srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &out)
	return out.Device.Properties.Online
}

func TestAccessCodeSettingsThatRuleEachOtherOutAreRefusedBeforeTheServerIsAsked(t *testing.T) {
	later := frame(time.Hour, time.Hour)
	for name, c := range map[string]struct{ attributes, problem string }{
		"a PIN of an offline code":       {"is_offline_access_code = true\n  code = \"2468\"\n" + later, "The lock's vendor makes the PIN of an offline code"},
		"a write-only PIN of one":        {"is_offline_access_code = true\n  code_wo = \"2468\"\n  code_wo_version = 1\n" + later, "Leave `code` and `code_wo` out"},
		"an offline code for ever":       {"is_offline_access_code = true", "An offline code needs a time frame. Set `starts_at` and `ends_at`"},
		"a code that opens once, online": {"is_one_time_use = true\n" + later, "Set `is_offline_access_code = true`"},
		"backups of an offline code":     {"is_offline_access_code = true\n  use_backup_access_code_pool = true\n" + later, "Offline codes have no backup codes"},
		"an offline code to share":       {"is_offline_access_code = true\n  common_code_key = \"a\"\n" + later, "cannot be shared"},
		"backups for ever":               {"use_backup_access_code_pool = true", "Only codes with a time frame have backup codes. Set `starts_at`"},
		"a length and a PIN":             {"preferred_code_length = 6\n  code = \"2468\"", "Leave `preferred_code_length` out, or `code`"},
		"a key and a PIN":                {"common_code_key = \"a\"\n  code = \"2468\"", "Leave `code` and `code_wo` out, or the key"},
		"no rounding":                    {"is_offline_access_code = true\n  max_time_rounding = \"2h\"\n" + later, "max_time_rounding"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			run(t, resource.TestCase{Steps: []resource.TestStep{{Config: f.config(accessCode(c.attributes)), ExpectError: says(c.problem)}}})
			if writes := f.writes(); len(writes) != 0 {
				t.Errorf("writes: %v", writes)
			}
		})
	}
}

// Terraform validates a configuration without knowing any variable, also where the plan knows all.
func TestAccessCodeSettingsThatAreNotKnownYetRuleNothingOut(t *testing.T) {
	const variable = "variable \"pin\" {\n  type = string\n  default = null\n}\n"
	offline := "is_offline_access_code = true\n" + frame(time.Hour, time.Hour)
	for name, c := range map[string]struct {
		attributes string
		problem    string // when the PIN is set
	}{
		"a length instead of a PIN": {"code = var.pin\n  preferred_code_length = var.pin == null ? 6 : null", ""},
		"a length and a PIN":        {"code = var.pin\n  preferred_code_length = 6", "Leave `preferred_code_length` out"},
		"a key instead of a PIN":    {"code = var.pin\n  common_code_key = var.pin == null ? \"stay\" : null", ""},
		"a key and a PIN":           {"code = var.pin\n  common_code_key = \"stay\"", "Leave `code` and `code_wo` out, or the key"},
		"a PIN of an offline code":  {offline + "  code = var.pin", "The lock's vendor makes the PIN of an offline code"},
		"an offline code to share":  {offline + "  common_code_key = var.pin", "cannot be shared"},
		"half a time frame":         {"starts_at = var.pin == null ? null : \"2030-01-01T15:00:00Z\"", "`starts_at` goes together with `ends_at`"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			settings := f.config(variable + accessCode(c.attributes))
			withPIN := resource.TestStep{Config: strings.Replace(settings, "= null\n}", "= \"2468\"\n}", 1), PlanOnly: true, ExpectNonEmptyPlan: true}
			if c.problem != "" {
				withPIN.ExpectNonEmptyPlan, withPIN.ExpectError = false, says(c.problem)
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{{Config: settings, PlanOnly: true, ExpectNonEmptyPlan: true}, withPIN}})
			f.expectWrites(t, "in the end")
		})
	}
}

func TestAccessCodeSettingsThatTurnOutToRuleEachOtherOutAreRefusedByApply(t *testing.T) {
	f := startFake(t)
	settings := f.config("resource \"terraform_data\" \"pin\" {\n  input = \"2468\"\n}\n" + accessCode("code = terraform_data.pin.output\n  preferred_code_length = 6"))
	story(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: settings, PlanOnly: true, ExpectNonEmptyPlan: true},
		{Config: settings, ExpectError: says("Leave `preferred_code_length` out")},
	}})
	f.expectWrites(t, "in the end")
}

func TestServerDiagnosticsOfCodesSayWhatToDo(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	taken := srv.UnmanagedCodes(t, device)[0]
	account, disconnected := srv.Connect(t, "august")
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: onServer(srv, accessCodeOn(device, fmt.Sprintf("code = %q", *taken.Code))), ExpectError: says(taken.AccessCodeID, "import it as `<device_id>/<access_code_id>`", "Adopt existing codes")},
		{Config: onServer(srv, invite("  provider_category = \"nonsense\"\n")), ExpectError: says("provider_category = \"nonsense\"", "consumer_smartlocks")},
		{
			PreConfig: func() {
				srv.Post(t, "/connected_accounts/simulate/disconnect", map[string]any{"connected_account_id": account}, nil)
			},
			Config:      onServer(srv, accessCodeOn(disconnected, "timeouts {\n    create = \"15s\"\n  }")),
			ExpectError: says("account_disconnected", "have its owner log in again", "Then the server sets the code", "terraform untaint"),
		},
		{Config: onServer(srv, forgotten)},
	}})
}
