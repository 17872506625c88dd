package provider

import (
	"fmt"
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
		"a webhook":                {hook, webhook("https://example.com/a", ""), capitals},
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
