package provider

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/hashicorp/terraform-plugin-log/tfsdklogtest"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// journey is all that can be done with all that the provider has, on a real server, with the fullest log.
type journey struct {
	*workspace
	run     secretscan.Run
	written secretscan.Ledger // what is written only, which must be in no state and in no plan either
	srv     *apptest.Server
	system  *apptest.AccessSystem
	locks   [3]string // the third is the one that others' codes are taken off
	pins    int
	lists   map[string]*bytes.Buffer // what each list resource has logged, by type
}

func newJourney(t *testing.T) *journey {
	t.Helper()
	j := &journey{lists: map[string]*bytes.Buffer{}}
	j.srv = apptest.Start(t, apptest.WithProfiles("august", "yale", "schlage"), j.run.Configure(t))
	j.system = j.srv.AccessSystem(t)
	for n, profile := range []string{"august", "yale", "schlage"} {
		j.locks[n] = j.srv.Device(t, profile)
	}
	j.workspace = newLoggedWorkspace(t, map[string]string{"versions.tf": required, "provider.tf": onServer(j.srv, "")})
	return j
}

// pin is one that nothing else is: six digits are found wherever they stand, and no duration and no port begins with a 0.
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
	j.write("main.tf", strings.NewReplacer("AUGUST", j.locks[0], "YALE", j.locks[1], "SCHLAGE", j.locks[2], "SYSTEM", j.system.ID,
		"CODE_WO", d.codeWO, "SET_WO", d.setWO, "CODE", d.code, "SET", d.set, "VERSION", d.version, "EVENTS", d.events).Replace(`
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
resource "deviceaccess_access_code_set" "kept" {
  device_ids = ["AUGUST", "YALE"]
  name       = "Nanny"
  code       = "SET"
}
resource "deviceaccess_access_code_set" "written" {
  device_ids      = ["YALE"]
  name            = "Family"
  code_wo         = "SET_WO"
  code_wo_version = VERSION
}
resource "deviceaccess_access_code_set" "copied" {
  device_ids      = ["AUGUST"]
  name            = "Copy"
  code_wo         = ephemeral.deviceaccess_access_code.written.code
  code_wo_version = VERSION
}
resource "deviceaccess_exclusive_access_codes" "this" {
  device_id       = "SCHLAGE"
  access_code_ids = []
}
resource "deviceaccess_webhook" "this" {
  url         = "https://example.com/a"
  event_types = EVENTS
}
resource "deviceaccess_connect_webview" "this" {
  excluded_providers = ["sandbox"]
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
output "codes" {
  value     = [data.deviceaccess_access_codes.august, data.deviceaccess_unmanaged_access_codes.august, deviceaccess_webhook.this]
  sensitive = true
}
`))
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
	plan, _, cut := strings.Cut(j.read("show", "-json", "plan"), `"configuration":`) // which repeats what is written in main.tf
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
	ids["webhook"], ids["webview"] = hooks.Webhooks[0].WebhookID, invitations(j.t, j.srv)[0].ConnectWebviewID
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
	for _, taken := range []desired{
		{d.set, d.code, d.setWO, d.codeWO, "9", d.events},
		{j.pin() + "03", j.pin() + "0303", j.pin() + "030303", j.pin() + "030303", "9", d.events}, // longer than the locks take
	} {
		before := refused()
		j.everything(taken)
		j.expect(false, "apply", "-auto-approve")
		if n := refused() - before; n < 4 {
			j.t.Errorf("%d of 4 PINs are refused by the server", n)
		}
	}
}

// imports forgets what there is, and imports it. An import knows no configuration, so it reads PINs that are written only, too,
// as the documentation says: the apply after it takes them out of the state.
func (j *journey) imports() {
	j.t.Helper()
	ids := j.ids()
	for _, one := range [][2]string{
		{"access_code.kept", ids["Guest on August"]}, {"access_code.written", j.locks[1] + "/" + ids["Neighbour on Yale"]},
		{"access_code_set.kept", j.locks[0] + "/" + ids["Nanny on August"] + "," + j.locks[1] + "/" + ids["Nanny on Yale"]},
		{"access_code_set.written", j.locks[1] + "/" + ids["Family on Yale"]},
		{"exclusive_access_codes.this", j.locks[2]}, {"webhook.this", ids["webhook"]}, {"connect_webview.this", ids["webview"]},
	} {
		j.expect(true, "state", "rm", "deviceaccess_"+one[0])
		j.expect(true, "import", "deviceaccess_"+one[0], one[1])
	}
	if found := j.written.Find(j.plans()); len(found) != 2 {
		j.t.Errorf("an import reads %d of 2 PINs that are written only: see whether the documentation of code_wo has to say so", len(found))
	}
	j.expect(true, "apply", "plan")
}

// queries lists all that can be listed: by the command where it can, and by the protocol with every Terraform.
func (j *journey) queries() {
	j.t.Helper()
	p := startPlugin(j.t, map[string]string{"endpoint": j.srv.URL, "api_key": j.srv.APIKey})
	var blocks strings.Builder
	for typeName := range p.schemas.ListResourceSchemas {
		fmt.Fprintf(&blocks, "list %q \"all\" {\n  provider         = deviceaccess\n  include_resource = true\n}\n", typeName)
		log := &bytes.Buffer{}
		ctx := tflogtest.RootLogger(tfsdklogtest.RootLogger(j.t.Context(), log), log)
		stream, err := p.server.(tfprotov6.ListResourceServer).ListResource(ctx, &tfprotov6.ListResourceRequest{TypeName: typeName, IncludeResource: true, Limit: 100, Config: p.listConfig(typeName, nil)})
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

// tests runs a test of a module that shows all there is, and fails.
func (j *journey) tests() {
	j.t.Helper()
	w := newWorkspace(j.t, map[string]string{"versions.tf": required, "provider.tf": onServer(j.srv, ""),
		"main.tf": accessCodeOn(j.locks[0], fmt.Sprintf("name = \"Tester\"\n  code = %q", j.pin())) + webhook("https://example.com/b", "") + invite("") +
			strings.Replace(codeSet(writtenOnly(j.pin(), 1), j.locks[1]), "Nanny", "Tester", 1),
		"all.tftest.hcl": "run \"all\" {\n  assert {\n    condition     = deviceaccess_access_code.front.code == deviceaccess_webhook.hook.secret\n    error_message = \"They differ.\"\n  }\n}\n",
	})
	w.expect(false, "test", "-verbose")
	if said := w.seen.String(); !strings.Contains(said, "They differ.") || !strings.Contains(said, "1 failed") {
		j.t.Error("the test of the module fails in another way than it is to")
	}
	j.seen.Write(w.seen.Bytes())
}

// All that Terraform writes at its fullest, whatever is done with whatever the provider has, tells no PIN, secret, key or
// address that lets in. A type that the provider gets is to be added to the journey.
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
		others["what the list of "+typeName+" logs and shows"] = log.Bytes()
	}
	j.run.Judge(t, j.srv.App, others)
}
