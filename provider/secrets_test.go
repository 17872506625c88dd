package provider

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/hashicorp/terraform-plugin-log/tfsdklogtest"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
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
	f.then(
		"/access_codes/create",
		answerRaw(
			http.StatusBadRequest,
			"application/json",
			`{"ok": false, "error": {"type": "invalid_input", "message": "PIN `+pin+` is no good",
			"validation_errors": {"code": {"_errors": ["`+pin+`"]}}}}`,
		),
	)
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
		"the PIN":              pin,
		"the changed PIN":      changed,
		"the adopted PIN":      adopted,
		"the API key":          fakeKey,
		"the webhook's secret": fakeSecret,
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
	for typeName, want := range map[string]int{codeType: 6, webhookType: 1, exclusiveType: 2} {
		results := p.lists(&tfprotov6.ListResourceRequest{TypeName: typeName, IncludeResource: true})
		if len(results) != want {
			t.Errorf("%d results of %s", len(results), typeName)
		}
		for _, result := range results {
			p.allow(result.Diagnostics)
			made, err := p.server.GenerateResourceConfig(
				t.Context(),
				&tfprotov6.GenerateResourceConfigRequest{TypeName: typeName, State: result.Resource},
			)
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
	secrets := map[string]string{
		"the PIN":               pin,
		"the changed PIN":       changed,
		"the PIN that was read": read,
		"the API key":           fakeKey,
	}
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
							c.errors = []map[string]any{
								{
									"error_code":           "duplicate_code_on_device",
									"message":              "PIN " + one.told + " is taken.",
									"is_access_code_error": true,
								},
							}
						})
					},
					RefreshState:       true,
					ExpectNonEmptyPlan: one.drifted,
					Check: resource.ComposeAggregateTestCheckFunc(
						showsNo(one.told),
						resource.TestCheckResourceAttr(
							nanny,
							"access_codes."+lockA+".errors.0.message",
							"PIN (hidden) is taken.",
						),
						resource.TestCheckResourceAttr(
							nanny,
							"access_codes."+lockA+".errors.0.error_code",
							"duplicate_code_on_device",
						),
					),
				},
			}})
		})
	}
}

func TestFailedDestroyTellsNoPINThatOnlyTheServerKnows(t *testing.T) {
	const pin = "905173846251"
	for name, config := range map[string]string{"a shared code": codeSet(writtenOnly(pin, 1), lockA), "a code": accessCode(writtenOnly(pin, 1))} {
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
	w := newLoggedWorkspace(
		t,
		map[string]string{"versions.tf": required, "main.tf": f.config(accessCode(`code = "`+pin+`"`) +
			strings.Replace(accessCode(writtenOnly(written, 1)), `"front"`, `"back"`, 1))},
	)
	came, release := f.hold("/access_codes/create")
	defer release()
	apply := w.start("apply", "-auto-approve")
	<-came
	quit(t, apply.cmd.Process.Pid)
	if err := apply.cmd.Wait(); err == nil || !strings.Contains(apply.text(), "goroutine ") {
		t.Fatalf("the provider did not crash (%v):\n%s", err, apply.text())
	}
	forbids(
		t,
		"the crash",
		apply.text(),
		map[string]string{"the PIN": pin, "the PIN that is written only": written, "the API key": fakeKey},
	)
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

// toBeDone is what a journey has to do with each type of a kind, as the log of the framework names it.
var toBeDone = map[string][]string{
	"Resource":          {"ImportState", "Read", "Create", "Update", "Delete"},
	"DataSource":        {"Read"},
	"EphemeralResource": {"Open"},
}

var (
	doing   = regexp.MustCompile(`Calling provider defined (Resource|DataSource|EphemeralResource) (\w+)\b`)
	ofAType = regexp.MustCompile(`\btf_(?:resource|data_source|ephemeral_resource)_type=(\w+)`)
)

// undone is what a log at TRACE does not say was done, of all that there is to do with what a provider has.
func undone(schemas *tfprotov6.GetProviderSchemaResponse, log string, lists map[string]string) (missing []string) {
	done := map[string]bool{}
	for line := range strings.Lines(log) {
		what, of := doing.FindStringSubmatch(line), ofAType.FindStringSubmatch(line)
		if what != nil && of != nil {
			done[what[1]+" "+of[1]+" "+what[2]] = true
		}
	}
	for kind, types := range map[string]map[string]*tfprotov6.Schema{
		"Resource": schemas.ResourceSchemas, "DataSource": schemas.DataSourceSchemas, "EphemeralResource": schemas.EphemeralResourceSchemas,
	} {
		for typeName := range types {
			for _, act := range toBeDone[kind] {
				if one := kind + " " + typeName + " " + act; !done[one] {
					missing = append(missing, one)
				}
			}
		}
	}
	for typeName := range schemas.ListResourceSchemas {
		if !strings.Contains(lists[typeName], "Calling provider defined ListResource") {
			missing = append(missing, "ListResource "+typeName)
		}
	}
	ran := strings.Contains(log, "Calling provider defined Function Run") // the log does not name the function
	for name := range schemas.Functions {
		if !ran || len(schemas.Functions) > 1 {
			missing = append(missing, "Function "+name)
		}
	}
	for name := range schemas.ActionSchemas {
		if !strings.Contains(lists[name], "Calling provider defined Action Invoke") {
			missing = append(missing, "Action "+name)
		}
	}
	for name := range schemas.StateStoreSchemas {
		missing = append(missing, "StateStore "+name)
	}
	slices.Sort(missing)
	return missing
}

// judgeCoverage fails the test when the provider has something that the journey has not been to.
func (j *journey) judgeCoverage() {
	j.t.Helper()
	lists := map[string]string{}
	for typeName, log := range j.lists {
		lists[typeName] = log.String()
	}
	schemas, err := NewServer("test")().GetProviderSchema(j.t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		j.t.Fatal(err)
	}
	for _, one := range undone(schemas, j.seen.String(), lists) {
		j.t.Errorf("the log does not contain %s, so its output was not checked: add it to the journey", one)
	}
}

func TestWhatAJourneyLeavesOutIsNoticed(t *testing.T) {
	t.Parallel()
	schema := map[string]*tfprotov6.Schema{"deviceaccess_lock": {}}
	schemas := &tfprotov6.GetProviderSchemaResponse{
		ResourceSchemas:          schema,
		DataSourceSchemas:        schema,
		EphemeralResourceSchemas: schema,
		ListResourceSchemas:      schema,
		Functions: map[string]*tfprotov6.Function{
			"pin": {},
		},
		ActionSchemas: map[string]*tfprotov6.ActionSchema{"open": {}},
	}
	log := "provider: Calling provider defined Resource Create: @module=sdk.framework tf_resource_type=deviceaccess_lock tf_rpc=ApplyResourceChange\n" +
		"provider: Calling provider defined Resource Delete: tf_resource_type=deviceaccess_lock_of_another_kind\n" +
		"provider: Calling provider defined DataSource Read: tf_data_source_type=deviceaccess_lock\n" +
		"provider: Calling provider defined EphemeralResource Close: tf_ephemeral_resource_type=deviceaccess_lock\n"
	want := []string{
		"Action open",
		"EphemeralResource deviceaccess_lock Open",
		"Function pin",
		"ListResource deviceaccess_lock",
		"Resource deviceaccess_lock Delete",
		"Resource deviceaccess_lock ImportState",
		"Resource deviceaccess_lock Read",
		"Resource deviceaccess_lock Update",
	}
	if got := undone(schemas, log, nil); !slices.Equal(got, want) {
		t.Errorf("left out: %q, want %q", got, want)
	}
}

// sensitive are the names of the attributes that are, also of those inside others.
func sensitive(attributes []*tfprotov6.SchemaAttribute) (names []string) {
	for _, a := range attributes {
		if a.Sensitive {
			names = append(names, a.Name)
		}
		if a.NestedType != nil {
			names = append(names, sensitive(a.NestedType.Attributes)...)
		}
	}
	return names
}

// What is sensitive is in the table that says where it is kept.
func TestTableOfSecretsIsWhole(t *testing.T) {
	t.Parallel()
	_, page, _ := strings.Cut(read(t, "../docs/index.md"), "## Secrets\n")
	page, _, _ = strings.Cut(page, "\n## ")
	rows := slices.DeleteFunc(
		strings.Split(page, "\n"),
		func(line string) bool { return !strings.HasPrefix(line, "| `") },
	)
	schemas, err := NewServer("test")().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, kind := range []map[string]*tfprotov6.Schema{schemas.ResourceSchemas, schemas.DataSourceSchemas, schemas.EphemeralResourceSchemas, {"api_key": schemas.Provider}} {
		for typeName, schema := range kind {
			for _, name := range sensitive(schema.Block.Attributes) {
				n++
				if !slices.ContainsFunc(rows, func(row string) bool {
					return strings.Contains(row, "`"+name+"`") && strings.Contains(row, "`"+typeName+"`")
				}) {
					t.Errorf(
						"%s of %s is sensitive, and the table of secrets in docs/index.md does not say so",
						name,
						typeName,
					)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("%d attributes are sensitive, so this test looks at the wrong thing", n)
	}
}

// journey is all that can be done with all that the provider has, on a real server, with the fullest log.
type journey struct {
	*workspace
	run     secretscan.Run
	written secretscan.Ledger // what is written only, which must be in no state and in no plan either
	srv     *apptest.Server
	system  *apptest.AccessSystem
	locks   [3]string // the third is the one that others' codes are taken off
	pins    int

	thermostat, sensor string
	lists              map[string]*bytes.Buffer // what each list resource and action has logged, by type
}

func newJourney(t *testing.T) *journey {
	t.Helper()
	j := &journey{lists: map[string]*bytes.Buffer{}}
	j.srv = apptest.Start(t, apptest.WithProfiles("august", "yale", "schlage", "ecobee", "noiseaware"), j.run.Configure(t))
	j.system = j.srv.AccessSystem(t)
	for n, profile := range []string{"august", "yale", "schlage"} {
		j.locks[n] = j.srv.Device(t, profile)
	}
	j.thermostat, j.sensor = j.srv.Device(t, "ecobee"), j.srv.Device(t, "noiseaware")
	clearSensor(t, j.srv, j.sensor)
	j.workspace = newLoggedWorkspace(t, map[string]string{"versions.tf": required, "provider.tf": onServer(j.srv, "")})
	return j
}

// pin is one that nothing else is: six digits are found wherever they stand, and no duration and no port begins with
// a 0.
func (j *journey) pin() string {
	j.pins++
	return fmt.Sprintf("0592%02d", j.pins)
}

// desired is what changes in the configuration on the way.
type desired struct {
	code, set       string // PINs that are kept
	codeWO, setWO   string // PINs that are written only
	version, events string
}

func (j *journey) desire(version int, events string) desired {
	d := desired{j.pin(), j.pin(), j.pin(), j.pin(), fmt.Sprint(version), events}
	for _, pin := range []string{d.codeWO, d.setWO} {
		j.written.Learn("PIN that is written only", pin)
	}
	return d
}

// everything is a configuration with every type that the provider has, but for list resources, which are in none.
func (j *journey) everything(d desired) {
	j.t.Helper()
	j.write(
		"main.tf",
		strings.NewReplacer(
			"AUGUST",
			j.locks[0],
			"YALE",
			j.locks[1],
			"SCHLAGE",
			j.locks[2],
			"SYSTEM",
			j.system.ID,
			"CODE_WO",
			d.codeWO,
			"SET_WO",
			d.setWO,
			"CODE",
			d.code,
			"SET",
			d.set,
			"VERSION",
			d.version,
			"EVENTS",
			d.events,
		).Replace(`
resource "deviceaccess_access_code" "kept" {
  device_id = "AUGUST"
  name      = "Guest"
  code      = "CODE"
}
resource "deviceaccess_access_code" "written" {
  device_id       = "YALE"
  name            = "Neighbour"
  code_wo         = "CODE_WO"
  code_wo_version = VERSION
}
resource "deviceaccess_shared_access_code" "kept" {
  device_ids = ["AUGUST", "YALE"]
  name       = "Nanny"
  code       = "SET"
}
resource "deviceaccess_shared_access_code" "written" {
  device_ids      = ["YALE"]
  name            = "Family"
  code_wo         = "SET_WO"
  code_wo_version = VERSION
}
resource "deviceaccess_shared_access_code" "copied" {
  device_ids      = ["AUGUST"]
  name            = "Copy"
  code_wo         = ephemeral.deviceaccess_access_code.written.code
  code_wo_version = VERSION
}
resource "deviceaccess_access_codes_exclusive" "this" {
  device_id       = "SCHLAGE"
  access_code_ids = []
}
resource "deviceaccess_webhook" "this" {
  url         = "https://example.com/a"
  event_types = EVENTS
}
resource "deviceaccess_webhook" "kept_out" {
  url            = "https://example.com/b"
  store_secret   = false
  secret_version = VERSION
}
ephemeral "deviceaccess_webhook" "kept_out" {
  webhook_id = deviceaccess_webhook.kept_out.webhook_id
}
resource "deviceaccess_connect_webview" "this" {
  excluded_providers = ["sandbox"]
}
resource "deviceaccess_device" "this" {
  device_id = "AUGUST"
  name      = "Door VERSION"
}
resource "deviceaccess_user_identity" "this" {
  full_name = "Person VERSION"
}
resource "deviceaccess_acs_user" "this" {
  acs_system_id    = "SYSTEM"
  user_identity_id = deviceaccess_user_identity.this.user_identity_id
  full_name        = "Person VERSION"
}
ephemeral "deviceaccess_access_code" "written" {
  access_code_id = deviceaccess_access_code.written.access_code_id
}
data "deviceaccess_workspace" "this" {}
data "deviceaccess_devices" "all" {}
data "deviceaccess_device" "august" {
  device_id = "AUGUST"
}
data "deviceaccess_device_providers" "all" {}
data "deviceaccess_connected_accounts" "all" {}
data "deviceaccess_webhooks" "all" {}
data "deviceaccess_access_codes" "august" {
  device_id = "AUGUST"
}
data "deviceaccess_unmanaged_access_codes" "august" {
  device_id = "AUGUST"
}
data "deviceaccess_acs_users" "all" {
  acs_system_id = "SYSTEM"
}
data "deviceaccess_access_code" "kept" {
  access_code_id = deviceaccess_access_code.kept.access_code_id
}
data "deviceaccess_webhook" "this" {
  webhook_id = deviceaccess_webhook.this.webhook_id
}
data "deviceaccess_connected_account" "first" {
  connected_account_id = data.deviceaccess_connected_accounts.all.connected_accounts[0].connected_account_id
}
output "fits" {
  value     = provider::deviceaccess::pin_fits(data.deviceaccess_device.august, "CODE")
  sensitive = true
}
output "codes" {
  value     = [data.deviceaccess_access_codes.august, data.deviceaccess_unmanaged_access_codes.august, deviceaccess_webhook.this]
  sensitive = true
}
`)+j.climate(d.version),
	)
}

// climate is the part of the configuration without PINs.
func (j *journey) climate(version string) string {
	const starts, ends = "2100-01-01T00:00:00Z", "2100-02-01T00:00:00Z"
	return climatePreset(j.thermostat, heatsTo70F+"\n  name = \"Stay "+version+"\"") +
		scheduleOn(j.thermostat, occupied+".climate_preset_key", starts, ends, "name = \"Stay "+version+"\"") +
		noiseThreshold(j.sensor, "name = \"Night\"\n  noise_threshold_decibels = 5"+version) + `
data "deviceaccess_thermostats" "all" {}
data "deviceaccess_noise_sensors" "all" {}
`
}

// applies shows the plan and carries it out. Nothing that is written only is in it, nor in the state.
func (j *journey) applies() {
	j.t.Helper()
	plan := j.plans()
	j.expect(true, "apply", "plan")
	j.expect(true, "show")
	j.written.Search(j.t, map[string][]byte{"the plan": plan, "the state": []byte(j.file("terraform.tfstate"))})
}

// plans makes a plan, and is what is in it.
func (j *journey) plans() []byte {
	j.t.Helper()
	j.expect(true, "plan", "-out=plan")
	plan, _, cut := strings.Cut(
		j.read("show", "-json", "plan"),
		`"configuration":`,
	) // which repeats what is written in main.tf
	if !cut {
		j.t.Error("the plan has another form than this test knows")
	}
	return []byte(plan)
}

// meddle has others change all that is there, behind Terraform's back.
func (j *journey) meddle() {
	j.t.Helper()
	post := func(path string, in map[string]any) {
		j.t.Helper()
		if status := j.srv.Post(j.t, path, in, nil); status != http.StatusOK {
			j.t.Fatalf("%s is answered %d", path, status)
		}
	}
	ids := j.ids()
	for _, code := range []string{"Guest on August", "Nanny on August"} {
		post("/access_codes/update", map[string]any{"access_code_id": ids[code], "code": j.pin(), "sync": true})
	}
	for _, code := range []string{"Neighbour on Yale", "Nanny on Yale", "Family on Yale"} {
		post("/access_codes/update", map[string]any{"access_code_id": ids[code], "name": "Meddler", "sync": true})
	}
	post("/access_codes/create", map[string]any{"device_id": j.locks[2], "name": "Intruder", "sync": true})
	post("/webhooks/update", map[string]any{"webhook_id": ids["webhook"], "event_types": []string{"device.connected"}})
	post("/connect_webviews/delete", map[string]any{"connect_webview_id": ids["webview"]})
	post("/devices/update", map[string]any{"device_id": j.locks[0], "name": "Meddler"})
	post("/acs/users/update", map[string]any{"acs_user_id": ids["user"], "full_name": "Meddler"})
	post("/user_identities/update", map[string]any{"user_identity_id": ids["person"], "full_name": "Meddler"})
	post("/thermostats/update_climate_preset", map[string]any{
		"device_id": j.thermostat, "climate_preset_key": "occupied", "name": "Meddler",
	})
	post("/thermostats/schedules/update", map[string]any{
		"thermostat_schedule_id": ids["schedule"], "name": "Meddler",
	})
	post("/noise_sensors/noise_thresholds/update", map[string]any{
		"device_id": j.sensor, "noise_threshold_id": ids["threshold"], "noise_threshold_decibels": 90, "sync": true,
	})
}

// ids are the identifiers of what there is, by name and lock.
func (j *journey) ids() map[string]string {
	j.t.Helper()
	ids := map[string]string{}
	for n, name := range []string{"August", "Yale", "Schlage"} {
		for _, code := range managedOn(j.t, j.srv, j.locks[n]) {
			ids[*code.Name+" on "+name] = code.AccessCodeID
		}
	}
	var hooks api.WebhooksResponse
	j.srv.Post(j.t, "/webhooks/list", map[string]any{}, &hooks)
	kept := slices.IndexFunc(hooks.Webhooks, func(w api.Webhook) bool { return strings.HasSuffix(w.URL, "/a") })
	ids["webhook"], ids["webview"] = hooks.Webhooks[kept].WebhookID, invitations(j.t, j.srv)[0].ConnectWebviewID
	var people api.UserIdentitiesResponse
	j.srv.Post(j.t, "/user_identities/list", map[string]any{}, &people)
	ids["person"], ids["user"] = people.UserIdentities[0].UserIdentityID, people.UserIdentities[0].AcsUserIds[0]
	ids["schedule"] = schedulesOn(j.t, j.srv, j.thermostat)[0].ThermostatScheduleID
	ids["threshold"] = thresholdNamed(j.t, j.srv, j.sensor, "Night").NoiseThresholdID
	return ids
}

// fails has plans and applies fail by PINs: some that are none, and some that others have.
func (j *journey) fails(d desired) {
	j.t.Helper()
	bad := desired{j.pin() + "x", j.pin() + "x", j.pin() + "x", j.pin() + "x", "9", d.events}
	for _, pin := range []string{bad.code, bad.set, bad.codeWO, bad.setWO} {
		j.run.Learn("PIN that is none", pin)
	}
	j.everything(bad)
	j.expect(false, "plan")
	if n := strings.Count(plainly(j.seen.String()), "must be 4 to 12 digits"); n < 4 {
		j.t.Errorf("%d of 4 PINs are refused by the plan", n)
	}
	refused := func() (n int) {
		for _, r := range j.srv.Requests() {
			if r.Path == "/access_codes/update" && r.Status >= 400 && r.Status < 500 {
				n++
			}
		}
		return n
	}
	before := refused()
	j.everything(desired{d.set, d.code, d.setWO, d.codeWO, "9", d.events})
	j.expect(false, "apply", "-auto-approve")
	if n := refused() - before; n < 4 {
		j.t.Errorf("%d of 4 PINs are refused by the server", n)
	}
	// longer than the locks take
	j.everything(desired{j.pin() + "03", j.pin() + "0303", j.pin() + "030303", j.pin() + "030303", "9", d.events})
	from := j.seen.Len()
	j.expect(false, "plan")
	if n := strings.Count(j.seen.String()[from:], "Error: PIN does not fit the lock"); n < 4 {
		j.t.Errorf("%d of 4 PINs are refused by the plan, because they do not fit", n)
	}
}

// imports forgets what there is, and imports it. An import knows no configuration, so it reads PINs that are written
// only, too, as the documentation says: the apply after it takes them out of the state.
func (j *journey) imports() {
	j.t.Helper()
	ids := j.ids()
	for _, one := range [][2]string{
		{"access_code.kept", ids["Guest on August"]},
		{"access_code.written", j.locks[1] + "/" + ids["Neighbour on Yale"]},
		{"shared_access_code.kept", j.locks[0] + "/" + ids["Nanny on August"] + "," + j.locks[1] + "/" + ids["Nanny on Yale"]},
		{"shared_access_code.written", j.locks[1] + "/" + ids["Family on Yale"]},
		{"access_codes_exclusive.this", j.locks[2]},
		{"webhook.this", ids["webhook"]},
		{"connect_webview.this", ids["webview"]},
		{"device.this", j.locks[0]},
		{"acs_user.this", ids["user"]},
		{"user_identity.this", ids["person"]},
		{"climate_preset.occupied", j.thermostat + "/occupied"},
		{"thermostat_schedule.stay", ids["schedule"]},
		{"noise_threshold.night", ids["threshold"]},
	} {
		j.expect(true, "state", "rm", "deviceaccess_"+one[0])
		j.expect(true, "import", "deviceaccess_"+one[0], one[1])
	}
	if found := j.written.Find(j.plans()); len(found) != 2 {
		j.t.Errorf(
			"an import reads %d of 2 PINs that are written only: see whether the documentation of code_wo has to say so",
			len(found),
		)
	}
	j.expect(true, "apply", "plan")
}

// queries lists all that can be listed: by the command where it can, and by the protocol with every Terraform.
func (j *journey) queries() {
	j.t.Helper()
	p := startPlugin(j.t, map[string]string{"endpoint": j.srv.URL, "api_key": j.srv.APIKey})
	var blocks strings.Builder
	for typeName := range p.schemas.ListResourceSchemas {
		fmt.Fprintf(
			&blocks,
			"list %q \"all\" {\n  provider         = deviceaccess\n  include_resource = true\n}\n",
			typeName,
		)
		log := &bytes.Buffer{}
		ctx := tflogtest.RootLogger(tfsdklogtest.RootLogger(j.t.Context(), log), log)
		stream, err := p.server.(tfprotov6.ListResourceServer).ListResource(
			ctx,
			&tfprotov6.ListResourceRequest{
				TypeName:        typeName,
				IncludeResource: true,
				Limit:           100,
				Config:          p.listConfig(typeName, nil),
			},
		)
		if err != nil {
			j.t.Fatal(err)
		}
		n := 0
		for result := range stream.Results {
			p.allow(result.Diagnostics)
			fmt.Fprintf(log, "%s %s\n", result.DisplayName, result.Resource.MsgPack) // which is what Terraform shows
			n++
		}
		if n == 0 {
			j.t.Errorf("%s lists nothing", typeName)
		}
		j.lists[typeName] = log
	}
	if cliKnows(j.t, "1.14", "terraform query") {
		j.write("all.tfquery.hcl", blocks.String())
		j.expect(true, "query", "-generate-config-out=listed.tf")
		j.run.Search(j.t, map[string][]byte{"the generated configuration": []byte(j.file("listed.tf"))})
		if err := os.Remove(filepath.Join(j.dir, "listed.tf")); err != nil {
			j.t.Fatal(err)
		}
	}
}

// acts invokes every action, also those that fail.
func (j *journey) acts() {
	j.t.Helper()
	p := startPlugin(j.t, map[string]string{"endpoint": j.srv.URL, "api_key": j.srv.APIKey})
	receiver := httptest.NewServer(http.NotFoundHandler())
	j.t.Cleanup(receiver.Close)
	backed := map[string]any{
		"device_id": j.locks[1], "code": j.pin(), "name": "Backed", "use_backup_access_code_pool": true, "sync": true,
		"starts_at": time.Now(), "ends_at": time.Now().Add(time.Hour),
	}
	var made api.AccessCodeCreatedResponse
	j.srv.Post(j.t, "/access_codes/create", backed, &made)
	id := map[string]any{"access_code_id": made.AccessCode.AccessCodeID}
	apptest.Until(j.t, "a backup code can be pulled", func() bool {
		var code api.AccessCodeResponse
		j.srv.Post(j.t, "/access_codes/get", id, &code)
		return code.AccessCode.IsBackupAccessCodeAvailable
	})
	for typeName, argument := range map[string]struct{ name, value string }{
		"deviceaccess_lock_door":               {"device_id", j.locks[0]},
		"deviceaccess_unlock_door":             {"device_id", j.locks[0]},
		"deviceaccess_pull_backup_access_code": {"access_code_id", made.AccessCode.AccessCodeID},
		"deviceaccess_webhook_test":            {"webhook_id", createHook(j.t, j.srv, receiver.URL).WebhookID},
		"deviceaccess_webhook_rotate_secret":   {"webhook_id", createHook(j.t, j.srv, receiver.URL).WebhookID},
	} {
		log := &bytes.Buffer{}
		ctx := tflogtest.RootLogger(tfsdklogtest.RootLogger(j.t.Context(), log), log)
		for _, value := range []string{argument.value, fakeDevice} {
			progress, diagnostics := p.invokesWith(ctx, typeName, map[string]tftypes.Value{argument.name: text(value)})
			fmt.Fprintln(log, told(progress, diagnostics)) // which is what Terraform shows
		}
		j.lists[typeName] = log
	}
}

// tests runs a test of a module that shows all there is, and fails.
func (j *journey) tests() {
	j.t.Helper()
	w := newWorkspace(j.t, map[string]string{
		"versions.tf": required,
		"provider.tf": onServer(j.srv, ""),
		"main.tf": accessCodeOn(
			j.locks[0],
			fmt.Sprintf("name = \"Tester\"\n  code = %q", j.pin()),
		) + webhook(
			"https://example.com/b",
			"",
		) + invite(
			"",
		) +
			strings.Replace(
				codeSet(writtenOnly(j.pin(), 1), j.locks[1]),
				"Nanny",
				"Tester",
				1,
			),
		"all.tftest.hcl": "run \"all\" {\n  assert {\n    condition     = deviceaccess_access_code.front.code == deviceaccess_webhook.hook.secret\n    error_message = \"They differ.\"\n  }\n}\n",
	})
	w.expect(false, "test", "-verbose")
	if said := w.seen.String(); !strings.Contains(said, "They differ.") || !strings.Contains(said, "1 failed") {
		j.t.Error("the test of the module fails in another way than it is to")
	}
	j.seen.Write(w.seen.Bytes())
}

// All that Terraform writes at its fullest, whatever is done with whatever the provider has, tells no PIN, secret,
// key or address that lets in. Add every new type of the provider to the journey.
func TestTheFullestLogOfEveryTypeTellsNoSecret(t *testing.T) {
	t.Parallel()
	j := newJourney(t)
	j.everything(j.desire(1, `["*"]`))
	j.applies()
	last := j.desire(2, `["device.connected", "device.disconnected"]`)
	j.everything(last)
	j.applies()
	j.meddle()
	j.applies()
	j.fails(last)
	j.everything(last)
	j.imports()
	j.applies()
	j.queries()
	j.acts()
	j.tests()
	j.expect(true, "destroy", "-auto-approve")

	for kind, least := range map[string]int{"code": 15, "secret": 2, "credential": 1, "connect page": 3, "PIN that is none": 4} {
		if n := j.run.Count(kind); n < least {
			t.Errorf("%d of kind %s were learned, expected %d", n, kind, least)
		}
	}
	j.judgeCoverage()
	others := map[string][]byte{"what Terraform writes": j.seen.Bytes()}
	for typeName, log := range j.lists {
		others["what "+typeName+" logs and shows"] = log.Bytes()
	}
	j.run.Check(t, j.srv.App, others)
}
