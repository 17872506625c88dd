package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// cloud starts a vendor's cloud with one lock.
func cloud(t *testing.T) (url, token string) {
	t.Helper()
	box := sandbox.New(sandbox.Options{Seed: 11, Speed: 50})
	t.Cleanup(box.Close)
	made, err := box.EnsureAccount(sandbox.AccountSpec{Key: "home", Profiles: []string{"august"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(box.Handler())
	t.Cleanup(server.Close)
	return server.URL, made.Token
}

func (p *program) file(name, content string) string {
	p.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		p.Fatal(err)
	}
	return path
}

func TestAccounts_ConnectUpdateDisconnect(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	url, token := cloud(t)
	secret := p.file("token", token+"\n")
	r, _ := p.serve()
	if _, err := p.run(
		"accounts",
		"connect",
		"devicecloud",
		"--url",
		url,
		"--token-file",
		secret,
	); err == nil ||
		!strings.Contains(err.Error(), "workspaces create") {
		t.Errorf("without a workspace for real locks: %v", err)
	}
	workspace := p.ok("workspaces", "create", "Home")
	key := p.ok("keys", "create", "--workspace", workspace)
	account := p.ok("accounts", "connect", "devicecloud", "--url", url, "--token-file", secret, "--name", "My cloud")
	devices := func() (n int) {
		var out struct {
			Devices []struct {
				Account string `json:"connected_account_id"`
			} `json:"devices"`
		}
		if status := p.post(r, key, "/devices/list", "{}", &out); status != http.StatusOK {
			t.Fatalf("list the devices: %d", status)
		}
		for _, d := range out.Devices {
			if d.Account != account {
				t.Errorf("a device of account %s, want %s", d.Account, account)
			}
		}
		return len(out.Devices)
	}
	p.until("the running server shows the lock", func() bool { return devices() == 1 })
	list := p.ok("accounts", "list")
	if !strings.Contains(list, "My cloud") || !strings.Contains(list, url) || strings.Contains(list, token) {
		t.Errorf("the list has no name or address, or the token:\n%s", strings.ReplaceAll(list, token, "<token>"))
	}
	if _, err := p.run(
		"accounts",
		"connect",
		"devicecloud",
		"--url",
		url+"/",
		"--token-file",
		secret,
	); err == nil ||
		!strings.Contains(err.Error(), account) {
		t.Errorf("the same cloud again: %v", err)
	}
	if _, err := p.run(
		"accounts",
		"update",
		"--token-file",
		p.file("bad", "wrong"),
		account,
	); err == nil ||
		!strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a wrong token: %v", err)
	}
	if _, err := p.run(
		"accounts",
		"update",
		"--broker",
		"mqtt://localhost",
		account,
	); err == nil ||
		!strings.Contains(err.Error(), "--broker does not apply") {
		t.Errorf("a setting of another kind: %v", err)
	}
	p.ok("accounts", "update", "--name", "Our cloud", account)
	if list := p.ok("accounts", "list"); !strings.Contains(list, "Our cloud") || !strings.Contains(list, "connected") {
		t.Errorf("after the change:\n%s", list)
	}
	if _, err := p.run("accounts", "disconnect", account); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("without an answer: %v", err)
	}
	p.ok("accounts", "disconnect", "--yes", account)
	if n := devices(); n != 0 {
		t.Errorf("%d devices are left", n)
	}
	if list := p.ok("accounts", "list"); strings.Contains(list, account) {
		t.Errorf("it is still listed:\n%s", list)
	}
	if _, err := p.run(
		"accounts",
		"disconnect",
		"--yes",
		account,
	); err == nil ||
		!strings.Contains(err.Error(), "accounts list") {
		t.Errorf("again: %v", err)
	}
	account = p.ok("accounts", "connect", "devicecloud", "--url", url, "--token-file", secret)
	p.until("the lock is back", func() bool { return devices() == 1 })
}

func TestAccounts_ConnectWhileServerIsStopped(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	url, token := cloud(t)
	workspace := p.ok("workspaces", "create", "Home")
	key := p.ok("keys", "create", "--workspace", workspace)
	p.ok("accounts", "connect", "devicecloud", "--url", url, "--token-file", p.file("token", token))
	r, _ := p.serve()
	p.until("the lock appears", func() bool {
		var out struct {
			Devices []any `json:"devices"`
		}
		p.post(r, key, "/devices/list", "{}", &out)
		return len(out.Devices) == 1
	})
}

func TestAccountsConnect_ErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.ok("workspaces", "create", "Home")
	url, _ := cloud(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no kind":  {[]string{"connect"}, "zigbee2mqtt"},
		"no token": {[]string{"connect", "devicecloud", "--url", url}, "--token-file"},
		"wrong token": {
			[]string{"connect", "devicecloud", "--url", url, "--token-file", p.file("wrong", "nonsense")},
			"nothing was changed",
		},
		"no cloud": {
			[]string{"connect", "devicecloud", "--url", "http://127.0.0.1:1", "--token-file", p.file("any", "x")},
			"cannot be reached",
		},
		"no URL": {
			[]string{"connect", "devicecloud", "--url", "locks.example.com", "--token-file", p.file("one", "x")},
			"must look like",
		},
		"no file":             {[]string{"connect", "devicecloud", "--url", url, "--token-file", "/nowhere"}, "--token-file"},
		"no gateway":          {[]string{"connect", "zwavejs", "--url", "ws://127.0.0.1:1"}, "nothing was changed"},
		"no gateway's URL":    {[]string{"connect", "zwavejs", "--url", "http://127.0.0.1"}, "ws://host:3000"},
		"password in the URL": {[]string{"connect", "zwavejs", "--url", "ws://me:hidden@127.0.0.1"}, "--password-file"},
		"no user": {
			[]string{"connect", "zwavejs", "--url", "ws://127.0.0.1:1", "--password-file", p.file("password", "hidden")},
			"--username",
		},
		"no broker":       {[]string{"connect", "zigbee2mqtt", "--broker", "mqtt://127.0.0.1:1"}, "cannot be reached"},
		"no broker's URL": {[]string{"connect", "zigbee2mqtt", "--broker", "127.0.0.1:1883"}, "mqtts://host:8883"},
		"password in broker": {
			[]string{"connect", "zigbee2mqtt", "--broker", "mqtt://me:hidden@127.0.0.1"},
			"give them in their own settings",
		},
		"no topic": {
			[]string{"connect", "zigbee2mqtt", "--broker", "mqtt://127.0.0.1:1", "--topic", "home/#"},
			"base_topic",
		},
		"no such workspace": {
			[]string{"connect", "devicecloud", "--url", url, "--token-file", "-", "--workspace", "x"},
			"workspaces list",
		},
		"no id":      {[]string{"disconnect"}, "accounts list"},
		"no account": {[]string{"update", "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"}, "accounts list"},
	} {
		out, err := p.run(append([]string{"accounts"}, c.args...)...)
		text := out
		if err != nil {
			text += err.Error()
		}
		if (err == nil && name != "no kind") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v; expected a word on %q", name, err, c.want)
		}
		if strings.Contains(text, "hidden") {
			t.Errorf("%s: the password is shown", name)
		}
	}
	if list := p.ok("accounts", "list"); strings.Count(list, "\n") != 0 {
		t.Errorf("something was connected:\n%s", list)
	}
}
