package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// watchedCloud is a vendor's cloud with two locks and with access systems.
type watchedCloud struct {
	url            string
	locks, systems string // tokens
	refs           []string

	mu    sync.Mutex
	wrote []string // requests that are not GET
}

func newWatchedCloud(t *testing.T) *watchedCloud {
	t.Helper()
	box := sandbox.New(sandbox.Options{Seed: 11, Speed: 50})
	t.Cleanup(box.Close)
	locks, err := box.EnsureAccount(sandbox.AccountSpec{Key: "home", Profiles: []string{"august", "tedee"}})
	if err != nil {
		t.Fatal(err)
	}
	systems, err := box.EnsureAccessAccount(sandbox.AccessSpec{Key: "office"})
	if err != nil {
		t.Fatal(err)
	}
	w := &watchedCloud{locks: locks.Token, systems: systems.Token}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.mu.Lock()
			w.wrote = append(w.wrote, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		box.Handler().ServeHTTP(out, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	a := devicecloud.New(devicecloud.Config{BaseURL: w.url, Token: w.locks})
	defer a.Close()
	for _, l := range locks.Locks {
		w.refs = append(w.refs, l.ID)
	}
	if _, err := a.AddCode(t.Context(), adapter.DeviceRef(w.refs[0]), "Zdravko", "739151", ""); err != nil {
		t.Fatal(err)
	}
	w.writes()
	return w
}

// writes returns the requests since the last call that are not GET.
func (w *watchedCloud) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.wrote
	w.wrote = nil
	return out
}

// An account is checked without a write, before and while a server runs. The recording contains no secret.
func TestAccountsCheck(t *testing.T) {
	t.Parallel()
	w := newWatchedCloud(t)
	p := newProgram(t)
	workspace := p.ok("workspaces", "create", "Home")
	account := p.ok("accounts", "connect", "devicecloud", "--url", w.url, "--token-file", p.file("token", w.locks))
	offices := p.ok("accounts", "connect", "accesscloud", "--url", w.url, "--token-file", p.file("office", w.systems))

	if list := p.ok(
		"accounts",
		"list",
	); !regexp.MustCompile(`(?s)DEVICES +CALLS +STATE.* 0 +- +connected`).
		MatchString(list) {
		t.Errorf("the list has no column of calls:\n%s", list)
	}
	recorded := filepath.Join(p.dir, "recorded")
	out := p.ok("accounts", "check", "--record", recorded, account)
	for _, want := range []string{
		`ok +login +the vendor answers at http://127`, `ok +devices +2, 2 online`,
		`ok +capabilities of ` + w.refs[0] + ` +lock, unlock, .*online codes`, `ok +codes of ` + w.refs[0] + ` +[1-9]\n`,
		`ok +codes of ` + w.refs[1] + ` +[1-9]\n`, `ok +pushes +no subscription is stored`, `ok +calls +3\n`,
		`ok +tested +against a simulation`,
	} {
		if !regexp.MustCompile(want).MatchString(out + "\n") {
			t.Errorf("the check does not print %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "739151") || strings.Contains(out, "Zdravko") || strings.Contains(out, w.locks) {
		t.Error("the check prints a PIN, a name, or the token")
	}
	files, err := os.ReadDir(recorded)
	if err != nil || len(files) != 3 {
		t.Errorf("%d files are recorded, %v", len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(recorded, f.Name())) //nolint:gosec // a file of this test
		if err != nil || regexp.MustCompile("739151|Zdravko|"+w.locks+"|"+w.refs[0]).Match(data) {
			t.Errorf("%s contains a secret, or %v", f.Name(), err)
		}
	}
	if out := p.ok("accounts", "check", offices); !regexp.MustCompile(`ok +content of \S+ +2 users`).MatchString(out) {
		t.Errorf("access systems:\n%s", out)
	}
	if wrote := w.writes(); len(wrote) != 0 {
		t.Errorf("the checks write: %v", wrote)
	}

	p.serve()
	if out := p.ok("accounts", "allow-writes", account); out != "Changed "+account {
		t.Errorf("allow-writes: %s", out)
	}
	log := p.ok("audit", "--workspace", workspace)
	if !strings.Contains(log, "accounts allow-writes") || strings.Contains(log, "accounts check") {
		t.Errorf("the audit log has no change of the account, or a check:\n%s", log)
	}
	if out := p.ok("accounts", "check", "--devices", "1", account); !strings.Contains(out, "1 more") {
		t.Errorf("with one device:\n%s", out)
	}
}

// A check that fails says what to do.
func TestAccountsCheck_Failures(t *testing.T) {
	t.Parallel()
	w := newWatchedCloud(t)
	p := newProgram(t)
	p.ok("workspaces", "create", "Home")
	account := p.ok("accounts", "connect", "devicecloud", "--url", w.url, "--token-file", p.file("token", w.locks))
	gateway := p.ok("accounts", "connect", "zwavejs", "--url", fakeZWave(t, &door{}, ""))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no id":       {nil, "accounts list"},
		"no devices":  {[]string{"--devices", "0", account}, "at least 1"},
		"used":        {[]string{"--record", p.dir, account}, "not empty"},
		"a gateway":   {[]string{"--record", filepath.Join(p.dir, "new"), gateway}, "not supported for zwavejs"},
		"no such one": {[]string{"0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"}, "accounts list"},
	} {
		if _, err := p.run(append([]string{"accounts", "check"}, c.args...)...); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; expected a word on %q", name, err, c.want)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/sandbox/account/revoke", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.locks)
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("revoke the login: %v, %v", res, err)
	}
	res.Body.Close()
	out, err := p.run("accounts", "check", account)
	if err == nil || !regexp.MustCompile(`failed +login .*accounts update `+account).MatchString(out) {
		t.Errorf("a revoked login: %v\n%s", err, out)
	}
}
