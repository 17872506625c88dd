package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	resourceapi "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// writtenOnly are the attributes of a code whose PIN is written only.
func writtenOnly(pin string, version int) string {
	return fmt.Sprintf("code_wo = %q\n  code_wo_version = %d", pin, version)
}

// showsNo fails when the state holds a text.
func showsNo(secret string) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		encoded, err := json.Marshal(s)
		if err == nil && strings.Contains(string(encoded), secret) {
			err = fmt.Errorf("the state holds %s", secret)
		}
		return err
	}
}

func TestWriteOnlyPINIsWrittenWhenItsVersionChangesAndNeverKept(t *testing.T) {
	f := startFake(t)
	const first, second = "905173846251", "715938426052"
	story := func(pin string, version int) string { return f.config(accessCode(writtenOnly(pin, version))) }
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: story(first, 1), ConfigStateChecks: []statecheck.StateCheck{has("code", knownvalue.Null()), has("code_wo", knownvalue.Null())}, Check: showsNo(first)},
		{Config: story(second, 1), ConfigPlanChecks: plansNothing()},
		{ // what was changed elsewhere cannot be seen
			PreConfig:        func() { f.do(func() { _, c := f.only(); c.code = "9999" }) },
			Config:           story(second, 1),
			ConfigPlanChecks: plansNothing(),
		},
		{Config: story(second, 2), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front), Check: showsNo(second)},
		{ // and back to a PIN in the state, which the server knows
			Config: f.config(accessCode("")), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("code", isText(second))},
		},
		{Config: f.config(accessCode("")), ConfigPlanChecks: plansNothing()},
		{ // from the state to a PIN that is written only
			Config: story(first, 1), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("code", knownvalue.Null())}, Check: showsNo(second),
		},
	}})
	if created := f.bodies("/access_codes/create"); len(created) != 1 || created[0]["code"] != first {
		t.Errorf("created: %v", created)
	}
	if updates := f.bodies("/access_codes/update"); len(updates) != 2 || updates[0]["code"] != second || updates[1]["code"] != first {
		t.Errorf("updates: %v", updates)
	}
}

func TestWriteOnlyPINOfAnAdoptedCode(t *testing.T) {
	f := startFake(t)
	const pin, adopted = "905173846251", "640297158306"
	id := f.unmanaged(fakeCode{name: "Plumber", code: adopted})
	config := f.config(accessCode(writtenOnly(pin, 1)) + importBlock(fakeDevice+"/"+id))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config, ConfigPlanChecks: convertsInPlace(), ConfigStateChecks: append(isManagedNow(), has("code", knownvalue.Null())),
			Check: resource.ComposeAggregateTestCheckFunc(showsNo(pin), showsNo(adopted))},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
	if updates := f.bodies("/access_codes/update"); len(updates) != 1 || updates[0]["code"] != pin {
		t.Errorf("updates: %v", updates)
	}
}

// Which PIN the server has after a change that failed nobody can tell.
func TestWriteOnlyPINIsWrittenAgainWhenAChangeOfItHasFailed(t *testing.T) {
	f := startFake(t)
	const former, other = "905173846251", "715938426052"
	story := func(pin string, version int) string { return f.config(accessCode(writtenOnly(pin, version))) }
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: story(former, 1)},
		{
			PreConfig: func() {
				f.nextAttempt = func(a *fakeAttempt) {
					if a.actionType == "UPDATE_ACCESS_CODE" {
						a.failure = map[string]any{"type": "device_offline", "message": "It is away"}
					}
				}
			},
			Config: story(other, 2), ExpectError: says("It is away"),
		},
		{
			PreConfig: func() {
				f.do(func() { f.nextAttempt = nil; _, c := f.only(); c.code = other }) // the server has gone on with it
			},
			Config: story(former, 1), ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front),
			ConfigStateChecks: []statecheck.StateCheck{has("code", knownvalue.Null())}, Check: resource.ComposeAggregateTestCheckFunc(showsNo(former), showsNo(other)),
		},
		{
			PreConfig: func() {
				f.do(func() {
					if _, c := f.only(); c.code != former {
						t.Errorf("the former PIN was not written again")
					}
				})
			},
			Config: story(former, 1), ConfigPlanChecks: plansNothing(),
		},
	}})
}

// So it is where a change from such a PIN to one in the configuration has failed.
func TestWriteOnlyPINIsWrittenAgainWhenAChangeToAnotherKindHasFailed(t *testing.T) {
	f := startFake(t)
	const former, other = "905173846251", "715938426052"
	written := f.config(accessCode(writtenOnly(former, 1)))
	run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: written},
		{
			PreConfig: func() {
				f.nextAttempt = func(a *fakeAttempt) {
					if a.actionType == "UPDATE_ACCESS_CODE" {
						a.failure = map[string]any{"type": "device_offline", "message": "It is away"}
					}
				}
			},
			Config: f.config(accessCode(`code = "` + other + `"`)), ExpectError: says("It is away"),
		},
		{
			PreConfig: func() { f.do(func() { f.nextAttempt = nil; _, c := f.only(); c.code = other }) },
			Config:    written, ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, front), Check: showsNo(other),
		},
		{
			PreConfig: func() {
				f.do(func() {
					if _, c := f.only(); c.code != former {
						t.Errorf("the PIN was not written again")
					}
				})
			},
			Config: written, ConfigPlanChecks: plansNothing(),
		},
	}})
}

func TestWriteOnlyPINIsNotShownByErrors(t *testing.T) {
	f := startFake(t)
	const pin = "905173846251"
	f.nextAttempt = func(a *fakeAttempt) {
		if a.actionType == "CREATE_ACCESS_CODE" {
			a.failure = map[string]any{"type": "x", "message": pin + " does not fit"}
		}
	}
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: f.config(accessCode(`code_wo = "12ab"` + "\n  code_wo_version = 1")), ExpectError: says("`code_wo` must be 4 to 12 digits")},
		{Config: f.config(accessCode(`code_wo = "` + pin + `"`)), ExpectError: says("`code_wo` goes together with `code_wo_version`, which is not set. Set it to 1")},
		{Config: f.config(accessCode(`code = "2468"` + "\n  " + writtenOnly(pin, 1))), ExpectError: says("`code` and `code_wo` are both set")},
		{Config: f.config(accessCode(writtenOnly(pin, 1))), ExpectError: says("failed: (hidden) does not fit")},
	}})
}

func TestEphemeralAccessCodeReadsThePIN(t *testing.T) {
	f := startFake(t)
	f.noUnmanagedGet = true
	const pin = "905173846251"
	id := f.unmanaged(fakeCode{name: "Plumber", code: pin})
	hidden := f.unmanaged(fakeCode{name: "Cook"})
	read := func(id, more string) string {
		return f.config(fmt.Sprintf(`
ephemeral "deviceaccess_access_code" "this" {
  access_code_id = %q
  %s
}
provider "echo" {
  data = ephemeral.deviceaccess_access_code.this
}
resource "echo" "this" {}
`, id, more))
	}
	onDevice := fmt.Sprintf("device_id = %q", fakeDevice)
	echo := func(attribute string, value knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("echo.this", tfjsonpath.New("data").AtMapKey(attribute), value)
	}
	story(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: read(id, onDevice), ConfigStateChecks: []statecheck.StateCheck{
			echo("code", isText(pin)), echo("name", isText("Plumber")), echo("is_managed", knownvalue.Bool(false)), echo("device_id", isText(fakeDevice)), echo("status", isText("set")),
		}},
		{
			PreConfig:         func() { f.do(func() { f.codes[id].managed = true }) },
			Config:            strings.ReplaceAll(read(id, ""), `"echo" "this"`, `"echo" "again"`), // for it keeps what it was created with
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("echo.again", tfjsonpath.New("data").AtMapKey("is_managed"), knownvalue.Bool(true))},
		},
		{Config: read(id, `device_id = "elsewhere"`), ExpectError: says("is on the device "+fakeDevice, "Correct `device_id`")},
		{Config: read(hidden, onDevice), ExpectError: says("does not tell the PIN of the access code "+hidden, "`code_wo`")},
		{Config: read("33333333-2222-4222-8222-222222222222", onDevice), ExpectError: says("There is no access code 33333333-", "Check `access_code_id`")},
		{Config: f.config("")},
	}})
	if writes := f.writes(); len(writes) != 0 {
		t.Errorf("writes: %v", writes)
	}
}

func TestPlanWarnsOfAPINThatWasWrittenOnlyAndGetsIntoTheState(t *testing.T) {
	t.Parallel()
	const pin, warning = "905173846251", "Warning: The PIN gets into the state"
	f := startFakeLocks(t)
	config := func(more string) string { return required + f.config(accessCode(more)+codeSet(more, lockB)) }
	w := newDirectory(t, map[string]string{"main.tf": config(writtenOnly(pin, 1))})
	w.expect(true, "apply", "-auto-approve")
	w.rewrite(config(""))
	expectSaid(t, "without a PIN", w.plain("plan"), warning, "keeps its PIN", "reads it into the state", "leave `code_wo` and `code_wo_version` as they were")
	if n := strings.Count(w.read("plan"), warning); n != 2 {
		t.Errorf("%d warnings", n)
	}
	w.rewrite(config(`code = "` + pin + `"`))
	if said := w.plain("plan"); strings.Contains(said, warning) {
		t.Errorf("a PIN that is written into the configuration is warned of: %s", said)
	}
}

func TestPINThatTurnsOutToHaveNoValueSaysWhatHappensWithoutIt(t *testing.T) {
	t.Parallel()
	var schema resourceapi.SchemaResponse
	newAccessCodeResource().Schema(t.Context(), resourceapi.SchemaRequest{}, &schema)
	var pin types.String
	diags := readWriteOnly(t.Context(), tfsdk.Config{Schema: schema.Schema, Raw: tftypes.NewValue(schema.Schema.Type().TerraformType(t.Context()), nil)}, &pin)
	if !diags.HasError() {
		t.Fatal("it is not refused")
	}
	expectSaid(t, "the error", diags.Errors()[0].Detail(), "`code_wo` turned out to have no value", "one that exists keeps its PIN", "gets into the state")
}
