package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// times returns the number of successful logins.
func (d *door) times() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entered
}

// connectOnPage connects a zwave-js-server on a connect page and returns the account.
func (p *program) connectOnPage(r ready, key, address string, d *door) string {
	p.Helper()
	var page struct {
		Webview struct {
			ID      string `json:"connect_webview_id"`
			URL     string `json:"url"`
			Account string `json:"connected_account_id"`
		} `json:"connect_webview"`
	}
	if status := p.post(r, key, "/connect_webviews/create", "{}", &page); status != http.StatusOK {
		p.Fatalf("create a webview: %d", status)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(
		page.Webview.URL+"/zwave_js",
		url.Values{"url": {address}, "username": {d.user}, "password": {d.password}},
	)
	if err != nil {
		p.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		p.Fatalf("log in on the page: %d", res.StatusCode)
	}
	p.post(r, key, "/connect_webviews/get", `{"connect_webview_id":"`+page.Webview.ID+`"}`, &page)
	return page.Webview.Account
}

// Changing the name or credential of an account from a connect page does not lift the limits on its address. Only
// setting an address does.
func TestAccountsUpdate_KeepsLimitsOfConnectPages(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	d := &door{user: "jane", password: "entered-secret"}
	address := fakeZWave(t, d, "")
	workspace := p.ok("workspaces", "create", "Home")
	key := p.ok("keys", "create", "--workspace", workspace)
	r, cmd := p.serve("--connect-gateways", "--allow-gateway-prefix", "127.0.0.0/8")
	account := p.connectOnPage(r, key, address, d)
	p.stop(cmd)

	before := d.times()
	p.ok("accounts", "update", "--name", "Jane's house", account)
	if list := p.ok("accounts", "list"); !strings.Contains(list, "Jane's house") {
		t.Errorf("it is not renamed:\n%s", list)
	}
	for _, flags := range [][]string{
		{"--time-zone", "Europe/Berlin"},
		{"--password-file", p.file("password", d.password)},
	} {
		said := p.said(append([]string{"accounts", "update", account}, flags...)...)
		if !strings.Contains(said, "--allow-gateway-prefix") || !strings.Contains(said, "--url") ||
			strings.Contains(said, d.password) {
			t.Errorf("%v: %s", flags, strings.ReplaceAll(said, d.password, "<password>"))
		}
	}
	if n := d.times() - before; n != 0 {
		t.Errorf("the gateway was dialled %d times", n)
	}
	p.ok("accounts", "update", "--time-zone", "Europe/Berlin", "--allow-gateway-prefix", "127.0.0.0/8", account)
	if d.times() == before {
		t.Error("a change within the bounds is not tried")
	}

	before = d.times()
	_, cmd = p.serve("--connect-gateways", "--log-level", "debug")
	p.until("a server that does not allow the address has tried it", func() bool {
		log, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
		return err == nil && strings.Contains(string(log), "this server connects to no gateway at that address")
	})
	p.stop(cmd)
	if n := d.times() - before; n != 0 {
		t.Errorf("it has dialled it %d times", n)
	}
	p.ok("accounts", "update", "--url", address, account)
	before = d.times()
	p.serve("--connect-gateways")
	p.until("the address of the operator is dialed", func() bool { return d.times() > before })
}
