package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const (
	otherDevice = "33333333-2222-4222-8222-222222222222"
	longPIN     = "864297531246"
)

// listed are the values of an attribute of the resources in a listing, or of its identities, in order.
func (p *plugin) listed(typeName, attribute string, results []tfprotov6.ListResourceResult) []string {
	p.t.Helper()
	var values []string
	for _, result := range results {
		p.allow(result.Diagnostics)
		value := p.names(typeName, result.Identity)[attribute]
		if result.Resource != nil {
			value = p.state(typeName, result.Resource)[attribute]
		}
		values = append(values, value)
	}
	slices.Sort(values)
	return values
}

// twoLocks has three codes on one lock and one on another.
func twoLocks(t *testing.T) *fake {
	f := startFake(t)
	f.devices = []map[string]any{
		{"device_id": fakeDevice, "display_name": "Front door", "device_type": "august_lock"},
		{"device_id": otherDevice, "display_name": "Back door", "device_type": "august_lock"},
	}
	f.unmanaged(fakeCode{name: "Plumber", code: longPIN})
	f.unmanaged(fakeCode{name: "Gardener", code: longPIN})
	f.unmanaged(fakeCode{name: "Nanny", code: longPIN, managed: true})
	back := f.unmanaged(fakeCode{name: "Cleaner", code: longPIN})
	f.codes[back].device = otherDevice
	return f
}

func TestListOfAccessCodesIsWhatWasAskedForOnAllPages(t *testing.T) {
	t.Parallel()
	locks := tftypes.NewValue(
		tftypes.List{ElementType: tftypes.String},
		[]tftypes.Value{text(otherDevice), text(fakeDevice), text(otherDevice)},
	)
	cases := map[string]struct {
		config map[string]tftypes.Value
		limit  int64
		want   []string
	}{
		"all locks": {nil, 100, []string{"Cleaner", "Gardener", "Nanny", "Plumber"}},
		"one lock": {
			map[string]tftypes.Value{"device_id": text(fakeDevice)},
			100,
			[]string{"Gardener", "Nanny", "Plumber"},
		},
		"some locks": {
			map[string]tftypes.Value{"device_ids": locks},
			100,
			[]string{"Cleaner", "Gardener", "Nanny", "Plumber"},
		},
		"managed only": {map[string]tftypes.Value{"management": text("managed")}, 100, []string{"Nanny"}},
		"unmanaged only": {
			map[string]tftypes.Value{"management": text("unmanaged")},
			100,
			[]string{"Cleaner", "Gardener", "Plumber"},
		},
		"no more than two": {map[string]tftypes.Value{"management": text("managed")}, 1, []string{"Nanny"}},
	}
	for name, c := range cases {
		for kind, listsAllDevices := range map[string]bool{"": false, ", from a server that heeds no device_id": true} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				f := twoLocks(t)
				f.pageSize, f.listsAllDevices = 1, listsAllDevices
				p := f.plugin(t)
				request := &tfprotov6.ListResourceRequest{
					TypeName:        codeType,
					Config:          p.listConfig(codeType, c.config),
					IncludeResource: true,
					Limit:           c.limit,
				}
				if got := p.listed(codeType, "name", p.lists(request)); !slices.Equal(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
				f.expectWrites(t, "in the end")
			})
		}
	}
}

func TestListStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	f := twoLocks(t)
	f.pageSize = 1
	p := f.plugin(t)
	if got := p.lists(&tfprotov6.ListResourceRequest{TypeName: codeType, Limit: 2}); len(got) != 2 {
		t.Errorf("%d results", len(got))
	}
	if asked := f.count("/access_codes/list") + f.count("/access_codes/unmanaged/list"); asked > 3 {
		t.Errorf("asked for %d pages", asked)
	}
}

func TestListNamesWhatItListsAndTellsNoPIN(t *testing.T) {
	t.Parallel()
	f := twoLocks(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	p := f.plugin(t)
	codes := p.lists(&tfprotov6.ListResourceRequest{TypeName: codeType, IncludeResource: true})
	webhooks := p.lists(&tfprotov6.ListResourceRequest{TypeName: webhookType, IncludeResource: true})
	if pins := p.listed(codeType, "code", codes); !slices.Equal(slices.Compact(pins), []string{""}) {
		t.Error("the listing tells PINs")
	}
	if secrets := p.listed(webhookType, "secret", webhooks); !slices.Equal(secrets, []string{""}) {
		t.Error("the listing tells secrets")
	}
	for _, result := range append(codes, webhooks...) {
		if seen := fmt.Sprintf(
			"%s %s %s",
			result.DisplayName,
			result.Resource.MsgPack,
			result.Identity.IdentityData.MsgPack,
		); strings.Contains(seen, longPIN) ||
			strings.Contains(seen, fakeSecret) {
			t.Errorf("%s tells its secret", result.DisplayName)
		}
	}
	var names []string
	for _, result := range append(codes, webhooks...) {
		names = append(names, result.DisplayName)
	}
	slices.Sort(names)
	if want := []string{
		"Cleaner on Back door (unmanaged)",
		"Gardener on Front door (unmanaged)",
		"Nanny on Front door",
		"Plumber on Front door (unmanaged)",
		"https://example.com/a",
	}; !slices.Equal(
		names,
		want,
	) {
		t.Errorf("%q", names)
	}
}

func TestListTellsCodesThatCannotBeAdoptedApart(t *testing.T) {
	t.Parallel()
	yes, no := tftypes.NewValue(tftypes.Bool, true), tftypes.NewValue(tftypes.Bool, false)
	const adoptable, stuck, own = "Plumber on Front door (unmanaged)",
		"Cleaner on Front door (unmanaged, cannot be adopted)", "Nanny on Front door"
	for name, c := range map[string]struct {
		config map[string]tftypes.Value
		want   []string
	}{
		"all":                 {nil, []string{stuck, own, adoptable}},
		"unmanaged":           {map[string]tftypes.Value{"management": text("unmanaged")}, []string{adoptable}},
		"that can be adopted": {map[string]tftypes.Value{"adoptable": yes}, []string{own, adoptable}},
		"that cannot":         {map[string]tftypes.Value{"adoptable": no}, []string{stuck}},
		"unmanaged, that cannot": {
			map[string]tftypes.Value{"adoptable": no, "management": text("unmanaged")},
			[]string{stuck},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			f.devices = []map[string]any{{"device_id": fakeDevice, "display_name": "Front door"}}
			f.unmanaged(fakeCode{name: "Plumber", code: longPIN})
			f.unmanaged(fakeCode{name: "Cleaner", code: longPIN, cannotBeManaged: true})
			f.unmanaged(fakeCode{name: "Nanny", code: longPIN, managed: true})
			p := f.plugin(t)
			var names []string
			for _, result := range p.lists(&tfprotov6.ListResourceRequest{
				TypeName: codeType, Config: p.listConfig(codeType, c.config), Limit: 100,
			}) {
				names = append(names, result.DisplayName)
			}
			if slices.Sort(names); !slices.Equal(names, c.want) {
				t.Errorf("%q, want %q", names, c.want)
			}
		})
	}
}

func TestListOfExclusiveCodesAllowsWhatIsOnTheLocks(t *testing.T) {
	t.Parallel()
	f := startCrowdedFake(t)
	f.lacks = nil
	thermostat := device("55555555-2222-4222-8222-222222222222", "ecobee_thermostat", map[string]any{})
	thermostat["capabilities_supported"] = []string{"thermostat"}
	f.devices = append(f.devices, thermostat)
	p := f.plugin(t)
	results := p.lists(&tfprotov6.ListResourceRequest{TypeName: exclusiveType, IncludeResource: true, Limit: 100})
	if got := p.listed(exclusiveType, "device_id", results); !slices.Equal(got, []string{lockA, lockB, lockC}) {
		t.Errorf("locks %q", got)
	}
	for _, result := range results {
		lock := p.state(exclusiveType, result.Resource)["device_id"]
		var ids []string
		for id, code := range f.codes {
			if code.device == lock {
				ids = append(ids, `"`+id+`"`)
			}
		}
		w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(exclusive(lock, ids...))})
		w.expect(true, "import", only, lock)
		if said := w.plain("plan"); strings.Contains(said, "will be deleted") {
			t.Errorf("%s: the first plan deletes codes: %s", result.DisplayName, said)
		}
		value, err := result.Resource.Unmarshal(p.stateType(exclusiveType))
		var attributes map[string]tftypes.Value
		var allowed []tftypes.Value
		if err != nil || value.As(&attributes) != nil || attributes["access_code_ids"].As(&allowed) != nil {
			t.Fatal("the resource cannot be read")
		}
		if len(allowed) != len(ids) {
			t.Errorf("%s: %d codes are allowed, want %d", result.DisplayName, len(allowed), len(ids))
		}
	}
	f.expectWrites(t, "in the end")
}

func TestServerListsLoginPagesWithoutTheirURLs(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	var created api.ConnectWebviewResponse
	srv.Post(t, "/connect_webviews/create", map[string]any{"customer_key": "42"}, &created)
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	const webview = "deviceaccess_connect_webview"
	results := p.lists(&tfprotov6.ListResourceRequest{TypeName: webview, IncludeResource: true, Limit: 100})
	id := created.ConnectWebview.ConnectWebviewID
	if !slices.Contains(p.listed(webview, "connect_webview_id", results), id) {
		t.Errorf("the page is not listed: %v", results)
	}
	for _, result := range results {
		if url := p.state(webview, result.Resource)["url"]; url != "" {
			t.Error("the listing tells URLs")
		}
		if p.names(webview, result.Identity)["connect_webview_id"] != id {
			continue
		}
		if want := id + " (pending, customer 42)"; result.DisplayName != want {
			t.Errorf("%q, want %q", result.DisplayName, want)
		}
		p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: webview, Identity: result.Identity})
	}
}

// Terraform 1.14 and newer ask for the configuration of what is imported, and leave out computed attributes that are
// null.
func TestGeneratedConfigurationHasNeitherDefaultsNorSecrets(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	p := f.plugin(t)
	plain := f.unmanaged(fakeCode{name: "Nanny", code: longPIN, managed: true})
	external := f.unmanaged(fakeCode{name: "Guest", code: longPIN, managed: true, external: true})
	yes := tftypes.NewValue(tftypes.Bool, true)
	for id, want := range map[string]map[string]tftypes.Value{
		plain:    {"device_id": text(fakeDevice), "name": text("Nanny")},
		external: {"device_id": text(fakeDevice), "name": text("Guest"), "is_external_modification_allowed": yes},
	} {
		generated, err := p.server.GenerateResourceConfig(t.Context(), &tfprotov6.GenerateResourceConfigRequest{
			TypeName: codeType, State: p.imported(codeType, fakeDevice+"/"+id).NewState,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.allow(generated.Diagnostics)
		config, err := generated.Config.Unmarshal(p.stateType(codeType))
		if err != nil {
			t.Fatal(err)
		}
		if wanted := object(p.stateType(codeType), want); !config.Equal(wanted) {
			diffs, _ := config.Diff(wanted)
			t.Errorf("it differs in %d attributes: %v", len(diffs), paths(diffs))
		}
	}
	for manages, want := range map[bool]any{true: nil, false: false} {
		const webview = "deviceaccess_connect_webview"
		generated, err := p.server.GenerateResourceConfig(t.Context(), &tfprotov6.GenerateResourceConfigRequest{
			TypeName: webview,
			State: p.pack(object(p.stateType(webview), map[string]tftypes.Value{
				"automatically_manage_new_devices": tftypes.NewValue(tftypes.Bool, manages),
				"wait_for_device_creation":         tftypes.NewValue(tftypes.Bool, false),
			})),
		})
		if err != nil {
			t.Fatal(err)
		}
		config, err := generated.Config.Unmarshal(p.stateType(webview))
		wanted := object(p.stateType(webview), map[string]tftypes.Value{
			"automatically_manage_new_devices": tftypes.NewValue(tftypes.Bool, want),
		})
		if err != nil || !config.Equal(wanted) {
			t.Errorf("automatically_manage_new_devices = %t is generated as %s (%v)", manages, config, err)
		}
	}
	if capabilities := p.schemas.ServerCapabilities; capabilities == nil || !capabilities.GenerateResourceConfig {
		t.Error("Terraform does not know that it can ask")
	}
}

// paths are where values differ, without the values.
func paths(diffs []tftypes.ValueDiff) (at []string) {
	for _, diff := range diffs {
		at = append(at, diff.Path.String())
	}
	return at
}

func TestWhatAListNamesCanBeImported(t *testing.T) {
	t.Parallel()
	f := twoLocks(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	p := f.plugin(t)
	for _, typeName := range []string{codeType, webhookType} {
		for _, result := range p.lists(&tfprotov6.ListResourceRequest{TypeName: typeName}) {
			if result.Resource != nil && p.state(typeName, result.Resource) != nil {
				t.Error("the resource comes without being asked for")
			}
			read := p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: typeName, Identity: result.Identity})
			expectNames(t, result.DisplayName, p.names(typeName, read.NewIdentity), p.names(typeName, result.Identity))
		}
	}
	f.expectWrites(t, "in the end")
}

func TestErrorsOfAListAreToldWithWhatToDo(t *testing.T) {
	t.Parallel()
	f := twoLocks(t)
	f.then("/access_codes/unmanaged/list", nil, answerError(404, "device_not_found", "Device not found"))
	p := f.plugin(t)
	results := p.lists(
		&tfprotov6.ListResourceRequest{
			TypeName: codeType,
			Config:   p.listConfig(codeType, map[string]tftypes.Value{"management": text("unmanaged")}),
		},
	)
	last := results[len(results)-1]
	if len(last.Diagnostics) != 1 || last.Diagnostics[0].Summary != "Could not list access codes" ||
		!strings.Contains(last.Diagnostics[0].Detail, "Device not found (HTTP 404") {
		t.Errorf("%v", last.Diagnostics)
	}
}

func TestServerListsAccessCodesAndWebhooks(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	device := srv.Device(t, "august")
	srv.Post(t, "/access_codes/create", map[string]any{"device_id": device, "name": "Nanny"}, nil)
	srv.Post(t, "/webhooks/create", map[string]any{"url": "https://example.com/a"}, nil)
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	var want []string
	for _, profile := range []string{"august", "yale"} {
		for _, code := range srv.UnmanagedCodes(t, srv.Device(t, profile)) {
			want = append(want, code.AccessCodeID)
		}
	}
	var managed api.AccessCodesResponse
	srv.Post(t, "/access_codes/list", map[string]any{"device_id": device}, &managed)
	want = append(want, managed.AccessCodes[0].AccessCodeID)
	slices.Sort(want)
	if got := p.listed(
		codeType,
		"access_code_id",
		p.lists(&tfprotov6.ListResourceRequest{TypeName: codeType}),
	); !slices.Equal(
		got,
		want,
	) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := p.listed(
		webhookType,
		"url",
		p.lists(&tfprotov6.ListResourceRequest{TypeName: webhookType, IncludeResource: true}),
	); !slices.Equal(
		got,
		[]string{"https://example.com/a"},
	) {
		t.Errorf("%q", got)
	}
}

// pagedList is a data source whose list comes in pages.
type pagedList struct {
	typeName, path string
	records, id    string // of the answer, and of the data source
}

var pagedLists = []pagedList{
	{"deviceaccess_acs_users", "/acs/users/list", "acs_users", "acs_user_id"},
	{"deviceaccess_connected_accounts", "/connected_accounts/list", "connected_accounts", "connected_account_id"},
	{"deviceaccess_devices", "/devices/list", "devices", "device_id"},
	{"deviceaccess_access_codes", "/access_codes/list", "access_codes", "access_code_id"},
	{"deviceaccess_unmanaged_access_codes", "/access_codes/unmanaged/list", "access_codes", "access_code_id"},
}

// settings are what a list of that lock needs to be told.
func (l pagedList) settings(device string) map[string]string {
	if strings.HasPrefix(l.path, "/access_codes/") {
		return map[string]string{"device_id": device}
	}
	return nil
}

func (l pagedList) block(device string) string {
	var lines strings.Builder
	for name, value := range l.settings(device) {
		fmt.Fprintf(&lines, "  %s = %q\n", name, value)
	}
	return fmt.Sprintf("data %q \"these\" {\n%s}\n", l.typeName, lines.String())
}

// narrow is the server behind a proxy that has it put two records on a page at most, and how many pages of each list it
// was asked for.
func narrow(t *testing.T, srv *apptest.Server) (address string, pages func(path string) int) {
	t.Helper()
	behind, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]int{}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		if !strings.HasSuffix(r.In.URL.Path, "/list") {
			return
		}
		mu.Lock()
		asked[r.In.URL.Path]++
		mu.Unlock()
		body := map[string]any{}
		if err := json.NewDecoder(r.In.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		body["limit"] = 2
		less, err := json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(less)), int64(len(less))
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL, func(path string) int {
		mu.Lock()
		defer mu.Unlock()
		return asked[path]
	}
}

func TestServerListsAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"), apptest.WithLocks(5))
	device, system := srv.Device(t, "august"), srv.AccessSystem(t)
	does := func(path string, body map[string]any) {
		t.Helper()
		if status := srv.Post(t, path, body, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	for i := range 5 {
		does(
			"/acs/users/create",
			map[string]any{
				"acs_system_id": system.ID,
				"full_name":     fmt.Sprint("Person ", i),
				"email_address": fmt.Sprintf("p%d@example.com", i),
			},
		)
		does("/access_codes/create", map[string]any{"device_id": device, "name": fmt.Sprint("Guest ", i)})
		does(
			"/access_codes/simulate/create_unmanaged_access_code",
			map[string]any{"device_id": device, "name": fmt.Sprint("Friend ", i), "code": fmt.Sprint(73910 + i*7)},
		)
	}
	srv.AccessSystem(t)
	srv.AccessSystem(t)
	address, pages := narrow(t, srv)
	config := fmt.Sprintf("provider \"deviceaccess\" {\n  endpoint = %q\n  api_key = %q\n}\n", address, srv.APIKey)
	for _, l := range pagedLists {
		config += strings.Replace(l.block(device), `"these"`, `"`+l.typeName+`"`, 1)
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{{Config: config, Check: func(s *terraform.State) error {
		for _, l := range pagedLists {
			var want []string
			var all map[string]any
			body := map[string]any{}
			for name, value := range l.settings(device) {
				body[name] = value
			}
			srv.Post(t, l.path, body, &all)
			for _, record := range all[l.records].([]any) {
				want = append(want, record.(map[string]any)[l.id].(string))
			}
			got := []string{}
			attributes := s.RootModule().Resources["data."+l.typeName+"."+l.typeName].Primary.Attributes
			for i := range want {
				got = append(got, attributes[fmt.Sprintf("%s.%d.%s", l.records, i, l.id)])
			}
			if n := attributes[l.records+".#"]; !slices.Equal(got, want) || n != fmt.Sprint(len(want)) {
				return fmt.Errorf("%s: %s records %q, want %q", l.typeName, n, got, want)
			}
			if len(want) < 3 || pages(l.path) < 2 {
				return fmt.Errorf("%s: %d records on %d pages do not try it", l.typeName, len(want), pages(l.path))
			}
		}
		return nil
	}}}})
}

// page answers a page of a list without records, after which there is the one at the cursor.
func (l pagedList) page(next string) http.HandlerFunc {
	return answer(
		map[string]any{
			l.records:    []any{},
			"pagination": map[string]any{"has_next_page": true, "next_page_cursor": next, "next_page_url": nil},
		},
	)
}

func TestListsThatCannotBeReadToTheirEndAreErrors(t *testing.T) {
	for _, l := range pagedLists {
		for name, c := range map[string]struct {
			second  http.HandlerFunc
			problem []string
		}{
			"the same page again":   {l.page("again"), []string{"Error: Could not list ", `repeats the page at cursor "again"`}},
			"a page it has not":     {answerError(http.StatusBadRequest, "mismatched_page_parameters", "The cursor belongs to another list"), []string{"Error: Could not list ", "belongs to another list"}},
			"a page without a list": {answer(map[string]any{}), []string{"Error: Could not list ", "has no \"" + l.records + "\""}},
		} {
			t.Run(l.typeName+", "+name, func(t *testing.T) {
				f := startFake(t)
				for range 5 { // as often as Terraform reads it
					f.then(l.path, l.page("again"), c.second)
				}
				run(
					t,
					resource.TestCase{
						Steps: []resource.TestStep{
							{Config: f.config(l.block(fakeDevice)), ExpectError: says(c.problem...)},
						},
					},
				)
			})
		}
	}
}

func TestListsEndWhenTerraformIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, l := range pagedLists {
		t.Run(l.typeName, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			ctx, interrupt := context.WithCancel(t.Context())
			f.then(l.path, l.page("more"), func(w http.ResponseWriter, r *http.Request) {
				interrupt()
				l.page("yet more")(w, r)
			})
			p := f.plugin(t)
			settings := map[string]tftypes.Value{}
			for name, value := range l.settings(fakeDevice) {
				settings[name] = text(value)
			}
			read, err := p.server.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{
				TypeName: l.typeName,
				Config:   p.pack(object(p.schemas.DataSourceSchemas[l.typeName].ValueType(), settings)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(read.Diagnostics) != 1 ||
				!strings.Contains(read.Diagnostics[0].Detail, "Terraform was interrupted") {
				t.Errorf("diagnostics: %+v", read.Diagnostics)
			}
			if n := f.count(l.path); n != 2 {
				t.Errorf("%d pages were asked for", n)
			}
		})
	}
}

func TestEachResourceHasAListResource(t *testing.T) {
	t.Parallel()
	schemas := providerSchemas(t)
	for typeName := range schemas.ResourceSchemas {
		// The server cannot list shared codes.
		if _, listed := schemas.ListResourceSchemas[typeName]; listed == (typeName == setType) {
			t.Errorf("%s has a list resource: %t", typeName, listed)
		}
	}
}
