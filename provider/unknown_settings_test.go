package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// laterConfig is a provider that is given the address of its server by a resource.
func (f *fake) laterConfig(more string) string {
	return fmt.Sprintf(`resource "terraform_data" "server" {
  input = { url = %q, key = %q }
}
provider "deviceaccess" {
  endpoint = terraform_data.server.output.url
  api_key  = terraform_data.server.output.key
}
`, f.URL, fakeKey) + more
}

// usesNow are configurations that ask the server while Terraform plans.
func usesNow(id string) map[string]string {
	imported := func(resource, address, id string) string {
		return resource + "import {\n  to = " + address + "\n  id = \"" + id + "\"\n}\n"
	}
	return map[string]string{
		"a data source":                 workspaceData,
		"an ephemeral resource":         "ephemeral \"deviceaccess_access_code\" \"it\" {\n  access_code_id = \"" + id + "\"\n}\n",
		"an import of a webhook":        imported(webhook("https://example.com/a", ""), hook, "w1"),
		"an import of a code":           imported(accessCode(""), front, id),
		"an import of a code with lock": imported(accessCode(""), front, lockA+"/"+id),
		"an import of a shared code":    imported(codeSet("", lockA), nanny, lockA+"/"+id),
		"an import of exclusive codes":  imported(exclusive(lockA, `"`+id+`"`), only, lockA),
	}
}

func TestWhatAsksAnUnknownServerWhilePlanningSaysWhatToDo(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	id := f.unmanaged(fakeCode{name: "Nanny", code: "905173846251", managed: true})
	more := map[string]string{
		"a data source": "`depends_on`", "an ephemeral resource": "one of its arguments is also unknown",
	}
	for name, use := range usesNow(id) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, map[string]string{"versions.tf": required, "main.tf": f.laterConfig(use)})
			w.expect(false, "plan", "-no-color")
			said := strings.Join(strings.Fields(strings.ReplaceAll(w.seen.String(), "│", "")), " ")
			for _, wanted := range []string{
				"Error: Could not connect to the server", "of `endpoint` and `api_key` in the provider block is not known until apply", "`terraform apply -target=ADDRESS`", more[name],
			} {
				if !strings.Contains(said, wanted) {
					t.Errorf("%q is not said", wanted)
				}
			}
			w.expect(true, "apply", "-auto-approve", "-target=terraform_data.server") // as the error says
			w.expect(true, "plan")
		})
	}
}

func TestWhatWaitsForAnUnknownServerIsPlanned(t *testing.T) {
	t.Run("a resource to create", func(t *testing.T) {
		f := startFakeLocks(t)
		story(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
			{
				Config: f.laterConfig(
					webhook("https://example.com/a", "") + codeSet("", lockA) + exclusive(lockB),
				),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, hook),
			},
		}})
	})
	t.Run("a data source with depends_on", func(t *testing.T) {
		f := startFake(t)
		story(t, resource.TestCase{Steps: []resource.TestStep{
			{
				Config: f.laterConfig(
					strings.Replace(workspaceData, "{}", "{\n  depends_on = [terraform_data.server]\n}", 1),
				),
				ConfigStateChecks: workspaceIs(fakeWorkspace),
			},
		}})
	})
	t.Run("an ephemeral resource of a code that is created", func(t *testing.T) {
		f := startFake(t)
		story(t, resource.TestCase{Steps: []resource.TestStep{{
			Config: f.laterConfig(accessCode(`code = "905173846251"`) + `
ephemeral "deviceaccess_access_code" "it" {
  access_code_id = ` + front + `.access_code_id
}
`),
		}}})
	})
}

func TestResourcesAreNotRefreshedWhileTheServerIsUnknown(t *testing.T) {
	f := startFake(t)
	config := func(input string) string {
		return `resource "terraform_data" "server" {
  input = { url = "` + f.URL + `", n = ` + input + ` }
}
provider "deviceaccess" {
  endpoint = terraform_data.server.output.url
  api_key  = "` + fakeKey + `"
}
` + webhook("https://example.com/a", "") + accessCode(`code = "2468"`)
	}
	story(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
		{Config: config("1")},
		{Config: config("2"), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction(
				hook,
				plancheck.ResourceActionNoop,
			),
			plancheck.ExpectResourceAction(front, plancheck.ResourceActionNoop),
		}}},
	}})
}

// A data source that waits for apply makes what it tells unknown whenever what it waits for changes.
func TestLockThatIsNotKnownYetIsWarnedOfWhereItReplacesACode(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	config := func(input string) string {
		return required + f.config(`resource "terraform_data" "before" {
  input = "`+input+`"
}
data "deviceaccess_device" "lock" {
  name       = "Front Door"
  depends_on = [terraform_data.before]
}
`+strings.Replace(accessCode(`name = "Cleaner"`), `"`+fakeDevice+`"`, "data.deviceaccess_device.lock.device_id", 1))
	}
	w := newWorkspace(t, map[string]string{"main.tf": config("1")})
	if said := w.plain("apply", "-auto-approve"); strings.Contains(said, "Warning") {
		t.Errorf("a new code is warned of: %s", said)
	}
	w.write("main.tf", config("2"))
	expectSaid(
		t,
		"the plan",
		w.plain("plan"),
		"must be replaced",
		"Warning: Access code will be replaced because its lock is not known yet",
		"even if the lock turns out to be the same",
		"Write `device_id` as a literal value",
	)
	w.expect(true, "apply", "-auto-approve", "-target=terraform_data.before") // as the error says
	w.expect(true, "plan", "-detailed-exitcode")
}

// Terraform Stacks come back for what cannot be answered yet.
func TestTerraformThatComesBackLaterIsToldSo(t *testing.T) {
	t.Parallel()
	p := startPluginWith(t, map[string]tftypes.Value{
		"endpoint": tftypes.NewValue(tftypes.String, tftypes.UnknownValue), "api_key": text(fakeKey),
	})
	later := &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonProviderConfigUnknown}
	check := func(what string, got *tfprotov6.Deferred, diagnostics []*tfprotov6.Diagnostic, err error) {
		t.Helper()
		if err != nil || len(diagnostics) > 0 || got == nil || *got != *later {
			t.Errorf("%s: %v, %v, %v", what, got, diagnostics, err)
		}
	}
	for name, schema := range p.schemas.DataSourceSchemas {
		attributes := map[string]tftypes.Value{}
		for _, attribute := range schema.Block.Attributes {
			if attribute.Required {
				attributes[attribute.Name] = text("x")
			}
		}
		read, err := p.server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{
			TypeName:           name,
			Config:             p.pack(object(schema.ValueType(), attributes)),
			ClientCapabilities: &tfprotov6.ReadDataSourceClientCapabilities{DeferralAllowed: true},
		})
		check(name, read.Deferred, read.Diagnostics, err)
	}
	for name := range p.schemas.ResourceSchemas {
		imported, err := p.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
			TypeName:           name,
			ID:                 "a/b",
			ClientCapabilities: &tfprotov6.ImportResourceStateClientCapabilities{DeferralAllowed: true},
		})
		check(name, imported.Deferred, imported.Diagnostics, err)
	}
	for name, schema := range p.schemas.EphemeralResourceSchemas {
		opened, err := p.server.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{
			TypeName: name,
			Config: p.pack(
				object(schema.ValueType(), map[string]tftypes.Value{"access_code_id": text("x")}),
			),
			ClientCapabilities: &tfprotov6.OpenEphemeralResourceClientCapabilities{DeferralAllowed: true},
		})
		check(name, opened.Deferred, opened.Diagnostics, err)
	}
	for name := range p.schemas.ListResourceSchemas { // which nothing comes back for
		results := p.lists(&tfprotov6.ListResourceRequest{TypeName: name})
		if len(results) != 1 || len(results[0].Diagnostics) != 1 ||
			!strings.Contains(results[0].Diagnostics[0].Detail, "not known until apply") {
			t.Errorf("%s: %v", name, results)
		}
	}
}
