package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/registry"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

var update = flag.Bool("update", false, "write the table of vendors into the documentation")

const begin, end = "<!-- table of vendors: go test ./server/adapter/registry -update -->\n", "<!-- end of the table -->"

// The table of vendors in the documentation is that of the adapters.
func TestTable_IsFresh(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"../../../README.md",
		"../../../templates/guides/connecting-accounts.md",
		"../../../docs/guides/connecting-accounts.md",
	} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, found := strings.Cut(string(data), begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no table of vendors between %q and %q", name, begin, end)
		}
		fresh := before + begin + "\n" + registry.Table() + "\n" + end + after
		if fresh == string(data) {
			continue
		}
		if !*update {
			t.Errorf("%s has an old table of vendors: run go test ./server/adapter/registry -update", name)
			continue
		}
		if err := os.WriteFile(name, []byte(fresh), 0o644); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
	}
}

// Each vendor is complete.
func TestAll_VendorsAreComplete(t *testing.T) {
	t.Parallel()
	adapters, names := map[string]bool{}, map[string]bool{}
	for _, v := range registry.All() {
		c := v.New()
		switch {
		case v.Adapter == "" || adapters[v.Adapter] || c.Adapter() != v.Adapter:
			t.Errorf("the adapter %q is taken, or its connection is of %q", v.Adapter, c.Adapter())
		case v.Name == "" || names[v.Name] || v.DisplayName == "" || v.Simulated:
			t.Errorf("%s: the names are %q and %q", v.Adapter, v.Name, v.DisplayName)
		case len(v.Accepts) == 0 || len(v.Categories) < 2:
			t.Errorf("%s accepts %v, and is of the categories %v", v.Adapter, v.Accepts, v.Categories)
		case v.Verification.Level == adapter.Unverified || v.Verification.With+v.Verification.Date == "":
			t.Errorf("%s does not say what it was tested with", v.Adapter)
		}
		_, devices := c.(adapter.DeviceConnection)
		_, systems := c.(adapter.SystemConnection)
		if devices == systems || systems != v.IsAccessSystem() {
			t.Errorf("%s opens devices: %t, access systems: %t", v.Adapter, devices, systems)
		}
		if l := v.Login; l != nil {
			for _, field := range []string{l.AddressField, l.SecretField} {
				if field != "" && !slices.ContainsFunc(l.Fields, hasName(field)) {
					t.Errorf("%s: the login has no field %q", v.Adapter, field)
				}
			}
		}
		adapters[v.Adapter], names[v.Name] = true, true
	}
}

// A login replaces the configuration of an earlier one field by field. So the connections of all ways to log in store the
// same fields, also empty ones: no credential of another way survives.
func TestAll_LoginsReplaceEachOther(t *testing.T) {
	t.Parallel()
	for _, v := range registry.All() {
		if v.Login == nil || v.Login.OAuth == nil || len(v.Login.Fields) == 0 {
			continue
		}
		entered := map[string]string{}
		for _, f := range v.Login.Fields {
			entered[f.Name] = "entered"
		}
		byForm, err := v.Login.Connect(entered)
		if err != nil {
			t.Fatalf("%s: %v", v.Adapter, err)
		}
		byTokens, err := v.Login.OAuth.Connect(adapter.Tokens{Access: "access", Refresh: "refresh"})
		if err != nil {
			t.Fatalf("%s: %v", v.Adapter, err)
		}
		if a, b := storedFields(t, byForm), storedFields(t, byTokens); !slices.Equal(a, b) {
			t.Errorf("%s: the form stores %v, the vendor's pages store %v", v.Adapter, a, b)
		}
	}
}

// The guide of each vendor with its own login pages names the redirect address and the settings of the client.
func TestAll_GuidesNameRedirect(t *testing.T) {
	t.Parallel()
	for _, v := range registry.All() {
		if v.Login == nil || v.Login.OAuth == nil {
			continue
		}
		text, err := os.ReadFile("../../docs/connect-" + v.Adapter + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"PUBLIC_URL/connect/back/" + v.Adapter, "--vendor-client " + v.Adapter + "=",
			"--vendor-client-secret-file " + v.Adapter + "=", "(settings.md)",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("server/docs/connect-%s.md does not name %s", v.Adapter, want)
			}
		}
	}
}

// storedFields returns the names of the fields that an account stores.
func storedFields(t *testing.T, c adapter.Connection) []string {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(fields))
}

// Accounts of vendors over HTTP can be checked and recorded: they open without a push URL, and all calls pass through
// Env.Transport.
func TestAll_CallsPassThroughEnvTransport(t *testing.T) {
	t.Parallel()
	for _, v := range registry.All() {
		c := v.New()
		if _, gateway := c.(adapter.Stranger); gateway {
			continue
		}
		var calls atomic.Int32
		env := adapter.Env{
			Log:     slog.New(slog.DiscardHandler),
			Secrets: loggedIn{},
			Budget:  adapter.Unlimited{},
			Transport: func(http.RoundTripper) http.RoundTripper {
				return countAndRefuse{&calls}
			},
		}
		if err := readOnce(t.Context(), c, env); err == nil || calls.Load() == 0 {
			t.Errorf("%s reads its devices with %d calls of Env.Transport, %v", v.Adapter, calls.Load(), err)
		}
	}
}

// readOnce opens a connection and lists what it has.
func readOnce(ctx context.Context, c adapter.Connection, env adapter.Env) error {
	if s, ok := c.(adapter.SystemConnection); ok {
		a, err := s.OpenSystems(ctx, env)
		if err != nil {
			return err
		}
		_, err = a.Systems(ctx)
		return errors.Join(err, a.Close())
	}
	a, err := c.(adapter.DeviceConnection).Open(ctx, env)
	if err != nil {
		return err
	}
	_, err = a.Devices(ctx)
	return errors.Join(err, a.Close())
}

// loggedIn holds tokens that do not expire.
type loggedIn struct{}

func (loggedIn) Load(_ context.Context, name string) ([]byte, error) {
	if name == adapter.CredentialsSecret {
		return []byte(`{"access":"x","refresh":"y"}`), nil
	}
	return nil, nil
}

func (loggedIn) Store(context.Context, string, []byte) error { return nil }

func (loggedIn) Rotate(ctx context.Context, _ string, seen []byte, renew adapter.Renew) ([]byte, error) {
	return renew(ctx, seen)
}

type countAndRefuse struct{ calls *atomic.Int32 }

func (c countAndRefuse) RoundTrip(*http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return nil, errors.New("refused by the test")
}

func hasName(name string) func(login.Field) bool {
	return func(f login.Field) bool { return f.Name == name }
}
