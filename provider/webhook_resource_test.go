package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

const hook = "deviceaccess_webhook.hook"

// webhook is a webhook resource with more attributes.
func webhook(url, more string) string {
	return fmt.Sprintf("resource \"deviceaccess_webhook\" \"hook\" {\n  url = %q\n  %s\n}\n", url, more)
}

func eventTypes(types ...string) statecheck.StateCheck {
	checks := make([]knownvalue.Check, len(types))
	for i, eventType := range types {
		checks[i] = knownvalue.StringExact(eventType)
	}
	return statecheck.ExpectKnownValue(hook, tfjsonpath.New("event_types"), knownvalue.SetExact(checks))
}

func plans(action plancheck.ResourceActionType, address string) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, action)}}
}

func plansNothing() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

// onlyWebhook is the one webhook that the fake has.
func (f *fake) onlyWebhook() *fakeWebhook {
	for _, webhook := range f.webhooks {
		return webhook
	}
	panic("there is no webhook")
}

func TestWebhookIsCreatedChangedReplacedAndDestroyed(t *testing.T) {
	f := startFake(t)
	sameWebhook, otherWebhook := statecheck.CompareValue(
		compare.ValuesSame(),
	), statecheck.CompareValue(
		compare.ValuesDiffer(),
	)
	id := tfjsonpath.New("webhook_id")
	story(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if len(f.webhooks) != 0 {
				return fmt.Errorf("%d webhooks are left", len(f.webhooks))
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: f.config(
					webhook("https://example.com/a", `event_types = ["device.disconnected", "device.connected"]`),
				),
				ConfigStateChecks: []statecheck.StateCheck{
					eventTypes("device.connected", "device.disconnected"),
					statecheck.ExpectSensitiveValue(hook, tfjsonpath.New("secret")),
					statecheck.ExpectKnownValue(hook, tfjsonpath.New("secret"), knownvalue.StringExact(fakeSecret)),
					sameWebhook.AddStateValue(hook, id),
				},
			},
			{ // the order means nothing
				Config: f.config(
					webhook("https://example.com/a", `event_types = ["device.connected", "device.disconnected"]`),
				),
				ConfigPlanChecks: plansNothing(),
			},
			{ // without event types: all
				Config:           f.config(webhook("https://example.com/a", "")),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, hook),
				ConfigStateChecks: []statecheck.StateCheck{
					eventTypes("*"),
					sameWebhook.AddStateValue(hook, id),
					otherWebhook.AddStateValue(hook, id),
				},
			},
			{
				Config:            f.config(webhook("https://example.com/b", "")),
				ConfigPlanChecks:  plans(plancheck.ResourceActionDestroyBeforeCreate, hook),
				ConfigStateChecks: []statecheck.StateCheck{otherWebhook.AddStateValue(hook, id)},
			},
		},
	})
	want := map[string]any{
		"url":         "https://example.com/a",
		"event_types": []any{"device.connected", "device.disconnected"},
	}
	if got := f.bodies("/webhooks/create"); len(got) != 2 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("create requests: %v", got)
	}
	asks := func(body map[string]any) bool { // whether webhooks can be changed, and event types exist
		return body["event_types"] == nil || body["webhook_id"] == uuid.Nil.String()
	}
	if updates, deletes := len(
		slices.DeleteFunc(f.bodies("/webhooks/update"), asks),
	), f.count(
		"/webhooks/delete",
	); updates != 1 ||
		deletes != 2 {
		t.Errorf("%d updates and %d deletes", updates, deletes)
	}
}

func TestWebhookChangedOrDeletedElsewhereIsRepaired(t *testing.T) {
	f := startFake(t)
	config := f.config(webhook("https://example.com/a", `event_types = ["*"]`))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig:         func() { f.do(func() { f.onlyWebhook().eventTypes = []string{"device.connected"} }) },
			Config:            config,
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, hook),
			ConfigStateChecks: []statecheck.StateCheck{eventTypes("*")},
		},
		{
			PreConfig:        func() { f.do(func() { clear(f.webhooks) }) },
			Config:           config,
			ConfigPlanChecks: plans(plancheck.ResourceActionCreate, hook),
		},
		{
			PreConfig: func() { f.do(func() { clear(f.webhooks) }) }, // gone before it is destroyed
			Config:    config, Destroy: true,
		},
	}})
}

func TestWebhookOfAServerThatExpandsTheWildcardHasNoDiff(t *testing.T) {
	f := startFake(t)
	f.expandsWildcard = true
	config := f.config(webhook("https://example.com/a", ""))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigStateChecks: []statecheck.StateCheck{eventTypes("*")}},
		{ // the server learns a type
			PreConfig: func() {
				f.do(func() { f.onlyWebhook().eventTypes = append(f.onlyWebhook().eventTypes, "lock.locked") })
			},
			Config: config, ConfigPlanChecks: plansNothing(),
		},
		{ // a real change is still seen, and mended
			PreConfig:        func() { f.do(func() { f.onlyWebhook().eventTypes = []string{"device.connected"} }) },
			Config:           config,
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, hook),
		},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
}

func TestImportedWebhookOfAServerThatExpandsTheWildcardIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		lacks  []string
		action plancheck.ResourceActionType
	}{
		"it can change webhooks": {nil, plancheck.ResourceActionUpdate}, // once, to what it says already
		"it cannot":              {[]string{"/webhooks/update"}, plancheck.ResourceActionNoop},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.expandsWildcard, f.lacks, f.allTypes = true, c.lacks, append(slices.Clone(oldEventTypes), "space.created")
			f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: f.allTypes}
			config := f.config(webhook("https://example.com/a", ""))
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config:             config,
					ResourceName:       hook,
					ImportState:        true,
					ImportStateId:      "w1",
					ImportStatePersist: true,
				},
				{Config: config, ConfigPlanChecks: plans(c.action, hook)},
				{
					Config:           f.config(webhook("https://example.com/a", `event_types = ["*"]`)),
					ConfigPlanChecks: plansNothing(),
				},
				{ // fewer are not all
					PreConfig:          func() { f.do(func() { f.webhooks["w1"].eventTypes = oldEventTypes[1:] }) },
					Config:             config,
					PlanOnly:           true,
					ExpectNonEmptyPlan: true,
				},
			}})
			if created := f.count("/webhooks/create"); created != 0 {
				t.Errorf("%d webhooks were created", created)
			}
		})
	}
}

func TestWebhookSecretIsKeptAndImportGetsWhatTheServerTells(t *testing.T) {
	for name, secretOnce := range map[string]bool{"secret is told always": false, "secret is told once": true} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.secretOnce = secretOnce
			config := f.config(webhook("https://example.com/a", ""))
			imported := resource.TestStep{
				ResourceName:                         hook,
				ImportState:                          true,
				ImportStateVerify:                    true,
				ImportStateVerifyIdentifierAttribute: "webhook_id",
				ImportStateIdFunc: func(s *terraform.State) (string, error) {
					return s.RootModule().Resources[hook].Primary.Attributes["webhook_id"], nil
				},
			}
			if secretOnce {
				imported.ImportStateVerifyIgnore = []string{"secret"}
			}
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: config},
				{
					RefreshState: true,
					RefreshPlanChecks: resource.RefreshPlanChecks{
						PostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
					},
				},
				{Config: config, ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(hook, tfjsonpath.New("secret"), knownvalue.StringExact(fakeSecret)),
				}},
				imported,
			}})
		})
	}
}

func TestWebhookErrorsPointToTheAttribute(t *testing.T) {
	f := startFake(t)
	f.then(
		"/webhooks/create",
		answerRaw(http.StatusBadRequest, "application/json", `{"ok": false, "error": {"type": "invalid_input",
		"message": "Unknown event type for \"event_types\"", "validation_errors": {"_errors": [], "event_types": {"_errors": ["Unknown event type"]}}}}`),
	)
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: f.config(webhook("https://example.com/a", `event_types = ["no.such"]`)),
			ExpectError: says(
				"Error: Could not create webhook",
				`event_types = ["no.such"]`,
				"Unknown event type",
				"HTTP 400, invalid_input, request req-2",
			),
		},
	}})
}

func TestErrorsThatNameNoParameterPointToTheAttributeAllTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		path     string
		refusal  http.HandlerFunc
		config   string
		problems []string
	}{
		"event type": {
			"/webhooks/create", answerError(http.StatusBadRequest, "invalid_event_types", "No such event type: no.such."),
			webhook("https://example.com/a", `event_types = ["no.such"]`),
			[]string{"Error: Could not create webhook", `event_types = ["no.such"]`, "no.such (HTTP 400"},
		},
		"device": {
			"/access_codes/create", answerError(http.StatusNotFound, "device_not_found", "Could not find a device with this device_id."),
			accessCode(""),
			[]string{"Error: Could not create access code", "device_id = ", "Could not find a device", "Check the identifier"},
		},
		"a parameter first": {
			"/access_codes/create", answerError(http.StatusBadRequest, "invalid_input", "ends_at must be in the future"),
			accessCode(""),
			[]string{"Error: Could not create access code", "ends_at must be in the future"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.then(c.path, c.refusal)
			run(
				t,
				resource.TestCase{
					Steps: []resource.TestStep{{Config: f.config(c.config), ExpectError: says(c.problems...)}},
				},
			)
		})
	}
}

func TestWebhookThatIsNotDeletedIsNamed(t *testing.T) {
	f := startFake(t)
	config := f.config(webhook("https://example.com/a?token=hush", "")) // the query may be a secret
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig:   func() { f.then("/webhooks/delete", answerError(http.StatusForbidden, "forbidden", "Not for this key")) },
			Config:      config,
			Destroy:     true,
			ExpectError: says("Error: Could not delete webhook", "to https://example.com/a: Not for this key"),
		},
	}})
}

func TestWebhookConfigurationIsCheckedBeforeTheServerIsAsked(t *testing.T) {
	cases := map[string]struct{ config, problem string }{
		"no scheme": {webhook("example.com/a", ""), `Invalid URL`},
		"ftp":       {webhook("ftp://example.com/a", ""), `Invalid URL`},
		"user name": {webhook("https://user:pass@example.com/a", ""), `https://user:xxxxx@example.com/a has one`},
		"too long":  {webhook("https://example.com/"+strings.Repeat("a", 2029), ""), `at most 2048 characters`},
		"a space":   {webhook("https://example.com/a b", ""), `Invalid URL`},
		"no event types": {
			webhook("https://example.com/a", `event_types = []`),
			"`event_types` is empty. Name the event types",
		},
		"a sentence": {
			webhook("https://example.com/a", `event_types = ["everything please"]`),
			`is not an event type. Write one such as`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			run(
				t,
				resource.TestCase{
					Steps: []resource.TestStep{{Config: f.config(c.config), ExpectError: says(c.problem)}},
				},
			)
			if writes := f.writes(); len(writes) != 0 {
				t.Errorf("writes: %v", writes)
			}
		})
	}
}

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
		{
			Config:            config,
			ConfigStateChecks: disabledIs(knownvalue.Null(), knownvalue.Null(), knownvalue.Null()),
		}, // it does not tell
		{
			PreConfig:         f.changeWebhook("", map[string]any{"disabled": false}),
			Config:            config,
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: disabledIs(knownvalue.Bool(false), knownvalue.Null(), knownvalue.Null()),
		},
		{
			PreConfig: f.changeWebhook(
				"",
				map[string]any{
					"disabled":        true,
					"disabled_at":     "2026-01-02T03:04:05.678Z",
					"disabled_reason": "The endpoint answered 410 Gone.",
				},
			),
			Config:           config,
			ConfigPlanChecks: plansNothing(),
			ConfigStateChecks: disabledIs(
				knownvalue.Bool(true),
				knownvalue.StringExact("2026-01-02T03:04:05Z"),
				knownvalue.StringExact("The endpoint answered 410 Gone."),
			),
		},
		{ // enabled between the plan and the apply of something else
			Config:           f.config(webhook("https://example.com/a", `event_types = ["device.connected"]`)),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, hook),
			PreConfig: func() {
				f.then("/webhooks/update", func(w http.ResponseWriter, r *http.Request) {
					f.onlyWebhook().eventTypes, f.onlyWebhook().more = []string{
						"device.connected",
					}, map[string]any{
						"disabled": false,
					}
					answer(map[string]any{})(w, r)
				})
			},
		},
		{ // which comes with the next refresh
			Config:            f.config(webhook("https://example.com/a", `event_types = ["device.connected"]`)),
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: disabledIs(knownvalue.Bool(false), knownvalue.Null(), knownvalue.Null()),
		},
	}})
}

func TestSecretThatIsRotatedElsewhereComesWithTheNextRefresh(t *testing.T) {
	f := startFake(t)
	secretIs := func(secret string) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue(hook, tfjsonpath.New("secret"), knownvalue.StringExact(secret)),
		}
	}
	config := f.config(webhook("https://example.com/a", ""))
	changed := f.config(webhook("https://example.com/a", `event_types = ["device.connected"]`))
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigStateChecks: secretIs(fakeSecret)},
		{
			PreConfig:         f.changeWebhook(otherSecret, nil),
			Config:            config,
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: secretIs(otherSecret),
		},
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
	gone := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }),
	)
	defer gone.Close()
	secret := fmt.Sprintf("variable \"hook\" {\n  sensitive = true\n  default = %q\n}\n", gone.URL+"/?token=hush-hush")
	w := newWorkspace(
		t,
		map[string]string{
			"main.tf": required + secret + onServer(
				srv,
				webhook("${var.hook}", `event_types = ["access_code.created"]`),
			),
		},
	)
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
	p := domain.Principal{WorkspaceID: srv.App.Sandbox.WorkspaceID}
	id := before["webhook_id"].(string)
	srv.Post(t, "/access_codes/create", map[string]any{"device_id": srv.Device(t, "august")}, nil)
	apptest.Until(t, "the webhook is disabled", func() bool {
		hook, err := srv.App.Access.Webhooks.GetWebhook(t.Context(), p, id)
		return err == nil && hook.DisabledAt != nil
	})
	if _, _, err := srv.App.Access.Webhooks.RotateSecret(t.Context(), p, id, 0); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(
		strings.Fields(w.read("plan", "-detailed-exitcode", "-no-color")),
		" ",
	) // which fails when there is anything to change
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
	if at, _ := after["disabled_at"].(string); after["disabled"] != true || at == "" ||
		after["disabled_reason"] != "The endpoint answered 410 Gone." {
		t.Errorf("disabled %v since %q: %v", after["disabled"], at, after["disabled_reason"])
	}
	if after["secret"] == before["secret"] || after["secret"] == nil {
		t.Error("the state has the secret from before the rotation")
	}
}

// As in the example, a webhook outlives a new URL that the server rejects.
func TestWebhookOfTheExample_OutlivesARejectedURL(t *testing.T) {
	f := startFake(t)
	example := f.config(read(t, "../examples/resources/deviceaccess_webhook/resource.tf"))
	moved := strings.Replace(example, "https://example.com/door-events", "http://169.254.169.254/", 1)
	const doors = "deviceaccess_webhook.doors"
	story(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: example},
		{
			PreConfig: func() {
				f.then(
					"/webhooks/create",
					answerError(http.StatusBadRequest, "invalid_input", "Nothing is sent to 169.254.169.254"),
				)
			},
			Config:      moved,
			ExpectError: says("Error: Could not create webhook", "Nothing is sent to 169.254.169.254"),
		},
		{Config: example, ConfigPlanChecks: plansNothing()},
		{
			Config:           strings.Replace(example, "/door-events", "/events", 1),
			ConfigPlanChecks: plans(plancheck.ResourceActionCreateBeforeDestroy, doors),
		},
	}})
	if len(f.webhooks) != 0 || f.count("/webhooks/create") != 3 {
		t.Errorf("%d webhooks are left, %d creations", len(f.webhooks), f.count("/webhooks/create"))
	}
}
