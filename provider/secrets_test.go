package provider

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// forbids fails the test when a text holds one of these secrets.
func forbids(t *testing.T, where, text string, secrets map[string]string) {
	t.Helper()
	for name, secret := range secrets {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("%s is in %s:\n%s", name, where, text[max(0, at-500):min(len(text), at+200)])
		}
	}
}

func TestNothingThatIsPrintedOrLoggedHoldsASecret(t *testing.T) {
	t.Parallel()
	const pin, changed, adopted = "905173846251", "715938426052", "640297158306"
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: adopted})
	config := func(pin string) string {
		return f.config(webhook("https://example.com/a", "") + accessCode(fmt.Sprintf("code = %q", pin)) + fmt.Sprintf(`
resource "deviceaccess_access_code" "adopted" {
  device_id = %[1]q
}
import {
  to = deviceaccess_access_code.adopted
  id = "%[1]s/%[2]s"
}
data "deviceaccess_unmanaged_access_codes" "these" {
  device_id = %[1]q
}
`, fakeDevice, id))
	}
	w := newLoggedWorkspace(t, map[string]string{"versions.tf": required, "main.tf": config(pin)})
	echo := `{"code": "` + pin + `", "Authorization": "Bearer ` + fakeKey + `"}`
	f.then("/access_codes/create",
		answerRaw(http.StatusBadRequest, "application/json", `{"ok": false, "error": {"type": "invalid_input", "message": "PIN `+pin+` is no good",
			"validation_errors": {"code": {"_errors": ["`+pin+`"]}}}}`))
	w.expect(false, "apply", "-auto-approve")
	f.then("/access_codes/create", answerRaw(http.StatusBadGateway, "text/html", "<p>"+echo+"</p>"))
	w.expect(false, "apply", "-auto-approve")
	w.expect(true, "apply", "-auto-approve")
	w.write("main.tf", config(changed))
	w.expect(true, "plan")
	f.do(func() {
		f.nextAttempt = func(a *fakeAttempt) { a.failure = map[string]any{"type": "x", "message": changed + " does not fit"} }
	})
	w.expect(false, "apply", "-auto-approve")
	f.do(func() { f.nextAttempt = nil })
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "show")
	w.write("main.tf", strings.Replace(config(changed+"x"), "api_key  = \"", "api_key  = \"\\n", 1))
	w.expect(false, "plan") // neither the PIN nor the key is well-formed
	w.write("main.tf", config(changed))
	w.expect(true, "destroy", "-auto-approve")

	log := w.seen.String()
	forbids(t, "what was written", log, map[string]string{
		"the PIN": pin, "the changed PIN": changed, "the adopted PIN": adopted, "the API key": fakeKey, "the webhook's secret": fakeSecret,
	})
	for _, wanted := range []string{"request answered", "path=/access_codes/create", "PIN (hidden) is no good", "(hidden) does not fit"} {
		if !strings.Contains(log, wanted) {
			t.Errorf("%q is not in what was written, so this test looks at the wrong thing", wanted)
		}
	}
}

// What terraform query shows, and what the configuration is made of that it generates, with every Terraform.
func TestQueryTellsNoSecret(t *testing.T) {
	t.Parallel()
	f := twoLocks(t)
	f.unmanaged(fakeCode{name: "Owner " + longPIN, code: longPIN})
	f.unmanaged(fakeCode{name: longPIN, code: longPIN, managed: true})
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a?token=hush", eventTypes: []string{"*"}}
	p := f.plugin(t)
	secrets := map[string]string{"a PIN": longPIN, "the webhook's secret": fakeSecret, "the API key": fakeKey}
	var shown []string
	for typeName, want := range map[string]int{codeType: 6, webhookType: 1} {
		results := p.lists(&tfprotov6.ListResourceRequest{TypeName: typeName, IncludeResource: true})
		if len(results) != want {
			t.Errorf("%d results of %s", len(results), typeName)
		}
		for _, result := range results {
			p.allow(result.Diagnostics)
			made, err := p.server.GenerateResourceConfig(t.Context(), &tfprotov6.GenerateResourceConfigRequest{TypeName: typeName, State: result.Resource})
			if err != nil {
				t.Fatal(err)
			}
			p.allow(made.Diagnostics)
			for what, text := range map[string]string{
				"the name that is shown": result.DisplayName, "the identity": string(result.Identity.IdentityData.MsgPack),
				"the resource": string(result.Resource.MsgPack), "the generated configuration": string(made.Config.MsgPack),
			} {
				forbids(t, what+" of "+typeName, text, secrets)
			}
			shown = append(shown, result.DisplayName)
		}
	}
	for _, want := range []string{"Owner (hidden) on Front door (unmanaged)", "(hidden) on Front door", "https://example.com/a"} {
		if !slices.Contains(shown, want) {
			t.Errorf("%q is not listed: %q", want, shown)
		}
	}
}

// What is written only, and what is read for the moment, is also in no plan and in no state.
func TestWriteOnlyAndEphemeralPINsAreNowhere(t *testing.T) {
	t.Parallel()
	const pin, changed, read = "905173846251", "715938426052", "640297158306"
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: read})
	config := func(pin string, version int) string {
		return f.config(accessCode(writtenOnly(pin, version)) + fmt.Sprintf(`
ephemeral "deviceaccess_access_code" "plumber" {
  access_code_id = %q
}
resource "deviceaccess_access_code" "copy" {
  device_id       = %q
  code_wo         = ephemeral.deviceaccess_access_code.plumber.code
  code_wo_version = %d
}
`, id, fakeDevice, version))
	}
	w := newLoggedWorkspace(t, map[string]string{"versions.tf": required})
	secrets := map[string]string{"the PIN": pin, "the changed PIN": changed, "the PIN that was read": read, "the API key": fakeKey}
	for version, pin := range []string{pin, changed} {
		w.write("main.tf", config(pin, version))
		w.expect(true, "plan", "-out=plan")
		plan := w.read("show", "-json", "plan")
		plan = plan[:strings.Index(plan, `"configuration":`)] // which repeats what is written in main.tf
		forbids(t, "the plan", plan, secrets)
		w.expect(true, "apply", "plan")
	}
	if updates := f.bodies("/access_codes/update"); len(updates) != 2 || f.codes[id].managed {
		t.Errorf("updates: %v", updates)
	}
	for _, name := range []string{"terraform.tfstate", "terraform.tfstate.backup"} {
		content, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		forbids(t, name, string(content), secrets)
	}
	w.expect(true, "destroy", "-auto-approve")
	forbids(t, "what was written", w.seen.String(), secrets)
}

// Where the PIN of the state is not the one on the lock, or there is none, the server still tells it.
func TestErrorsOfASetTellNoPINThatOnlyTheServerKnows(t *testing.T) {
	const pin, other = "905173846251", "715938426052"
	for name, one := range map[string]struct {
		config  string
		told    string
		managed bool
		drifted bool
	}{
		"written only":           {writtenOnly(pin, 1), pin, true, false},
		"changed on the lock":    {`code = "` + pin + `"`, other, true, true},
		"written only, given up": {writtenOnly(pin, 1), pin, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFakeLocks(t)
			run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: f.config(codeSet(one.config, lockA))},
				{
					PreConfig: func() {
						f.do(func() {
							_, c := f.only()
							c.code, c.managed = one.told, one.managed
							c.errors = []map[string]any{{"error_code": "duplicate_code_on_device", "message": "PIN " + one.told + " is taken.", "is_access_code_error": true}}
						})
					},
					RefreshState: true, ExpectNonEmptyPlan: one.drifted,
					Check: resource.ComposeAggregateTestCheckFunc(showsNo(one.told),
						resource.TestCheckResourceAttr(nanny, "access_codes."+lockA+".errors.0", "PIN (hidden) is taken (duplicate_code_on_device)")),
				},
			}})
		})
	}
}

func TestFailedDestroyTellsNoPINThatOnlyTheServerKnows(t *testing.T) {
	const pin = "905173846251"
	for name, config := range map[string]string{"a set": codeSet(writtenOnly(pin, 1), lockA), "a code": accessCode(writtenOnly(pin, 1))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			w := newLoggedWorkspace(t, map[string]string{"versions.tf": required, "main.tf": f.config(config)})
			w.expect(true, "apply", "-auto-approve")
			f.do(func() {
				f.nextAttempt = func(a *fakeAttempt) {
					a.failure = map[string]any{"type": "stuck", "message": "PIN " + pin + " is stuck"}
				}
			})
			w.expect(false, "destroy", "-auto-approve")
			forbids(t, "what was written", w.seen.String(), map[string]string{"the PIN": pin})
			expectSaid(t, "the error", plainly(w.seen.String()), "PIN (hidden) is stuck")
		})
	}
}

func TestCrashOfTheProviderShowsNoSecret(t *testing.T) {
	t.Parallel()
	const pin, written = "905173846251", "715938426052"
	f := startFake(t)
	w := newLoggedWorkspace(t, map[string]string{"versions.tf": required, "main.tf": f.config(accessCode(`code = "`+pin+`"`) +
		strings.Replace(accessCode(writtenOnly(written, 1)), `"front"`, `"back"`, 1))})
	came, release := f.hold("/access_codes/create")
	defer release()
	apply := w.start("apply", "-auto-approve")
	<-came
	quit(t, apply.cmd.Process.Pid)
	if err := apply.cmd.Wait(); err == nil || !strings.Contains(apply.text(), "goroutine ") {
		t.Fatalf("the provider did not crash (%v):\n%s", err, apply.text())
	}
	forbids(t, "the crash", apply.text(), map[string]string{"the PIN": pin, "the PIN that is written only": written, "the API key": fakeKey})
}

// quit makes the provider that terraform has started end with the stacks of all its goroutines.
func quit(t *testing.T, terraform int) {
	t.Helper()
	if err := syscall.Kill(pluginOf(t, terraform), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
}

// pluginOf is the provider that terraform has started.
func pluginOf(t *testing.T, terraform int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skip("there is no /proc to find the provider in")
	}
	for _, stat := range stats {
		content, err := os.ReadFile(stat)
		if err != nil || !strings.Contains(string(content), "(terraform-provi)") {
			continue
		}
		_, rest, _ := strings.Cut(string(content), ") ") // state, parent, …
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if fields := strings.Fields(rest); err == nil && fields[1] == strconv.Itoa(terraform) {
			return pid
		}
	}
	t.Fatal("the provider does not run")
	return 0
}
