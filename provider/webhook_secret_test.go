package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// secretIs checks the secret in the state. An empty one is null.
func secretIs(secret string) []statecheck.StateCheck {
	check := knownvalue.Check(knownvalue.Null())
	if secret != "" {
		check = knownvalue.StringExact(secret)
	}
	return []statecheck.StateCheck{statecheck.ExpectKnownValue(hook, tfjsonpath.New("secret"), check)}
}

func TestServerSecretIsRotatedByItsVersion(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t)
	config := func(more string) string { return onServer(srv, webhook("https://example.com/a", more)) }
	var id, before string
	remember := func(s *terraform.State) error {
		id, before = attribute(s, hook, "webhook_id"), attribute(s, hook, "secret")
		return nil
	}
	rotated := func(want bool) resource.TestCheckFunc {
		return func(s *terraform.State) error {
			now := attribute(s, hook, "secret")
			if attribute(s, hook, "webhook_id") != id || (now != before) != want || now != secretOf(t, srv, id) {
				return fmt.Errorf("the secret was rotated: %t, want %t; the state has the server's: %t",
					now != before, want, now == secretOf(t, srv, id))
			}
			before = now
			return nil
		}
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config(""), Check: remember},
		{
			Config:           config("secret_version = 1"), // the first is only noted
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, hook),
			Check:            rotated(false),
		},
		{
			Config:           config("secret_version = 2"),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, hook),
			Check:            rotated(true),
		},
		{Config: config("secret_version = 2"), ConfigPlanChecks: plansNothing(), Check: rotated(false)},
		{Config: config("secret_version = 3"), ExpectError: says(
			"Could not rotate webhook secret",
			"secret_version = 3",
			"rotation_in_progress",
			"Apply again after that time",
		)},
		{ // which has rotated nothing
			Config:           config("secret_version = 2"),
			ConfigPlanChecks: plansNothing(),
			Check:            rotated(false),
		},
		{Config: config(""), Check: rotated(false)}, // forgets it
		{
			ResourceName:                         hook,
			ImportState:                          true,
			ImportStateVerify:                    true,
			ImportStateIdFunc:                    func(*terraform.State) (string, error) { return id, nil },
			ImportStateVerifyIdentifierAttribute: "webhook_id",
		},
	}})
}

func TestServerSecretIsKeptOutOfTheState(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t)
	config := func(more string) string { return onServer(srv, webhook("https://example.com/a", more)) }
	const out = "store_secret = false"
	var id string
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:            config(out),
			ConfigStateChecks: secretIs(""),
			Check: func(s *terraform.State) error {
				id = attribute(s, hook, "webhook_id")
				return nil
			},
		},
		{Config: config(out), ConfigPlanChecks: plansNothing(), ConfigStateChecks: secretIs("")},
		{
			PreConfig: func() { // rotated elsewhere
				srv.Post(t, rotatePath, map[string]any{"webhook_id": id, "overlap_seconds": 0}, nil)
			},
			Config:            config(out),
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: secretIs(""),
		},
		{Config: config(out + "\nsecret_version = 1"), ConfigStateChecks: secretIs("")},
		{
			Config:            config(out + "\nsecret_version = 2"),
			ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, hook),
			ConfigStateChecks: secretIs(""),
		},
		{
			Config:            config(out + "\nsecret_version = 2\nevent_types = [\"device.connected\"]"),
			ConfigStateChecks: secretIs(""),
		},
		{ // given back to the state
			Config: config(""),
			Check: func(s *terraform.State) error {
				if got := attribute(s, hook, "secret"); got == "" || got != secretOf(t, srv, id) {
					return fmt.Errorf("the state has the secret of the server: %t", got != "")
				}
				return nil
			},
		},
		{Config: config(out), ConfigStateChecks: secretIs("")},
	}})
}

const rotatePath = "/deviceaccess/webhooks/rotate_secret"

func TestServerSecretIsInNoPlanOfAWebhookThatKeepsItOut(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t)
	config := func(more string) string {
		return required + onServer(srv, webhook("https://example.com/a", more))
	}
	w := newDirectory(t, map[string]string{"main.tf": config("store_secret = false\nsecret_version = 1")})
	w.expect(true, "apply", "-auto-approve")
	first := onlyHook(t, srv)
	said := w.plain("plan")
	if strings.Contains(said, "Warning") {
		t.Errorf("a webhook without a stored secret is warned of: %s", said)
	}
	w.rewrite(config("store_secret = false\nsecret_version = 2"))
	w.expect(true, "apply", "-auto-approve")
	second := onlyHook(t, srv)
	if first.Secret == second.Secret || first.WebhookID != second.WebhookID {
		t.Error("the secret was not rotated in place")
	}
	forbids(t, "what was written", w.seen.String()+w.plain("show", "-json"), map[string]string{
		"the first secret": first.Secret, "the second secret": second.Secret,
	})
}

func onlyHook(t *testing.T, srv *apptest.Server) (hook struct{ WebhookID, Secret string }) {
	t.Helper()
	var list struct {
		Webhooks []struct {
			WebhookID string `json:"webhook_id"`
			Secret    string `json:"secret"`
		} `json:"webhooks"`
	}
	if srv.Post(t, "/webhooks/list", map[string]any{}, &list); len(list.Webhooks) != 1 {
		t.Fatalf("%d webhooks", len(list.Webhooks))
	}
	return struct{ WebhookID, Secret string }(list.Webhooks[0])
}

// What an update does to the secret is said before it is done.
func TestPlanSaysWhatAnUpdateLeavesOfTheSecret(t *testing.T) {
	t.Parallel()
	const noted, leaked = "Warning: Secret is not rotated", "Warning: Secret was in the state"
	for name, c := range map[string]struct{ from, to, says string }{
		"the first version":             {"", "secret_version = 1", noted},
		"another version":               {"secret_version = 1", "secret_version = 2", ""},
		"no version any more":           {"secret_version = 1", "", ""},
		"out of the state":              {"", "store_secret = false", leaked},
		"out of the state, and rotated": {"secret_version = 1", "store_secret = false\nsecret_version = 2", ""},
		"into the state":                {"store_secret = false", "", ""},
		"another URL": {
			"", "store_secret = false\nsecret_version = 1\nurl_of = \"b\"", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			config := func(more string) string {
				url := "https://example.com/a"
				if strings.Contains(more, "url_of") {
					url, more = "https://example.com/b", strings.ReplaceAll(more, "\nurl_of = \"b\"", "")
				}
				return required + f.config(webhook(url, more))
			}
			w := newDirectory(t, map[string]string{"main.tf": config(c.from)})
			if said := w.plain("apply", "-auto-approve"); strings.Contains(said, "Warning") {
				t.Errorf("the creation: %s", said)
			}
			w.rewrite(config(c.to))
			said := w.plain("plan")
			if strings.Contains(said, "Warning") != (c.says != "") || !strings.Contains(said, c.says) {
				t.Errorf("want %q: %s", c.says, said)
			}
		})
	}
}

func TestServerWithoutRotationSaysSoAndChangesNothing(t *testing.T) {
	f := startFake(t)
	config := func(more string) string { return f.config(webhook("https://example.com/a", more)) }
	run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config("secret_version = 1"), ConfigStateChecks: secretIs(fakeSecret)},
		{
			Config: config("secret_version = 2\nevent_types = [\"device.connected\"]"),
			ExpectError: says(
				"Could not rotate webhook secret",
				"secret_version = 2",
				"This server cannot rotate secrets",
				"terraform apply -replace",
			),
		},
		{
			Config:            config("secret_version = 1"),
			ConfigPlanChecks:  plansNothing(),
			ConfigStateChecks: secretIs(fakeSecret),
		},
	}})
}

// A rotation counts although what comes after it fails: the next apply must not rotate again.
func TestRotationIsNotedAlthoughTheRestFails(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	config := func(more string) string { return required + f.config(webhook("https://example.com/a", more)) }
	w := newDirectory(t, map[string]string{"main.tf": config("secret_version = 1")})
	w.expect(true, "apply", "-auto-approve")
	f.then(rotatePath, func(w http.ResponseWriter, r *http.Request) {
		f.odd["/webhooks/update"] = []http.HandlerFunc{answerError(http.StatusBadRequest, "invalid_input", "not these")}
		for id := range f.webhooks {
			f.webhooks[id].secret = otherSecret
			answer(map[string]any{"webhook": f.webhookJSON(id, true)})(w, r)
		}
	})
	changed := config("secret_version = 2\nevent_types = [\"device.connected\"]")
	w.rewrite(changed)
	w.expect(false, "apply", "-auto-approve")
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "plan", "-detailed-exitcode")
	if n := f.count(rotatePath); n != 1 {
		t.Errorf("%d rotations", n)
	}
	expectSaid(t, "the state", w.plain("show", "-json"), otherSecret)
}

// The secret that no state contains is lost where the server returns it only at creation.
func TestLostSecretIsWarnedOf(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"always": false, "once": true} {
		f := startFake(t)
		f.secretOnce = once
		w := newDirectory(t, map[string]string{
			"main.tf": required + f.config(webhook("https://example.com/a", "store_secret = false")),
		})
		if said := w.plain("apply", "-auto-approve"); strings.Contains(said, "Warning: Secret cannot be read") != once {
			t.Errorf("a server that returns it %s: %s", name, said)
		}
	}
}

// opens opens an ephemeral resource.
func (p *plugin) opens(typeName, argument, value string) (map[string]string, []*tfprotov6.Diagnostic) {
	p.t.Helper()
	of := p.schemas.EphemeralResourceSchemas[typeName].ValueType()
	opened, err := p.server.OpenEphemeralResource(p.t.Context(), &tfprotov6.OpenEphemeralResourceRequest{
		TypeName: typeName,
		Config:   p.pack(object(of, map[string]tftypes.Value{argument: text(value)})),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(opened.Diagnostics) > 0 {
		return nil, opened.Diagnostics
	}
	return p.texts(of, opened.Result), nil
}

func TestServerEphemeralWebhookHasTheSecret(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t)
	p, made := onPlugin(t, srv), createHook(t, srv, "https://example.com/a")
	got, diagnostics := p.opens(webhookType, "webhook_id", made.WebhookID)
	p.allow(diagnostics)
	if got["secret"] != made.Secret || got["url"] != made.URL || got["webhook_id"] != made.WebhookID {
		t.Errorf("%q of %q, with its secret: %t", got["url"], got["webhook_id"], got["secret"] == made.Secret)
	}
	_, diagnostics = p.opens(webhookType, "webhook_id", fakeDevice)
	expectSaid(
		t,
		"the error",
		told(nil, diagnostics),
		"Could not read the secret of the webhook",
		"Check the identifier",
	)
	f := startFake(t)
	f.secretOnce, f.webhooks["w1"] = true, &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	_, diagnostics = f.plugin(t).opens(webhookType, "webhook_id", "w1")
	expectSaid(t, "the error", told(nil, diagnostics), "returns the secret of a webhook only at its creation")
}
