package app_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/oauth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/oauth/oauthtest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// bolt is a vendor of these tests with an API key ("key-of-" and the user) and OAuth.
type bolt struct {
	*oauthtest.Server
	pushURL atomic.Pointer[string] // of the account that was opened last
}

func (cloud *bolt) vendor() adapter.Vendor {
	o := cloud.OAuth()
	o.Connect = func(tokens adapter.Tokens) (adapter.Connection, error) {
		return &boltConnection{cloud: cloud, oauth: &o, tokens: tokens}, nil
	}
	blank := func() adapter.Connection { return &boltConnection{cloud: cloud, oauth: &o} }
	return adapter.Vendor{
		Adapter:     "bolt",
		Name:        "tedee",
		DisplayName: "Bolt",
		Categories:  []string{adapter.CategoryBeta, adapter.CategorySmartlocks},
		Accepts:     []string{adapter.Locks},
		Can:         capability.Set{Lock: true},
		New:         blank,
		Login: &adapter.Login{
			Fields: []login.Field{{Name: "key", Label: "API key", Kind: "password"}},
			Connect: func(entered map[string]string) (adapter.Connection, error) {
				switch code := entered["code"]; {
				case entered["key"] == "key-with-code" && code == "":
					field := login.Field{Name: "code", Label: "Code", Kind: "text"}
					return nil, &login.Step{Message: "Enter a code.", Fields: []login.Field{field}}
				case code != "":
					return nil, &login.Refusal{Field: "key", Message: "The key has changed."}
				}
				return &boltConnection{cloud: cloud, oauth: &o, Key: entered["key"]}, nil
			},
			SecretField: "key",
			OAuth:       &o,
		},
		Verification: adapter.Verification{Level: adapter.VerifiedDocumentation, Date: "2026-05"},
	}
}

type boltConnection struct {
	cloud  *bolt
	oauth  *adapter.OAuth
	tokens adapter.Tokens

	User string `json:"user"`
	Key  string `json:"key"`
}

func (c *boltConnection) Adapter() string { return "bolt" }

func (c *boltConnection) Address() string { return "bolt " + c.User }

func (c *boltConnection) Apply(adapter.Settings) error { return nil }

// user returns the user of a token or key, which the API returns to valid ones.
func (c *boltConnection) user(ctx context.Context, credential string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.cloud.URL+"/me", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+credential)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", adapter.Errorf(adapter.AuthRevoked, "Bolt refuses the credential")
	}
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

func (c *boltConnection) Check(ctx context.Context, _ adapter.Env) (found adapter.Checked, err error) {
	credential := c.Key
	if credential == "" {
		credential = c.tokens.Access
		found.Credentials, err = json.Marshal(c.tokens)
	}
	if err == nil {
		c.User, err = c.user(ctx, credential)
	}
	found.Username, found.DisplayName = c.User, "Bolt of "+c.User
	return found, err
}

func (c *boltConnection) Open(ctx context.Context, env adapter.Env) (adapter.Adapter, error) {
	urls, err := env.PushURLs(ctx)
	if err != nil {
		return nil, err
	}
	c.cloud.pushURL.Store(&urls[0])
	tokens := &adapter.TokenSource{Secrets: env.Secrets, Refresh: oauth.Refresh(c.oauth, env)}
	return &boltAdapter{c: c, tokens: tokens, events: adapter.NewEventQueue()}, nil
}

// boltAdapter implements the parts of an adapter that the tests need.
type boltAdapter struct {
	adapter.Adapter
	c      *boltConnection
	tokens *adapter.TokenSource
	events *adapter.EventQueue
}

// user calls the API, with another token if the vendor refuses the first one.
func (a *boltAdapter) user(ctx context.Context) (string, error) {
	if a.c.Key != "" {
		return a.c.user(ctx, a.c.Key)
	}
	token, err := a.tokens.Token(ctx)
	if err != nil {
		return "", err
	}
	user, err := a.c.user(ctx, token)
	if err == nil {
		return user, nil
	}
	if token, err = a.tokens.Renew(ctx, token); err != nil {
		return "", err
	}
	return a.c.user(ctx, token)
}

func (a *boltAdapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	user, err := a.user(ctx)
	return []adapter.Device{{
		Ref:          adapter.DeviceRef("door of " + user),
		Name:         "Door of " + user,
		Type:         "tedee_lock",
		Provider:     "tedee",
		Online:       true,
		Capabilities: capability.Set{Lock: true},
	}}, err
}

func (a *boltAdapter) Device(ctx context.Context, _ adapter.DeviceRef) (adapter.Device, error) {
	all, err := a.Devices(ctx)
	return all[0], err
}

// Receive answers a push with the result of a call, so that a test can make each instance call the vendor.
func (a *boltAdapter) Receive(w http.ResponseWriter, r *http.Request) {
	user, err := a.user(r.Context())
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
	}
	_, _ = io.WriteString(w, user)
}

func (a *boltAdapter) Events() <-chan adapter.Event { return a.events.Events() }

func (a *boltAdapter) Close() error {
	a.events.Close()
	return nil
}

// boltBed is a server on which people log in to Bolt.
type boltBed struct {
	*testing.T
	*apptest.Server
	cloud *bolt
	key   string
	log   *testenv.Buffer
	// browser is the person's.
	browser *http.Client
}

// newBrowser returns a browser with cookies of its own.
func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func newBoltBed(t *testing.T) *boltBed {
	t.Helper()
	b := &boltBed{T: t, cloud: &bolt{Server: oauthtest.Start(t)}, log: &testenv.Buffer{}, browser: newBrowser(t)}
	b.cloud.Mux.HandleFunc("/me", func(w http.ResponseWriter, r *http.Request) {
		user, isKey := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer key-of-")
		if !isKey {
			user = b.cloud.User(r)
		}
		if user == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, user)
	})
	b.Server = apptest.Start(t, apptest.WithProfiles("august"), apptest.WithConnecting(app.Connecting{
		Vendors: []adapter.Vendor{b.cloud.vendor()},
		Clients: map[string]adapter.Client{"bolt": b.cloud.Client},
	}), func(c *app.Config) {
		c.Log = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	b.cloud.Register(b.URL + "/connect/back/bolt")
	b.key = realWorkspace(t, b.Server)
	return b
}

func (b *boltBed) link() api.ConnectWebview {
	b.Helper()
	var page api.ConnectWebviewResponse
	if status := b.PostAs(b.T, b.key, "/connect_webviews/create", map[string]any{}, &page); status != http.StatusOK {
		b.Fatalf("create a webview: %d", status)
	}
	return page.ConnectWebview
}

func (b *boltBed) status(w api.ConnectWebview) string {
	b.Helper()
	var page api.ConnectWebviewResponse
	b.PostAs(b.T, b.key, "/connect_webviews/get", map[string]any{"connect_webview_id": w.ConnectWebviewID}, &page)
	return string(page.ConnectWebview.Status)
}

func (b *boltBed) accounts() []api.ConnectedAccount {
	b.Helper()
	var out api.ConnectedAccountsResponse
	b.PostAs(b.T, b.key, "/connected_accounts/list", map[string]any{}, &out)
	return out.ConnectedAccounts
}

// open follows redirects in the person's browser, to the page that it ends on.
func (b *boltBed) open(at string) (status int, page, to string) {
	b.Helper()
	res, err := b.browser.Get(at)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res.StatusCode, string(body), res.Request.URL.String()
}

// step returns the answer to a GET without following its redirect.
func (b *boltBed) step(browser *http.Client, at string) (status int, location, page string) {
	b.Helper()
	client := http.Client{
		Jar:           browser.Jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Get(at)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location"), string(body)
}

// back returns the URL that the vendor's page leads back to, in the person's browser.
func (b *boltBed) back(w api.ConnectWebview) string {
	b.Helper()
	at := w.URL + "/tedee/authorize"
	client := http.Client{
		Jar:           b.browser.Jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for range 2 {
		res, err := client.Get(at)
		if err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
		to, err := res.Location()
		if err != nil {
			b.Fatalf("%s: %v", res.Status, err)
		}
		at = to.String()
	}
	return at
}

// says checks the page at the end of the redirects.
func (b *boltBed) says(what, at string, parts ...string) {
	b.Helper()
	status, page, to := b.open(at)
	for _, part := range parts {
		if !strings.Contains(page, part) {
			b.Errorf("%s: %d, no %q on %s", what, status, part, page)
		}
	}
	if u, err := url.Parse(to); err != nil || u.Query().Has("code") && !strings.Contains(page, "has ended") {
		b.Errorf("%s: the browser stays at a URL with a code", what)
	}
}

// checkLog checks that the log has no code, state, verifier, or token.
func (b *boltBed) checkLog() {
	b.Helper()
	text := b.log.String()
	for _, secret := range b.cloud.Secrets() {
		if strings.Contains(text, secret) {
			b.Errorf("the log contains a secret")
		}
	}
}

// A person logs in on the vendor's pages, by an API key, and on the vendor's pages again. All three are one account.
func TestOAuth_LogsInOnTheVendorsPages(t *testing.T) {
	t.Parallel()
	b := newBoltBed(t)
	w := b.link()
	b.says("the form", w.URL, "Continue to Bolt", "Or log in here", "API key")
	b.says("the end", w.URL+"/tedee/authorize", "Connected")
	if all := b.accounts(); len(all) != 1 || all[0].UserIdentifier.Username != "jane" || b.status(w) != "authorized" {
		t.Fatalf("the accounts are %+v; the webview is %s", all, b.status(w))
	}
	apptest.Until(t, "its device is listed", func() bool {
		var devices api.UnmanagedDevicesResponse
		b.PostAs(t, b.key, "/devices/unmanaged/list", map[string]any{}, &devices)
		return len(devices.Devices) == 1
	})
	if rows := b.Rows(t); len(rows["account_secrets"]) != 1 || len(rows["pending_logins"]) != 0 {
		t.Errorf("after OAuth: %v, %v", rows["account_secrets"], rows["pending_logins"])
	}
	if status := post(t, b.link().URL+"/tedee", url.Values{"key": {"key-of-jane"}}); status != http.StatusOK {
		t.Errorf("the key: %d", status)
	}
	if rows := b.Rows(t); len(rows["account_secrets"]) != 0 {
		t.Errorf("after the key, the tokens remain: %v", rows["account_secrets"])
	}
	b.says("OAuth again", b.link().URL+"/tedee/authorize", "Connected")
	accounts, err := (&app.Admin{Access: b.App.Access, Connecting: app.Connecting{
		Vendors: []adapter.Vendor{b.cloud.vendor()},
	}}).Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found int
	for _, a := range accounts {
		if c, ok := a.Connection.(*boltConnection); ok {
			found++
			if c.Key != "" || c.User != "jane" {
				t.Errorf("after OAuth, the account still has the key, or another user: %q", c.User)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d accounts, want one", found)
	}
	b.checkLog()
}

// An operator replaces a login on the vendor's pages by an API key. The tokens of the login must not remain.
func TestOAuth_ReplacedByOperator(t *testing.T) {
	t.Parallel()
	b := newBoltBed(t)
	b.says("the login", b.link().URL+"/tedee/authorize", "Connected")
	if rows := b.Rows(t); len(rows["account_secrets"]) != 1 {
		t.Fatalf("after OAuth: %v", rows["account_secrets"])
	}
	vendor := b.cloud.vendor()
	admin := &app.Admin{Access: b.App.Access, Connecting: app.Connecting{Vendors: []adapter.Vendor{vendor}}}
	accounts, err := admin.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(accounts, func(a app.ConnectedAccount) bool { return a.Adapter == vendor.Adapter })
	if i < 0 {
		t.Fatal("there is no account")
	}
	connection := accounts[i].Connection.(*boltConnection)
	connection.Key = "key-of-jane"
	if err := admin.Reconnect(t.Context(), accounts[i].ID, "Home", connection); err != nil {
		t.Fatal(err)
	}
	if rows := b.Rows(t); len(rows["account_secrets"]) != 0 {
		t.Errorf("after the key, the tokens remain: %v", rows["account_secrets"])
	}
}

// Each way in which the vendor's pages or the return fail is explained, and nothing is connected.
func TestOAuth_Errors(t *testing.T) {
	t.Parallel()
	b := newBoltBed(t)
	for _, c := range []struct {
		fault oauthtest.Fault
		says  string
	}{
		{oauthtest.AccessDenied, "You did not allow the access at Bolt."},
		{oauthtest.ServerError, "Bolt could not log you in."},
		{oauthtest.NoCode, "Bolt could not log you in."},
		{oauthtest.OtherCode, "Bolt did not accept this login."},
		{oauthtest.Unavailable, "Bolt does not respond."},
		{oauthtest.Garbage, "Bolt does not respond."},
		{oauthtest.HangUp, "Bolt does not respond."},
		{oauthtest.BadClient, "Bolt does not respond."},
	} {
		b.cloud.Fail(c.fault)
		w := b.link()
		b.says(string(c.fault), w.URL+"/tedee/authorize", c.says, "Continue to Bolt", "Could not log in to Bolt")
		if status := b.status(w); status != "failed" {
			t.Errorf("%s: the webview is %s", c.fault, status)
		}
	}
	b.cloud.Fail("")
	if !strings.Contains(b.log.String(), "check --vendor-client") {
		t.Error("the log does not tell the operator that the client is wrong")
	}
	w := b.link()
	b.says("an unknown state", b.URL+"/connect/back/bolt?code=x&state=guess", "This login has ended")
	b.says("no state", b.URL+"/connect/back/bolt?code=x", "This login has ended")
	at := b.back(w)
	b.says("the path of another vendor", strings.Replace(at, "/bolt?", "/other?", 1), "This login has ended")
	b.says("a used state", at, "This login has ended")
	at = b.back(w)
	b.Exec(t, "update pending_logins set expires_at = now()")
	b.says("an expired state", at, "This login has ended")
	at = b.back(w)
	b.PostAs(t, b.key, "/connect_webviews/delete", map[string]any{"connect_webview_id": w.ConnectWebviewID}, nil)
	b.says("a deleted link", at, "This login has ended")
	if all := b.accounts(); len(all) != 0 {
		t.Errorf("the accounts are %+v", all)
	}

	w = b.link()
	for range 10 {
		at = b.back(w)
	}
	b.says("the eleventh redirect", w.URL+"/tedee/authorize", "Too many attempts")
	// The state belongs to its link, whatever else the person has open.
	other := b.link()
	b.back(other)
	b.says("the tenth return", at, "Connected")
	if b.status(w) != "authorized" || b.status(other) != "pending" {
		t.Errorf("the links are %s and %s", b.status(w), b.status(other))
	}
	b.says("the return again", at, "This login has ended")
	b.checkLog()
}

// Only the browser that started a login finishes it, once. Every other return gets a page in words that contains
// nothing of the link, and ends no login.
func TestOAuth_ReturnBelongsToTheBrowser(t *testing.T) {
	t.Parallel()
	b := newBoltBed(t)
	w := b.link()
	token := path.Base(w.URL)
	refuses := func(what string, browser *http.Client, at string) {
		t.Helper()
		status, location, page := b.step(browser, at)
		if status != http.StatusNotFound || location != "" || strings.Contains(page, token) ||
			!strings.Contains(page, "This login has ended") || !strings.Contains(page, "another browser") {
			t.Errorf("%s: %d, to %q", what, status, location)
		}
	}
	at := b.back(w)
	refuses("another browser", newBrowser(t), at)
	refuses("a browser without cookies", http.DefaultClient, at)

	// The other browser has a login of its own, by the same link and by another one.
	stranger := newBrowser(t)
	for _, link := range []api.ConnectWebview{w, b.link()} {
		_, to, _ := b.step(stranger, link.URL+"/tedee/authorize")
		_, own, _ := b.step(stranger, to)
		refuses("a browser with another login", stranger, at)
		refuses("the login of another browser", b.browser, own)
	}
	if all := b.accounts(); len(all) != 0 {
		t.Fatalf("the accounts are %+v", all)
	}
	replayed := b.browser.Jar
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	kept := replayed.Cookies(u)
	if len(kept) != 1 {
		t.Errorf("the browser sends %d cookies back", len(kept))
	}
	if link, err := url.Parse(w.URL); err != nil || len(replayed.Cookies(link)) != 0 {
		t.Errorf("the browser sends the cookie to other pages, %v", err)
	}
	b.says("the return", at, "Connected")
	if all := b.accounts(); len(all) != 1 {
		t.Errorf("the accounts are %+v", all)
	}
	refuses("a replay", b.browser, at)

	// A state that was used remains refused while its login waits for the person, also with the cookie.
	b.cloud.Fail(oauthtest.AccessDenied)
	w = b.link()
	token = path.Base(w.URL)
	at = b.back(w)
	if u, err = url.Parse(at); err != nil {
		t.Fatal(err)
	}
	kept = replayed.Cookies(u)
	b.says("a refusal", at, "You did not allow the access at Bolt.")
	replayed.SetCookies(u, kept)
	refuses("a replay with the cookie", b.browser, at)
	b.checkLog()
}

// A server ends while the person is on the vendor's pages. Another instance finishes the login.
func TestOAuth_RestartBeforeReturn(t *testing.T) {
	t.Parallel()
	b := newBoltBed(t)
	w := b.link()
	at := b.back(w)
	another := b.StartAnother(t)
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.says("the return", strings.Replace(at, b.URL, another.URL, 1), "Connected")
}

// The vendor revokes an access token that three instances use. One of them refreshes it, and all continue.
func TestOAuth_OneOfThreeInstancesRefreshes(t *testing.T) {
	t.Parallel()
	b := newBoltBed(t)
	all := []*apptest.Server{b.Server, b.StartAnother(t), b.StartAnother(t)}
	b.says("the login", b.link().URL+"/tedee/authorize", "Connected")
	apptest.Until(t, "the account is open", func() bool { return b.cloud.pushURL.Load() != nil })
	u, err := url.Parse(*b.cloud.pushURL.Load())
	if err != nil {
		t.Fatal(err)
	}
	call := func() {
		t.Helper()
		var calls sync.WaitGroup
		for n := range 12 {
			calls.Go(func() {
				if status := post(t, all[n%3].URL+u.Path, nil); status != http.StatusOK {
					t.Errorf("a call through instance %d: %d", n%3, status)
				}
			})
		}
		calls.Wait()
	}
	call()
	b.cloud.RevokeAccess()
	call()
	if n := b.cloud.Refreshes(); n != 1 {
		t.Errorf("%d refresh tokens were used, want 1", n)
	}
}

// A step whose login refuses a value of an earlier step leads back to the first form.
func TestStep_RefusesEarlierValue(t *testing.T) {
	t.Parallel()
	b := newBoltBed(t)
	w := b.link()
	res, err := http.PostForm(w.URL+"/tedee", url.Values{"key": {"key-with-code"}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	step := res.Request.URL.String()
	b.says("the step", step, "Enter a code.", "Start over")
	res, err = http.PostForm(step, url.Values{"code": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(page); res.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(text, "The key has changed.") || !strings.Contains(text, "Continue to Bolt") {
		t.Errorf("%s: %s", res.Status, text)
	}
	if rows := b.Rows(t)["pending_logins"]; len(rows) != 0 || len(b.accounts()) != 0 {
		t.Errorf("%d logins wait, and %d accounts are connected", len(rows), len(b.accounts()))
	}
}
