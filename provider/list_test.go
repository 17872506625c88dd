package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

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
	locks := tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{text(otherDevice), text(fakeDevice), text(otherDevice)})
	cases := map[string]struct {
		config map[string]tftypes.Value
		limit  int64
		want   []string
	}{
		"all locks":        {nil, 100, []string{"Cleaner", "Gardener", "Nanny", "Plumber"}},
		"one lock":         {map[string]tftypes.Value{"device_id": text(fakeDevice)}, 100, []string{"Gardener", "Nanny", "Plumber"}},
		"some locks":       {map[string]tftypes.Value{"device_ids": locks}, 100, []string{"Cleaner", "Gardener", "Nanny", "Plumber"}},
		"managed only":     {map[string]tftypes.Value{"management": text("managed")}, 100, []string{"Nanny"}},
		"unmanaged only":   {map[string]tftypes.Value{"management": text("unmanaged")}, 100, []string{"Cleaner", "Gardener", "Plumber"}},
		"no more than two": {map[string]tftypes.Value{"management": text("managed")}, 1, []string{"Nanny"}},
	}
	for name, c := range cases {
		for kind, listsAllDevices := range map[string]bool{"": false, ", from a server that heeds no device_id": true} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				f := twoLocks(t)
				f.pageSize, f.listsAllDevices = 1, listsAllDevices
				p := f.plugin(t)
				request := &tfprotov6.ListResourceRequest{TypeName: codeType, Config: p.listConfig(codeType, c.config), IncludeResource: true, Limit: c.limit}
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
		if seen := fmt.Sprintf("%s %s %s", result.DisplayName, result.Resource.MsgPack, result.Identity.IdentityData.MsgPack); strings.Contains(seen, longPIN) || strings.Contains(seen, fakeSecret) {
			t.Errorf("%s tells its secret", result.DisplayName)
		}
	}
	var names []string
	for _, result := range append(codes, webhooks...) {
		names = append(names, result.DisplayName)
	}
	slices.Sort(names)
	if want := []string{"Cleaner on Back door (unmanaged)", "Gardener on Front door (unmanaged)", "Nanny on Front door", "Plumber on Front door (unmanaged)",
		"https://example.com/a"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
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
	results := p.lists(&tfprotov6.ListResourceRequest{TypeName: codeType, Config: p.listConfig(codeType, map[string]tftypes.Value{"management": text("unmanaged")})})
	last := results[len(results)-1]
	if len(last.Diagnostics) != 1 || last.Diagnostics[0].Summary != "List access codes" || !strings.Contains(last.Diagnostics[0].Detail, "Device not found (HTTP 404") {
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
	if got := p.listed(codeType, "access_code_id", p.lists(&tfprotov6.ListResourceRequest{TypeName: codeType})); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := p.listed(webhookType, "url", p.lists(&tfprotov6.ListResourceRequest{TypeName: webhookType, IncludeResource: true})); !slices.Equal(got, []string{"https://example.com/a"}) {
		t.Errorf("%q", got)
	}
}
