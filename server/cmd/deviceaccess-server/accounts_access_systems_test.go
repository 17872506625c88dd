package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// Accounts of simulated and of a vendor's access systems can be connected and disconnected while the server runs.
func TestAccessSystemsAreConnected(t *testing.T) {
	t.Parallel()
	box := sandbox.New(sandbox.Options{Seed: 12, Speed: 50})
	t.Cleanup(box.Close)
	made, err := box.EnsureAccessAccount(sandbox.AccessSpec{Key: "offices"})
	if err != nil {
		t.Fatal(err)
	}
	vendor := httptest.NewServer(box.Handler())
	t.Cleanup(vendor.Close)

	p := newProgram(t)
	r, _ := p.serve()
	systems := func(key, account string) (n int) {
		t.Helper()
		var out struct {
			Systems []struct {
				Account string `json:"connected_account_id"`
				Users   int    `json:"acs_user_count"`
			} `json:"acs_systems"`
		}
		if status := p.post(r, key, "/acs/systems/list", "{}", &out); status != http.StatusOK {
			t.Fatalf("list the access systems: %d", status)
		}
		for _, s := range out.Systems {
			if s.Account == account && s.Users == 2 {
				n++
			}
		}
		return n
	}
	simulated := p.ok("sandbox", "connect-access-systems", "--systems", "2")
	p.until("the simulated access systems", func() bool { return systems(r.APIKey, simulated) == 2 })
	if _, err := p.run(
		"sandbox",
		"connect-access-systems",
		"--systems",
		"0",
	); err == nil ||
		!strings.Contains(err.Error(), "1 to 100") {
		t.Errorf("no systems: %v", err)
	}

	workspace := p.ok("workspaces", "create", "Home")
	key := p.ok("keys", "create", "--workspace", workspace)
	token := p.file("token", made.Token+"\n")
	if _, err := p.run(
		"accounts",
		"connect",
		"accesscloud",
		"--url",
		vendor.URL,
		"--token-file",
		p.file("wrong", "wrong"),
	); err == nil {
		t.Error("a wrong token is taken")
	}
	account := p.ok("accounts", "connect", "accesscloud", "--url", vendor.URL, "--token-file", token)
	p.until("the vendor's access system", func() bool { return systems(key, account) == 1 })
	p.ok("accounts", "disconnect", "--yes", account)
	p.until("its end", func() bool { return systems(key, account) == 0 })
	if n := systems(r.APIKey, simulated); n != 2 {
		t.Errorf("%d simulated systems are left", n)
	}
}
