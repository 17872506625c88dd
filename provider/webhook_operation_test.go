package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const otherSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

func disabledIs(disabled, at, reason knownvalue.Check) []statecheck.StateCheck {
	return []statecheck.StateCheck{
		statecheck.ExpectKnownValue(hook, tfjsonpath.New("disabled"), disabled),
		statecheck.ExpectKnownValue(hook, tfjsonpath.New("disabled_at"), at),
		statecheck.ExpectKnownValue(hook, tfjsonpath.New("disabled_reason"), reason),
	}
}

func (f *fake) changeWebhook(secret string, more map[string]any) func() {
	return func() { f.do(func() { f.onlyWebhook().secret, f.onlyWebhook().more = secret, more }) }
}

func TestWebhookThatIsDisabledElsewhereShowsItAndPlansNothing(t *testing.T) {
	f := startFake(t)
	config := f.config(webhook("https://example.com/a", ""))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigStateChecks: disabledIs(knownvalue.Null(), knownvalue.Null(), knownvalue.Null())}, // it does not tell
		{
			PreConfig: f.changeWebhook("", map[string]any{"disabled": false}),
			Config:    config, ConfigPlanChecks: plansNothing(),
			ConfigStateChecks: disabledIs(knownvalue.Bool(false), knownvalue.Null(), knownvalue.Null()),
		},
		{
			PreConfig: f.changeWebhook("", map[string]any{"disabled": true, "disabled_at": "2026-01-02T03:04:05.678Z", "disabled_reason": "The endpoint answered 410 Gone."}),
			Config:    config, ConfigPlanChecks: plansNothing(),
			ConfigStateChecks: disabledIs(knownvalue.Bool(true), knownvalue.StringExact("2026-01-02T03:04:05Z"), knownvalue.StringExact("The endpoint answered 410 Gone.")),
		},
		{ // enabled between the plan and the apply of something else
			Config:           f.config(webhook("https://example.com/a", `event_types = ["device.connected"]`)),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, hook),
			PreConfig: func() {
				f.then("/webhooks/update", func(w http.ResponseWriter, r *http.Request) {
					f.onlyWebhook().eventTypes, f.onlyWebhook().more = []string{"device.connected"}, map[string]any{"disabled": false}
					answer(map[string]any{})(w, r)
				})
			},
			ConfigStateChecks: disabledIs(knownvalue.Bool(false), knownvalue.Null(), knownvalue.Null()),
		},
	}})
}

func TestSecretThatIsRotatedElsewhereComesWithTheNextRefresh(t *testing.T) {
	f := startFake(t)
	secretIs := func(secret string) []statecheck.StateCheck {
		return []statecheck.StateCheck{statecheck.ExpectKnownValue(hook, tfjsonpath.New("secret"), knownvalue.StringExact(secret))}
	}
	config := f.config(webhook("https://example.com/a", ""))
	changed := f.config(webhook("https://example.com/a", `event_types = ["device.connected"]`))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigStateChecks: secretIs(fakeSecret)},
		{PreConfig: f.changeWebhook(otherSecret, nil), Config: config, ConfigPlanChecks: plansNothing(), ConfigStateChecks: secretIs(otherSecret)},
		{ // rotated between the plan and the apply
			Config: changed,
			PreConfig: func() {
				f.then("/webhooks/update", func(w http.ResponseWriter, r *http.Request) {
					f.onlyWebhook().eventTypes, f.onlyWebhook().secret = []string{"device.connected"}, fakeSecret
					answer(map[string]any{})(w, r)
				})
			},
		},
		{Config: changed, ConfigPlanChecks: plansNothing(), ConfigStateChecks: secretIs(fakeSecret)},
	}})
}

// The whole way: an endpoint that is gone, what Terraform says of it, and a secret that the server rotates.
func TestServerWebhookThatIsDisabledIsWarnedOf(t *testing.T) {
	t.Parallel()
	srv := apptest.Start(t, apptest.WithProfiles("august"))
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	defer gone.Close()
	secret := fmt.Sprintf("variable \"hook\" {\n  sensitive = true\n  default = %q\n}\n", gone.URL+"/?token=hush-hush")
	w := newWorkspace(t, map[string]string{"main.tf": required + secret + onServer(srv, webhook("${var.hook}", `event_types = ["access_code.created"]`))})
	w.expect(true, "apply", "-auto-approve")
	state := func() (values map[string]any) {
		var out struct {
			Values struct {
				Module struct {
					Resources []struct{ Values map[string]any }
				} `json:"root_module"`
			}
		}
		if err := json.Unmarshal([]byte(w.read("show", "-json")), &out); err != nil {
			t.Fatal(err)
		}
		return out.Values.Module.Resources[0].Values
	}
	before := state()
	if before["disabled"] != false || before["disabled_at"] != nil {
		t.Errorf("a new webhook: disabled %v since %v", before["disabled"], before["disabled_at"])
	}
	p := access.Principal{WorkspaceID: srv.App.Sandbox.WorkspaceID}
	id := before["webhook_id"].(string)
	srv.Post(t, "/access_codes/create", map[string]any{"device_id": srv.Device(t, "august")}, nil)
	apptest.Until(t, "the webhook is disabled", func() bool {
		hook, err := srv.App.Access.GetWebhook(t.Context(), p, id)
		return err == nil && hook.DisabledAt != nil
	})
	if _, _, err := srv.App.Access.RotateSecret(t.Context(), p, id, 0); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(w.read("plan", "-detailed-exitcode", "-no-color")), " ") // which fails when there is anything to change
	for _, wanted := range []string{"Warning: Webhook is disabled", "410 Gone", "webhooks enable " + id, "webhooks replay " + id} {
		if !strings.Contains(strings.ReplaceAll(said, "│ ", ""), wanted) {
			t.Errorf("no word of %q in %s", wanted, said)
		}
	}
	if strings.Contains(strings.ReplaceAll(said, "│ ", ""), "hush-hush") {
		t.Error("a token of the URL is shown")
	}
	w.expect(true, "apply", "-refresh-only", "-auto-approve")
	after := state()
	if at, _ := after["disabled_at"].(string); after["disabled"] != true || at == "" || after["disabled_reason"] != "The endpoint answered 410 Gone." {
		t.Errorf("disabled %v since %q: %v", after["disabled"], at, after["disabled_reason"])
	}
	if after["secret"] == before["secret"] || after["secret"] == nil {
		t.Error("the state has the secret from before the rotation")
	}
}
