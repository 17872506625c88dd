package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

const (
	codeType    = "deviceaccess_access_code"
	webhookType = "deviceaccess_webhook"
)

func expectNames(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestImportByIdentityWritesNothingAndShowsTheConversion(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
	p := f.plugin(t)
	identity := map[string]string{"access_code_id": id, "device_id": fakeDevice}
	read := p.imports(
		&tfprotov6.ImportResourceStateRequest{TypeName: codeType, Identity: p.identity(codeType, identity)},
	)
	expectNames(t, "the identity", p.names(codeType, read.NewIdentity), identity)
	if state := p.state(codeType, read.NewState); state["name"] != "Plumber" || state["code"] != "2468" {
		t.Errorf("the state is %v", state)
	}

	proposed := object(
		p.stateType(codeType),
		map[string]tftypes.Value{"device_id": text(fakeDevice), "access_code_id": text(id)},
	)
	config := object(p.stateType(codeType), map[string]tftypes.Value{"device_id": text(fakeDevice)})
	plan, err := p.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName:         codeType,
		PriorState:       read.NewState,
		PriorIdentity:    read.NewIdentity,
		PriorPrivate:     read.Private,
		ProposedNewState: p.pack(proposed),
		Config:           p.pack(config),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.allow(plan.Diagnostics)
	if len(plan.Diagnostics) == 0 || !strings.Contains(plan.Diagnostics[0].Summary, "will be converted to managed") {
		t.Errorf("the plan says %v", plan.Diagnostics)
	}
	f.expectWrites(t, "after the plan")

	applied, err := p.server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName:        codeType,
		PriorState:      read.NewState,
		PlannedState:    plan.PlannedState,
		PlannedIdentity: plan.PlannedIdentity,
		PlannedPrivate:  plan.PlannedPrivate,
		Config:          p.pack(config),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.allow(applied.Diagnostics)
	expectNames(t, "the identity after the conversion", p.names(codeType, applied.NewIdentity), identity)
	f.expectWrites(t, "after the apply", converting)
}

func TestImportByIdentityOfAWebhook(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	p := f.plugin(t)
	read := p.imports(
		&tfprotov6.ImportResourceStateRequest{
			TypeName: webhookType,
			Identity: p.identity(webhookType, map[string]string{"webhook_id": "w1"}),
		},
	)
	expectNames(t, "the identity", p.names(webhookType, read.NewIdentity), map[string]string{"webhook_id": "w1"})
	if state := p.state(
		webhookType,
		read.NewState,
	); state["url"] != "https://example.com/a" ||
		state["secret"] != fakeSecret {
		t.Error("the webhook was not read whole")
	}
}

func TestImportByIdentityThatIsIncompleteSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	p := f.plugin(t)
	answer, err := p.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: codeType,
		Identity: p.identity(codeType, map[string]string{"access_code_id": "", "device_id": fakeDevice}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Diagnostics) != 1 ||
		!strings.Contains(answer.Diagnostics[0].Detail, "needs both `access_code_id` and `device_id`") {
		t.Errorf("%v", answer.Diagnostics)
	}
}

// A state that Terraform before 1.12 or the provider before its identities wrote has none.
func TestStateWithoutIdentityGetsOneWithTheNextRefresh(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"there": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			id := f.unmanaged(fakeCode{name: "Cleaner", code: "8642", managed: true})
			f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
			if gone {
				clear(f.codes)
				clear(f.webhooks)
			}
			p := f.plugin(t)
			code := object(
				p.stateType(codeType),
				map[string]tftypes.Value{
					"access_code_id": text(id),
					"device_id":      text(fakeDevice),
					"type":           text("ongoing"),
				},
			)
			hook := object(
				p.stateType(webhookType),
				map[string]tftypes.Value{"webhook_id": text("w1"), "url": text("https://example.com/a")},
			)
			for _, c := range []struct {
				typeName string
				state    tftypes.Value
				want     map[string]string
			}{
				{codeType, code, map[string]string{"access_code_id": id, "device_id": fakeDevice}},
				{webhookType, hook, map[string]string{"webhook_id": "w1"}},
			} {
				read := p.reads(
					&tfprotov6.ReadResourceRequest{
						TypeName:     c.typeName,
						CurrentState: p.pack(c.state),
						Private:      seenIn(fakeWorkspace),
					},
				)
				expectNames(t, "the identity of "+c.typeName, p.names(c.typeName, read.NewIdentity), c.want)
				if state := p.state(c.typeName, read.NewState); (state == nil) != gone {
					t.Errorf("the state of %s is %v", c.typeName, state)
				}
			}
		})
	}
}

// The trap of identities: Terraform before 1.12 stores none, and the framework refuses to read without one, also
// what is gone.
func TestWhatIsGoneIsPlannedAnewByEveryTerraform(t *testing.T) {
	f := startFake(t)
	config := f.config(webhook("https://example.com/a", "") + accessCode(`code = "2468"`))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig: func() { f.do(func() { clear(f.codes); clear(f.webhooks) }) },
			Config:    config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(
					front,
					plancheck.ResourceActionCreate,
				),
				plancheck.ExpectResourceAction(hook, plancheck.ResourceActionCreate),
			}},
		},
	}})
}
