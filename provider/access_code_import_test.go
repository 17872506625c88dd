package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

const (
	converting = "/access_codes/unmanaged/convert_to_managed"
	deleting   = "/access_codes/unmanaged/delete"
)

func importBlock(id string) string {
	return fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", front, id)
}

// expectWrites fails the test when other operations than these were asked for, apart from reads.
func (f *fake) expectWrites(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := f.writes(); !slices.Equal(got, want) {
		t.Errorf("%s: writes %q, want %q", when, got, want)
	}
}

func convertsInPlace() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(front, plancheck.ResourceActionUpdate),
		plancheck.ExpectKnownValue(front, tfjsonpath.New("is_managed"), knownvalue.Bool(true)),
	}}
}

func isManagedNow() []statecheck.StateCheck {
	return []statecheck.StateCheck{has("is_managed", knownvalue.Bool(true)), has("status", isText("set"))}
}

func TestImportByBareIDConvertsAtOnce(t *testing.T) {
	for name, noUnmanagedGet := range map[string]bool{"reads by identifier": false, "reads by device only": true} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.noUnmanagedGet = noUnmanagedGet
			id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
			config := f.config(accessCode(""))
			run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
				{
					Config: config, ResourceName: front, ImportState: true, ImportStateId: id, ImportStatePersist: true,
					ImportStateCheck: func(states []*terraform.InstanceState) error {
						f.expectWrites(t, "after the import", converting)
						if managed := states[0].Attributes["is_managed"]; managed != "true" {
							t.Errorf("is_managed = %s", managed)
						}
						return nil
					},
				},
				{Config: config, ConfigPlanChecks: plansNothing(), ConfigStateChecks: append(isManagedNow(), has("code", isText("2468")), has("name", isText("Plumber")))},
			}})
			f.expectWrites(t, "in the end", converting, "/access_codes/delete")
		})
	}
}

func TestImportByDeviceAndIDWritesNothingUntilApply(t *testing.T) {
	for name, noUnmanagedGet := range map[string]bool{"reads by identifier": false, "reads by device only": true} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.noUnmanagedGet, f.pageSize = noUnmanagedGet, 1
			f.unmanaged(fakeCode{name: "Another"})
			id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
			config := f.config(accessCode(""))
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config: config, ResourceName: front, ImportState: true, ImportStateId: fakeDevice + "/" + id, ImportStatePersist: true,
					ImportStateCheck: func(states []*terraform.InstanceState) error {
						if managed := states[0].Attributes["is_managed"]; managed != "false" {
							t.Errorf("is_managed = %s", managed)
						}
						return nil
					},
				},
				{PreConfig: func() { f.expectWrites(t, "after the import") }, Config: config, ConfigPlanChecks: convertsInPlace(), ConfigStateChecks: isManagedNow()},
				{Config: config, ConfigPlanChecks: plansNothing()},
			}})
			f.expectWrites(t, "in the end", converting, "/access_codes/delete")
		})
	}
}

func TestImportBlockShowsTheConversionAndAppliesItOnce(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
	config := f.config(accessCode("name = \"Cleaner\"\n  code = \"8642\"\n  is_external_modification_allowed = true") + importBlock(fakeDevice+"/"+id))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config, PlanOnly: true, ExpectNonEmptyPlan: true},
		{
			PreConfig:         func() { f.expectWrites(t, "after the plan") },
			Config:            config,
			ConfigPlanChecks:  convertsInPlace(),
			ConfigStateChecks: append(isManagedNow(), has("name", isText("Cleaner")), has("code", isText("8642"))),
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
	f.expectWrites(t, "in the end", converting, "/access_codes/update", "/access_codes/delete")
	if convert := f.bodies(converting)[0]; convert["is_external_modification_allowed"] != true {
		t.Errorf("the conversion asked for %v", convert)
	}
	update := f.bodies("/access_codes/update")[0]
	if _, again := update["is_external_modification_allowed"]; again || update["name"] != "Cleaner" || update["code"] != "8642" {
		t.Errorf("the update asked for %v", update)
	}
}

func TestImportBlockOfAnUnmanagedCodeCanBePlannedByTheTestFramework(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: f.config(accessCode("")), ResourceName: front, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
		ImportStateId: fakeDevice + "/" + id, ExpectNonEmptyPlan: true,
		ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectKnownValue(front, tfjsonpath.New("is_managed"), knownvalue.Bool(true)),
			plancheck.ExpectUnknownValue(front, tfjsonpath.New("name")),
		}},
	}}})
	f.expectWrites(t, "after the plan")
}

func TestImportOfACodeThatTerraformCreatedIsComplete(t *testing.T) {
	f := startFake(t)
	config := f.config(accessCode("name = \"Cleaner\"\n  starts_at = \"2030-01-01T02:00:00+02:00\"\n  ends_at = \"2030-01-02T02:00:00+02:00\""))
	imported := func(withDevice bool) resource.TestStep {
		return resource.TestStep{
			ResourceName: front, ImportState: true, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "access_code_id",
			ImportStateVerifyIgnore: []string{"starts_at", "ends_at"}, // the server's spelling
			ImportStateIdFunc: func(*terraform.State) (string, error) {
				id, _ := f.only()
				if withDevice {
					return fakeDevice + "/" + id, nil
				}
				return id, nil
			},
		}
	}
	inBlock := imported(true)
	inBlock.ImportStateKind, inBlock.ImportStateVerify, inBlock.ImportStateVerifyIgnore = resource.ImportBlockWithID, false, nil
	inBlock.ImportStateVerifyIdentifierAttribute = ""
	run(t, resource.TestCase{Steps: []resource.TestStep{{Config: config}, imported(false), imported(true), inBlock}})
	f.expectWrites(t, "in the end", "/access_codes/create", "/access_codes/delete")
}

// Nobody knows what a code was created with that was there before Terraform, however often it was applied since: its PIN must not go from the
// lock for a setting.
func TestSettingOfAnAdoptedCodeNeverReplacesIt(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: "246810"})
	config := func(settings string) string { return f.config(accessCode(settings)) }
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config("") + importBlock(fakeDevice+"/"+id), ConfigPlanChecks: convertsInPlace()},
		{Config: config(`name = "Painter"`), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front)},
		{
			Config:           config("name = \"Painter\"\n  prefer_native_scheduling = false\n  preferred_code_length = 6\n  common_code_key = \"x\""),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front), ConfigStateChecks: append(isManagedNow(), has("code", isText("246810"))),
		},
		{ // it is known now
			Config:           config("name = \"Painter\"\n  prefer_native_scheduling = false\n  preferred_code_length = 8\n  common_code_key = \"x\""),
			ConfigPlanChecks: plans(plancheck.ResourceActionDestroyBeforeCreate, front),
		},
	}})
}

func TestImportThenDestroyDeletesTheUnmanagedCode(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	config := f.config(accessCode(""))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config, ResourceName: front, ImportState: true, ImportStateId: fakeDevice + "/" + id, ImportStatePersist: true},
		{Config: config, Destroy: true},
	}})
	f.expectWrites(t, "in the end", deleting)
}

func TestImportThatMustNotWriteIsRefused(t *testing.T) {
	for name, noUnmanagedGet := range map[string]bool{"reads by identifier": false, "reads by device only": true} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.noUnmanagedGet = noUnmanagedGet
			id := f.unmanaged(fakeCode{code: "2468"})
			device := fakeDevice
			if noUnmanagedGet {
				device = "<device_id>"
			}
			config := fmt.Sprintf("provider \"deviceaccess\" {\n  endpoint = %q\n  api_key = %q\n  convert_on_import = false\n}\n", f.URL, fakeKey)
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: config + accessCode("") + importBlock(id), ExpectError: says("convert_on_import is off", "Import "+device+"/", "the plan shows the conversion")},
				{Config: config + accessCode("") + importBlock(fakeDevice+"/"+id), ConfigPlanChecks: convertsInPlace(), ConfigStateChecks: isManagedNow()},
			}})
			f.expectWrites(t, "in the end", converting, "/access_codes/delete")
		})
	}
}

func TestImportOfNothingSaysSo(t *testing.T) {
	const nobody = "44444444-2222-4222-8222-222222222222"
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	f.devices = append(f.devices, device(fakeDevice, "august_lock", map[string]any{}))
	cases := map[string]struct{ id, problem string }{
		"bare":             {nobody, "neither managed nor unmanaged"},
		"with device":      {fakeDevice + "/" + nobody, "There is no access code " + nobody + " on the device " + fakeDevice},
		"the other way":    {id + "/" + fakeDevice, fakeDevice + " is a device, and no access code. Is the order right? Write `<device_id>/<access_code_id>`, here " + fakeDevice + "/" + id},
		"another device":   {nobody + "/" + id, "is on the device " + fakeDevice + ", not on " + nobody},
		"no identifier":    {"front-door", "Check the identifier"},
		"empty device":     {"/" + id, "is neither `<access_code_id>` nor `<device_id>/<access_code_id>`"},
		"too many slashes": {fakeDevice + "/x/" + id, "is neither `<access_code_id>` nor `<device_id>/<access_code_id>`. Write `<device_id>/<access_code_id>`: the data source deviceaccess_devices lists devices"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			run(t, resource.TestCase{Steps: []resource.TestStep{{Config: f.config(accessCode("") + importBlock(c.id)), ExpectError: says(c.problem)}}})
		})
	}
}

func TestCodeThatItsVendorDoesNotLetBeConverted(t *testing.T) {
	start := func(t *testing.T) (*fake, string) {
		f := startFake(t)
		return f, f.unmanaged(fakeCode{name: "Plumber", cannotBeManaged: true}) // and hides its PIN, like SmartThings
	}
	t.Run("bare", func(t *testing.T) {
		f, id := start(t)
		run(t, resource.TestCase{Steps: []resource.TestStep{{
			Config: f.config(accessCode("") + importBlock(id)), ExpectError: says("igloohome, Kwikset and SmartThings", "Nothing was imported", "unmanaged", "Delete it in the app of the lock, and let Terraform create one"),
		}}})
		f.expectWrites(t, "in the end")
	})
	t.Run("with device", func(t *testing.T) {
		f, id := start(t)
		config := f.config(accessCode(""))
		run(t, resource.TestCase{Steps: []resource.TestStep{
			{Config: config, ResourceName: front, ImportState: true, ImportStateId: fakeDevice + "/" + id, ImportStatePersist: true},
			{Config: config, ExpectError: says("Error: Convert access code to managed", "igloohome, Kwikset and SmartThings", "stays on the lock as it is, unmanaged", "removed {")},
			{ // what the message advises
				Config: f.config("removed {\n  from = " + front + "\n  lifecycle {\n    destroy = false\n  }\n}\n"),
			},
		}})
		f.expectWrites(t, "in the end")
	})
	t.Run("the server says so only when asked", func(t *testing.T) {
		f, id := start(t)
		f.codes[id].cannotBeManaged = false
		f.then(converting, answerError(400, "access_code_cannot_be_managed", "This lock does not let codes be managed"))
		run(t, resource.TestCase{Steps: []resource.TestStep{{
			Config:      f.config(accessCode("") + importBlock(fakeDevice+"/"+id)),
			ExpectError: says("Error: Convert access code to managed", "This lock does not let codes be managed (HTTP 400", "removed {"),
		}}})
		f.expectWrites(t, "in the end", converting, deleting)
	})
	t.Run("nor be deleted", func(t *testing.T) {
		f, id := start(t)
		f.codes[id].cannotBeDeleted = true
		config := f.config(accessCode(""))
		run(t, resource.TestCase{Steps: []resource.TestStep{
			{Config: config, ResourceName: front, ImportState: true, ImportStateId: fakeDevice + "/" + id, ImportStatePersist: true},
			{Config: config, Destroy: true, ExpectError: says("Error: Delete access code", "does not let codes be deleted", "Delete it in the app of the lock")},
			{PreConfig: func() { f.do(func() { clear(f.codes) }) }, Config: config, Destroy: true},
		}})
		f.expectWrites(t, "in the end")
	})
}

func TestConversionThatReportsAFailureButHappenedIsASuccess(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	f.nextAttempt = func(a *fakeAttempt) {
		if a.actionType == "CONVERT_ACCESS_CODE_TO_MANAGED" {
			a.failure = map[string]any{"type": "uncategorized_error", "message": "no answer from the vendor"}
			f.codes[id].managed = true
		}
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: f.config(accessCode("") + importBlock(fakeDevice+"/"+id)), ConfigStateChecks: isManagedNow(),
	}}})
}

func TestConversionThatFailsLeavesTheCodeUnmanagedAndIsRepeatable(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	f.nextAttempt = func(a *fakeAttempt) {
		if a.actionType == "CONVERT_ACCESS_CODE_TO_MANAGED" {
			a.failure = map[string]any{"type": "device_offline", "message": "2468 cannot be read, the lock is offline"}
		}
	}
	config := f.config(accessCode("") + importBlock(fakeDevice+"/"+id))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ExpectError: says("(CONVERT_ACCESS_CODE_TO_MANAGED) failed: (hidden) cannot be read, the lock is offline (device_offline)", "still unmanaged")},
		{PreConfig: func() { f.do(func() { f.nextAttempt = nil }) }, Config: config, ConfigPlanChecks: convertsInPlace(), ConfigStateChecks: isManagedNow()},
	}})
	f.expectWrites(t, "in the end", converting, converting, "/access_codes/delete")
}

func TestUpdateThatFailsAfterAConversionDoesNotConvertAgain(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468"})
	f.then("/access_codes/update", answerError(400, "invalid_input", "This lock takes no such name"))
	w := newDirectory(t, map[string]string{"main.tf": required + f.config(accessCode(`name = "Cleaner"`)+importBlock(fakeDevice+"/"+id))})
	w.expect(false, "apply", "-auto-approve")
	if !strings.Contains(w.read("show", "-json"), `"is_managed":true`) {
		t.Error("the state does not know of the conversion")
	}
	w.expect(true, "apply", "-auto-approve", "-refresh=false")
	f.expectWrites(t, "in the end", converting, "/access_codes/update", "/access_codes/update")
	if name := f.codes[id].name; name != "Cleaner" {
		t.Errorf("the name is %v", name)
	}
}

func TestConversionOfAHiddenPIN(t *testing.T) {
	for name, attributes := range map[string]string{"stays hidden": "", "is set anew": `code = "8642"`} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			id := f.unmanaged(fakeCode{})
			config := f.config(accessCode(attributes) + importBlock(fakeDevice+"/"+id))
			pin := knownvalue.Check(knownvalue.Null())
			if attributes != "" {
				pin = isText("8642")
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config:            config,
					ConfigStateChecks: append(isManagedNow(), has("code", pin), has("is_external_modification_allowed", knownvalue.Bool(false))),
				},
				{Config: config, ConfigPlanChecks: plansNothing()},
			}})
		})
	}
}

func TestConversionOfATimeBoundCodeFollowsTheConfiguration(t *testing.T) {
	f := startFake(t)
	id := f.unmanaged(fakeCode{code: "2468", startsAt: "2030-01-01T00:00:00Z", endsAt: "2030-01-02T00:00:00Z"})
	f.unmanaged(fakeCode{})
	config := f.config(accessCode("starts_at = \"2030-01-01T02:00:00+02:00\"\n  ends_at = \"2030-01-02T00:00:00Z\"") + importBlock(fakeDevice+"/"+id))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigPlanChecks: convertsInPlace()},
		{Config: config, ConfigPlanChecks: plansNothing(), ConfigStateChecks: []statecheck.StateCheck{has("type", isText("time_bound"))}},
	}})
	f.expectWrites(t, "in the end", converting, "/access_codes/delete")
}
