package app_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// offeredVendors are vendors with all kinds of logins, under names that the API knows.
func offeredVendors() []adapter.Vendor {
	fields := []login.Field{{Name: "key", Label: "API key", Kind: "password"}}
	redirect := &adapter.OAuth{
		AuthorizeURL: "https://vendor.example/authorize",
		TokenURL:     "https://vendor.example/token",
	}
	const usage = "connect an account"
	all := []adapter.Vendor{
		{Name: "august", Usage: usage, Login: &adapter.Login{Fields: fields}},
		{Name: "igloohome", Usage: usage}, // on the command line only
		{Name: "kwikset", Usage: usage, Login: &adapter.Login{Fields: fields}, NeedsClient: true},
		{Name: "nuki", Login: &adapter.Login{Fields: fields, OAuth: redirect}},
		{Name: "schlage", Login: &adapter.Login{OAuth: redirect}}, // on the vendor's pages only
		{Name: "tedee", Usage: usage, Login: &adapter.Login{OAuth: redirect}},
		{Name: "zwave_js", Usage: usage, Login: &adapter.Login{Fields: fields}, EntersAddress: true},
	}
	for i := range all {
		all[i].Adapter, all[i].DisplayName = all[i].Name, strings.ToUpper(all[i].Name)
		all[i].Accepts, all[i].Categories = []string{adapter.Locks}, []string{adapter.CategoryStable}
		all[i].New = func() adapter.Connection { return &refusingConnection{name: all[i].Name} }
	}
	return all
}

// refusingConnection fails when it is checked.
type refusingConnection struct {
	adapter.Connection
	name string
}

func (c *refusingConnection) Adapter() string { return c.name }

func (c *refusingConnection) Address() string { return c.name }

var errChecked = errors.New("checked")

func (c *refusingConnection) Check(context.Context, adapter.Env) (adapter.Checked, error) {
	return adapter.Checked{}, errChecked
}

// The API lists what people can connect on pages or commands. Pages and commands offer nothing else.
func TestOffers_ApiPageAndCommandsAgree(t *testing.T) {
	t.Parallel()
	clients := map[string]adapter.Client{}
	for _, v := range offeredVendors() {
		clients[v.Adapter] = adapter.Client{ID: "our-id"}
	}
	for name, c := range map[string]struct {
		connecting             app.Connecting
		listed, page, commands []string
	}{
		"without clients": {
			listed:   []string{"august", "igloohome", "nuki", "tedee", "zwave_js"},
			page:     []string{"august", "nuki"},
			commands: []string{"august", "igloohome", "tedee", "zwave_js"},
		},
		"with clients and gateways": {
			connecting: app.Connecting{Clients: clients, Gateways: true},
			listed:     []string{"august", "igloohome", "kwikset", "nuki", "schlage", "tedee", "zwave_js"},
			page:       []string{"august", "kwikset", "nuki", "schlage", "tedee", "zwave_js"},
			commands:   []string{"august", "igloohome", "kwikset", "tedee", "zwave_js"},
		},
	} {
		c.connecting.Vendors = offeredVendors()
		s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(c.connecting))
		key := realWorkspace(t, s)
		var listed api.DeviceProvidersResponse
		s.PostAs(t, key, "/devices/list_device_providers", map[string]any{}, &listed)
		var names []string
		for _, p := range listed.DeviceProviders {
			names = append(names, p.DeviceProviderName)
		}
		if !slices.Equal(names, c.listed) {
			t.Errorf("%s, the API lists %q, want %q", name, names, c.listed)
		}
		if page := choices(t, s, key); !slices.Equal(page, c.page) {
			t.Errorf("%s, the page offers %q, want %q", name, page, c.page)
		}
		var commands []string
		admin := app.Admin{Access: s.App.Access, Connecting: c.connecting}
		for _, v := range c.connecting.Vendors {
			_, err := admin.Connect(t.Context(), uuid.New(), "", v.New())
			switch {
			case v.Usage == "": // there is no command
			case errors.Is(err, errChecked):
				commands = append(commands, v.Name)
			case !strings.Contains(err.Error(), "--vendor-client "+v.Adapter+"=ID"):
				t.Errorf("%s, %s: %v", name, v.Name, err)
			}
		}
		if !slices.Equal(commands, c.commands) {
			t.Errorf("%s, commands connect %q, want %q", name, commands, c.commands)
		}
	}
}

// choices returns the vendors that a page offers.
func choices(t *testing.T, s *apptest.Server, key string) (names []string) {
	t.Helper()
	var page api.ConnectWebviewResponse
	if status := s.PostAs(t, key, "/connect_webviews/create", map[string]any{}, &page); status != http.StatusOK {
		t.Fatalf("create a webview: %d", status)
	}
	res, err := http.Get(page.ConnectWebview.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`<li><a href="[^"]*/(\w+)"`).FindAllStringSubmatch(string(body), -1) {
		names = append(names, found[1])
	}
	return names
}
