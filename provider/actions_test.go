package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func onPlugin(t *testing.T, srv *apptest.Server) *plugin {
	t.Helper()
	return startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
}

// told is what an action has reported, and its errors.
func told(progress []string, diagnostics []*tfprotov6.Diagnostic) string {
	text := strings.Join(progress, "\n")
	for _, d := range diagnostics {
		text += "\n" + d.Summary + "\n" + d.Detail
	}
	return text
}

// does invokes an action that must succeed, and returns its progress.
func (p *plugin) does(typeName string, attributes map[string]tftypes.Value) string {
	p.t.Helper()
	progress, diagnostics := p.invokes(typeName, attributes)
	p.allow(diagnostics)
	return strings.Join(progress, "\n")
}

// cannot invokes an action that must fail with these texts. It returns the error.
func (p *plugin) cannot(typeName string, attributes map[string]tftypes.Value, texts ...string) *tfprotov6.Diagnostic {
	p.t.Helper()
	progress, diagnostics := p.invokes(typeName, attributes)
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError {
		p.t.Fatalf("%s ends with %d errors: %s", typeName, len(diagnostics), told(progress, diagnostics))
	}
	expectSaid(p.t, typeName, plainly(told(progress, diagnostics)), texts...)
	return diagnostics[0]
}

func argument(name, value string) map[string]tftypes.Value {
	return map[string]tftypes.Value{name: text(value)}
}

// within is a timeouts block of an action.
func (p *plugin) within(typeName, timeout string) tftypes.Value {
	all := p.schemas.ActionSchemas[typeName].Schema.ValueType().(tftypes.Object)
	return tftypes.NewValue(all.AttributeTypes["timeouts"], argument("invoke", timeout))
}

func TestServerDoorIsLockedAndUnlocked(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	p, door := onPlugin(t, srv), srv.Device(t, "august")
	isLocked := func() bool {
		var out api.DeviceResponse
		srv.Post(t, "/devices/get", map[string]any{"device_id": door}, &out)
		return out.Device.Properties.Locked != nil && *out.Device.Properties.Locked
	}
	for _, verb := range []string{"unlock", "lock", "unlock"} {
		said := p.does("deviceaccess_"+verb+"_door", argument("device_id", door))
		expectSaid(t, verb, said, "Waiting for the lock "+door, "The lock "+door+" is "+verb+"ed.")
		if isLocked() != (verb == "lock") {
			t.Errorf("after %s, the door is locked: %t", verb, isLocked())
		}
	}
	srv.Post(t, "/devices/simulate/disconnect", map[string]any{"device_id": door}, nil)
	for _, verb := range []string{"unlock", "lock"} {
		p.cannot("deviceaccess_"+verb+"_door", argument("device_id", door), "Could not "+verb+" door", "online")
	}
	got := p.cannot("deviceaccess_lock_door", argument("device_id", "nope"), "Could not lock door")
	if got.Attribute.String() != `AttributeName("device_id")` {
		t.Errorf("the error is at %s", got.Attribute)
	}
}

func TestLockThatDoesNotConfirmEndsTheAction(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	p := f.plugin(t)
	attempt := func(status string, more string) http.HandlerFunc {
		return answerRaw(http.StatusOK, "application/json", `{"ok": true, "action_attempt": {"action_attempt_id": "a1",
			"action_type": "UNLOCK_DOOR", "status": "`+status+`", "result": null, "error": `+more+`}}`)
	}
	f.do(func() { f.attempts["a1"] = &fakeAttempt{looks: 1 << 30} })
	f.then("/locks/unlock_door", attempt("pending", "null"))
	p.cannot("deviceaccess_unlock_door", map[string]tftypes.Value{
		"device_id": text(fakeDevice), "timeouts": p.within("deviceaccess_unlock_door", "300ms"),
	}, "when the time was up", "may still do it", "`timeouts { invoke }`")
	f.then("/locks/unlock_door", attempt("error", `{"type": "jammed", "message": "The bolt is jammed"}`))
	p.cannot("deviceaccess_unlock_door", argument("device_id", fakeDevice), "The bolt is jammed (jammed)", "online")
	p.cannot("deviceaccess_unlock_door", map[string]tftypes.Value{
		"device_id": text(fakeDevice), "timeouts": p.within("deviceaccess_unlock_door", "0s"),
	}, "leaves no time")
}

// A server that does not know the attempt proves nothing about the door. Only the reported position of the bolt does.
func TestDoorAction_OutcomeUnknown(t *testing.T) {
	t.Parallel()
	const unknown, advice = "server does not know the action attempt", "Check the door before you run the action again"
	f := startFake(t)
	p := f.plugin(t)
	inTime := func(timeout string) map[string]tftypes.Value {
		return map[string]tftypes.Value{
			"device_id": text(fakeDevice), "timeouts": p.within("deviceaccess_unlock_door", timeout),
		}
	}
	position := func(properties map[string]any) {
		f.do(func() {
			f.devices = []map[string]any{
				{"device_id": fakeDevice, "device_type": "august_lock", "properties": properties},
			}
		})
	}
	for name, started := range map[string]string{
		"no attempt":         `{"ok": true}`,
		"an unknown attempt": `{"ok": true, "action_attempt": {"action_attempt_id": "lost", "status": "pending"}}`,
	} {
		f.then("/locks/unlock_door", answerRaw(http.StatusOK, "application/json", started))
		position(map[string]any{"online": true, "locked": true})
		said := p.cannot(
			"deviceaccess_unlock_door",
			inTime("700ms"),
			unknown,
			"did not report the lock as unlocked",
			advice,
		)
		if said.Attribute.String() != `AttributeName("device_id")` {
			t.Errorf("%s: the error is at %s", name, said.Attribute)
		}
		f.then("/locks/unlock_door", answerRaw(http.StatusOK, "application/json", started))
		position(map[string]any{"online": true})
		p.cannot(
			"deviceaccess_unlock_door",
			inTime("1h"),
			unknown,
			"does not report whether the door is locked",
			advice,
		)
		f.then("/locks/unlock_door", answerRaw(http.StatusOK, "application/json", started))
		position(map[string]any{"online": true, "locked": false})
		expectSaid(t, name, p.does("deviceaccess_unlock_door", inTime("1h")), "is unlocked.")
	}
	// The server may have carried out a command that it has not answered.
	f.then("/locks/unlock_door", answerRaw(http.StatusInternalServerError, "text/plain", "broken"))
	p.cannot("deviceaccess_unlock_door", inTime("1h"), "The server may have done it", advice)
}

func TestServerBackupCodeIsPulledWithoutItsPIN(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	p, door := onPlugin(t, srv), srv.Device(t, "august")
	var made api.AccessCodeCreatedResponse
	srv.Post(t, "/access_codes/create", map[string]any{
		"device_id": door, "use_backup_access_code_pool": true, "sync": true, "name": "Guest 905173846251",
		"starts_at": time.Now(), "ends_at": time.Now().Add(time.Hour),
	}, &made)
	id := made.AccessCode.AccessCodeID
	get := func(id string) api.AccessCode {
		var out api.AccessCodeResponse
		srv.Post(t, "/access_codes/get", map[string]any{"access_code_id": id}, &out)
		return out.AccessCode
	}
	apptest.Until(t, "a backup code can be pulled", func() bool {
		return get(id).IsBackupAccessCodeAvailable
	})
	said := p.does("deviceaccess_pull_backup_access_code", argument("access_code_id", id))
	backup := get(id).PulledBackupAccessCodeID
	if backup == nil || *backup == "" {
		t.Fatalf("no backup code was pulled: %s", said)
	}
	expectSaid(
		t,
		"the action",
		said,
		"The backup code "+*backup+" on the lock "+door+" now replaces the access code "+id,
	)
	forbids(
		t,
		"what the action said",
		said,
		map[string]string{"the PIN": *get(*backup).Code, "the name": "905173846251"},
	)
	if again := p.does("deviceaccess_pull_backup_access_code", argument("access_code_id", id)); again != said {
		t.Errorf("pulled again: %s", again)
	}
	p.cannot(
		"deviceaccess_pull_backup_access_code",
		argument("access_code_id", *backup),
		"Could not pull backup access code",
	)
}

func TestServerWebhookTestReportsTheAnswer(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t)
	p, status := onPlugin(t, srv), http.StatusAccepted
	var events []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		events = append(events, r.Header.Get("webhook-id"))
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	id := createHook(t, srv, receiver.URL+"/?token=hush").WebhookID
	said := p.does("deviceaccess_webhook_test", argument("webhook_id", id))
	expectSaid(t, "the action", said, "The receiver answered 202 Accepted after ")
	status = http.StatusUnauthorized
	failed := p.cannot("deviceaccess_webhook_test", argument("webhook_id", id), "Could not test webhook",
		"The endpoint answered 401 Unauthorized", "signatures")
	receiver.Close()
	unreachable := p.cannot(
		"deviceaccess_webhook_test",
		argument("webhook_id", id),
		"Could not test webhook",
		"refused",
	)
	if len(events) != 2 || strings.Contains(said+failed.Detail+unreachable.Detail, "hush") {
		t.Errorf("%d events; the action says %s %s %s", len(events), said, failed.Detail, unreachable.Detail)
	}
}

// createHook creates a webhook behind Terraform's back.
func createHook(t *testing.T, srv *apptest.Server, url string) api.Webhook {
	t.Helper()
	var made api.WebhookResponse
	if status := srv.Post(t, "/webhooks/create", map[string]any{"url": url}, &made); status != http.StatusOK {
		t.Fatalf("no webhook: %d", status)
	}
	return made.Webhook
}

func secretOf(t *testing.T, srv *apptest.Server, id string) string {
	t.Helper()
	var out api.WebhookResponse
	srv.Post(t, "/webhooks/get", map[string]any{"webhook_id": id}, &out)
	return out.Webhook.Secret
}

func TestServerSecretIsRotatedByAnAction(t *testing.T) {
	t.Parallel()
	const rotate = "deviceaccess_webhook_rotate_secret"
	srv := apptest.Shared(t)
	p := onPlugin(t, srv)
	hook := createHook(t, srv, "https://example.com/a")
	id := text(hook.WebhookID)
	said := p.does(rotate, map[string]tftypes.Value{"webhook_id": id, "overlap": text("90m")})
	rotated := secretOf(t, srv, hook.WebhookID)
	if rotated == hook.Secret {
		t.Error("the secret has not changed")
	}
	_, until, found := strings.Cut(said, "The old secret signs, too, until ")
	ends, err := time.Parse(time.RFC3339, until[:min(20, len(until))])
	if left := time.Until(ends); !found || err != nil || left < 80*time.Minute || left > 91*time.Minute {
		t.Errorf("the old secret ends at %v, %v: %s", ends, err, said)
	}
	p.cannot(rotate, argument("webhook_id", hook.WebhookID), "Could not rotate webhook secret", "rotation_in_progress",
		"`overlap = \"0s\"`")
	said += p.does(rotate, map[string]tftypes.Value{"webhook_id": id, "overlap": text("0s")})
	expectSaid(t, "the action", said, "The old secret has ended")
	forbids(t, "what the action said", said, map[string]string{
		"the first secret": hook.Secret, "the second secret": rotated, "the secret": secretOf(t, srv, hook.WebhookID),
	})
	for _, overlap := range []string{"-1s", "soon"} {
		p.cannot(rotate, map[string]tftypes.Value{"webhook_id": id, "overlap": text(overlap)}, overlap)
	}
	refused := p.cannot(rotate, map[string]tftypes.Value{"webhook_id": id, "overlap": text("721h")}, "equal to 2592000")
	if refused.Attribute.String() != `AttributeName("overlap")` {
		t.Errorf("the error is at %s", refused.Attribute)
	}
}

// Every action, on a server that lacks its operation, and for something that the server does not know.
func TestActionsSayWhatTheServerCannotDo(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	p, srv := f.plugin(t), apptest.Shared(t)
	known := onPlugin(t, srv)
	for typeName, c := range map[string]struct{ argument, lacking string }{
		"deviceaccess_lock_door":               {"device_id", "does not know this operation"},
		"deviceaccess_unlock_door":             {"device_id", "does not know this operation"},
		"deviceaccess_pull_backup_access_code": {"access_code_id", "does not know this operation"},
		"deviceaccess_webhook_test":            {"webhook_id", "cannot send test events"},
		"deviceaccess_webhook_rotate_secret":   {"webhook_id", "cannot rotate secrets"},
	} {
		p.cannot(typeName, argument(c.argument, fakeDevice), c.lacking)
		known.cannot(typeName, argument(c.argument, fakeDevice), "(HTTP 404", "Check the identifier")
		known.cannot(typeName, argument(c.argument, ""), "`"+c.argument+"`")
		delete(p.schemas.ActionSchemas, typeName)
	}
	for typeName := range p.schemas.ActionSchemas {
		t.Errorf("add %s to this test", typeName)
	}
}

func TestActionsWaitForAnUnknownServer(t *testing.T) {
	t.Parallel()
	p := startPluginWith(t, map[string]tftypes.Value{
		"endpoint": tftypes.NewValue(tftypes.String, tftypes.UnknownValue), "api_key": text(fakeKey),
	})
	for typeName, schema := range p.schemas.ActionSchemas {
		p.cannot(typeName, requiredTexts(schema.Schema), "of `endpoint` in the provider block is not known until apply")
	}
}

// The whole way, with a terraform command that knows actions.
func TestServerActionIsTriggeredByACode(t *testing.T) {
	t.Parallel()
	needTerraform(t)
	if !cliKnows(t, "1.14", "an action") {
		t.Skip("the terraform command knows no actions")
	}
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	door := srv.Device(t, "august")
	w := newWorkspace(t, map[string]string{"main.tf": required + onServer(srv, fmt.Sprintf(`
resource "deviceaccess_access_code" "cleaner" {
  device_id = %[1]q
  name      = "Cleaner"
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.deviceaccess_unlock_door.front]
    }
  }
}
action "deviceaccess_unlock_door" "front" {
  config {
    device_id = %[1]q
  }
}
`, door))})
	expectSaid(t, "the apply", w.plain("apply", "-auto-approve"), "The lock "+door+" is unlocked.")
	w.expect(true, "plan", "-detailed-exitcode")
}
