package provider

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// Servers take UUIDs in other spellings than they answer, so that a code that was to stay would be deleted.
func TestMisspelledIdentifiers_RejectedInConfigurations(t *testing.T) {
	capitals, bare := strings.ToUpper(keeper), strings.ReplaceAll(keeper, "-", "")
	data := func(kind, argument, id string) string {
		return fmt.Sprintf("data %q \"of\" {\n  %s = %q\n}\n", "deviceaccess_"+kind, argument, id)
	}
	for name, more := range map[string]string{
		"a code that may be on a lock": exclusive(lockA, `"`+first+`"`, `"`+capitals+`"`),
		"without hyphens":              exclusive(lockA, `"`+bare+`"`),
		"in braces":                    exclusive(lockA, `"{`+keeper+`}"`),
		"a lock that is watched":       exclusive(capitals, `"`+first+`"`),
		"the lock of a code":           accessCodeOn(capitals, ""),
		"the locks of a shared code":   codeSet("", capitals, lockA),
		"codes":                        data("access_codes", "device_id", capitals),
		"unmanaged codes":              data("unmanaged_access_codes", "device_id", capitals),
		"a device":                     data("device", "device_id", capitals),
		"devices of an account":        data("devices", "connected_account_id", capitals),
		"users of a system":            data("acs_users", "acs_system_id", capitals),
		"a PIN to read":                fmt.Sprintf("ephemeral \"deviceaccess_access_code\" \"of\" {\n  access_code_id = %q\n}\n", capitals),
		"a device to adopt":            adopted(capitals, ""),
		"the system of a user":         acsUser(capitals, `full_name = "Jane"`),
		"the identity of a user":       acsUser(keeper, "full_name = \"Jane\"\n  user_identity_id = \""+capitals+"\""),
		"the groups of a user":         acsUser(keeper, "full_name = \"Jane\"\n  acs_access_group_ids = [\""+capitals+"\"]"),
		"a code":                       data("access_code", "access_code_id", capitals),
		"a webhook":                    data("webhook", "webhook_id", capitals),
		"an account":                   data("connected_account", "connected_account_id", capitals),
		"the device of a preset":       climatePreset(capitals, heatsTo70F),
		"the device of a schedule":     scheduleOn(capitals, `"home"`, "2040-06-01T15:00:00Z", "2040-06-02T15:00:00Z", ""),
		"the device of a threshold":    noiseThreshold(capitals, "noise_threshold_decibels = 60"),
		"thermostats of an account":    data("thermostats", "connected_account_id", capitals),
		"noise sensors of a webview":   data("noise_sensors", "connect_webview_id", capitals),
		"users of an identity":         data("acs_users", "user_identity_id", capitals),
	} {
		t.Run(name, func(t *testing.T) {
			f := startCrowdedFake(t)
			play := run
			if strings.HasPrefix(more, "ephemeral") {
				play = story
			}
			play(
				t,
				resource.TestCase{
					Steps: []resource.TestStep{
						{
							Config:      f.config(more),
							PlanOnly:    true,
							ExpectError: says("Error: Invalid identifier", `Write "`+keeper+`"`),
						},
					},
				},
			)
		})
	}
}

func TestMisspelledIdentifiers_RejectedInImports(t *testing.T) {
	capitals := strings.ToUpper(keeper)
	for name, c := range map[string]struct{ address, config, id string }{
		"a code, without its lock": {front, accessCodeOn(lockA, ""), capitals},
		"a code, on a lock":        {front, accessCodeOn(lockA, ""), lockA + "/" + capitals},
		"a code, on which":         {front, accessCodeOn(lockA, ""), capitals + "/" + first},
		"codes of a shared code":   {"deviceaccess_shared_access_code.nanny", codeSet("", lockA), lockB + "/" + late + ", " + lockA + "/" + capitals},
		"a lock":                   {only, exclusive(lockA), capitals},
		"a page to log in":         {invitation, invite(""), capitals},
		"a device":                 {door, adopted(lockA, ""), capitals},
		"a user of a system":       {visitor, acsUser(lockA, `full_name = "Jane"`), capitals},
		"a user identity":          {guest, userIdentity(`full_name = "Jane"`), capitals},
		"a webhook":                {hook, webhook("https://example.com/a", ""), capitals},
		"a preset":                 {occupied, climatePreset(lockA, heatsTo70F), capitals + "/occupied"},
		"a schedule":               {stay, schedule(`"home"`, ""), capitals},
		"a threshold":              {night, noiseThreshold(lockA, "noise_threshold_decibels = 60"), capitals},
	} {
		t.Run(name, func(t *testing.T) {
			f := startCrowdedFake(t)
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config: f.config(
						c.config,
					),
					ResourceName:  c.address,
					ImportState:   true,
					ImportStateId: c.id,
					ExpectError:   says("Error: Invalid identifier", `Write "`+keeper+`"`),
				},
			}})
			f.expectWrites(t, "in the end")
		})
	}
}

// What only newer versions of Terraform can write, imports by identity and lists, is asked of the provider itself.
func TestMisspelledIdentifiers_RejectedInIdentitiesAndLists(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	p := f.plugin(t)
	capitals := strings.ToUpper(keeper)
	refused := func(what string, diagnostics []*tfprotov6.Diagnostic, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if len(diagnostics) != 1 || diagnostics[0].Summary != "Invalid identifier" ||
			!strings.Contains(diagnostics[0].Detail, `Write "`+keeper+`"`) {
			t.Errorf("%s: %v", what, diagnostics)
		}
	}
	for what, request := range map[string]*tfprotov6.ImportResourceStateRequest{
		"a code":                 {TypeName: codeType, Identity: p.identity(codeType, map[string]string{"access_code_id": capitals, "device_id": lockA})},
		"codes of a shared code": {TypeName: setType, Identity: p.codesIdentity(lockB, lockA+"/"+capitals)},
	} {
		answer, err := p.server.ImportResourceState(t.Context(), request)
		refused(what, answer.Diagnostics, err)
	}
	for what, config := range map[string]map[string]tftypes.Value{
		"a lock": {"device_id": text(capitals)},
		"locks":  {"device_ids": tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{text(lockA), text(capitals)})},
	} {
		answer, err := p.server.(tfprotov6.ListResourceServer).ValidateListResourceConfig(t.Context(),
			&tfprotov6.ValidateListResourceConfigRequest{TypeName: codeType, Config: p.listConfig(codeType, config)})
		refused(what, answer.Diagnostics, err)
	}
	f.expectWrites(t, "in the end")
}

// With many imports in one plan, a message without the identifier does not show which one is wrong.
func TestImportsOfNothing_SayWhichIdentifier(t *testing.T) {
	const nowhere = "99999999-2222-4222-8222-222222222222"
	for typeName := range providerSchemas(t).ResourceSchemas {
		for name, c := range map[string]struct {
			id    string
			asked bool // whether the server is
		}{
			"no identifier":      {"nope", true},
			"unknown":            {nowhere, true},
			"a blank at the end": {nowhere + " ", false},
			"a blank before":     {" " + nowhere, false},
			"a line break":       {nowhere + "\n", false},
		} {
			t.Run(typeName+", "+name, func(t *testing.T) {
				f := startFakeLocks(t)
				f.strictIDs = true
				p := f.plugin(t)
				id := c.id
				if typeName == setType || typeName == presetType {
					id = lockA + "/" + id
				}
				answer, err := p.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
					TypeName: typeName, ID: id,
				})
				if err != nil {
					t.Fatal(err)
				}
				diagnostics := answer.Diagnostics
				if len(diagnostics) == 0 {
					read, err := p.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
						TypeName:        typeName,
						CurrentState:    answer.ImportedResources[0].State,
						CurrentIdentity: answer.ImportedResources[0].Identity,
						Private:         answer.ImportedResources[0].Private,
					})
					if err != nil {
						t.Fatal(err)
					}
					diagnostics = read.Diagnostics
				}
				if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError {
					t.Fatalf("diagnostics: %v", diagnostics)
				}
				d := diagnostics[0]
				if summary := d.Summary; summary != "Invalid identifier" &&
					!strings.HasPrefix(summary, "Could not import ") {
					t.Errorf("the summary is %q", summary)
				}
				if !strings.Contains(d.Detail, strings.Trim(strconv.Quote(c.id), `"`)) {
					t.Errorf("it does not name %q: %s", c.id, d.Detail)
				}
				if asked := len(f.calls) > 0; asked != c.asked {
					t.Errorf("the server was asked: %t", asked)
				}
			})
		}
	}
}
