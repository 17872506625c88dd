package console_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// newCloud starts a vendor's cloud with one lock, and returns the token of an account.
func newCloud(t *testing.T) (address, token string) {
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

// newRealBed is a bed whose pages are those of a workspace for real devices.
func newRealBed(t *testing.T) *bed {
	t.Helper()
	b := newBed(t, apptest.WithProfiles("august"))
	id, key := b.RealWorkspace(t)
	b.WorkspaceID, b.APIKey = id.String(), key
	return b
}

func TestAccounts_ConnectUpdateDisconnect(t *testing.T) {
	t.Parallel()
	b := newRealBed(t)
	v := b.as(t, domain.RoleAdmin)
	address, token := newCloud(t)
	v.open("/accounts").shows(t, http.StatusOK, "No account yet", "Connect a gateway")
	v.open("/accounts/connect").shows(t, http.StatusOK, "Z-Wave JS", "Device cloud", "Connect a Nuki Web account.")
	v.open("/accounts/connect?kind=devicecloud").shows(t, http.StatusOK, `name="setting-url"`, `type="password"`)

	form := []string{"kind", "devicecloud", "name", "My cloud", "setting-url", address, "setting-token"}
	refused := v.submit("/accounts/connect", append(form, "wrong-token")...)
	refused.shows(t, http.StatusUnprocessableEntity, "Nothing was stored", address, "My cloud")
	refused.hides(t, "wrong-token", "--token-file", "DEVICEACCESS_")
	v.open("/accounts").shows(t, http.StatusOK, "No account yet")
	missing := v.submit("/accounts/connect", append(form, "")...)
	missing.shows(t, http.StatusUnprocessableEntity, "fill in “Token”")
	missing.hides(t, "--token", "DEVICEACCESS_")

	path := v.act("/accounts/connect", append(form, token)...)
	id := regexp.MustCompile(`[0-9a-f-]{36}\?`).FindString(path)
	id = strings.TrimSuffix(id, "?")
	apptest.Until(
		t,
		"its lock appears",
		func() bool { return strings.Contains(v.open("/accounts/"+id).body, "/locks/") },
	)
	one := v.open("/accounts/" + id)
	one.shows(
		t,
		http.StatusOK,
		"Working",
		"My cloud",
		"Device cloud",
		address,
		"This account was not connected with a link.",
	)
	one.hides(t, token)
	v.open("/accounts").shows(t, http.StatusOK, "My cloud", "Working")
	v.open("/accounts?state=failing").shows(t, http.StatusOK, "No account matches")
	if got := v.submit("/accounts/connect", append(form, token)...); got.StatusCode != http.StatusConflict {
		t.Errorf("the same address again: status %d", got.StatusCode)
	}

	v.act("/accounts/"+id+"/update", "name", "Lobby", "customer_key", "hotel", "manage", "yes")
	v.open("/accounts?customer=hotel").shows(t, http.StatusOK, "Lobby")
	wrong := v.submit("/accounts/"+id+"/credential", "setting-token", "wrong-token")
	wrong.shows(t, http.StatusUnprocessableEntity, "Nothing was stored")
	wrong.hides(t, "accepted..")
	wrong.hides(t, "wrong-token")
	v.act("/accounts/"+id+"/credential", "setting-token", token)
	v.act("/accounts/" + id + "/sync")
	if got := b.as(t, domain.RoleOperator).
		submit("/accounts/" + id + "/disconnect"); got.StatusCode != http.StatusForbidden {
		t.Errorf("an operator disconnects: status %d", got.StatusCode)
	}
	v.act("/accounts/" + id + "/disconnect")
	v.open("/accounts").shows(t, http.StatusOK, "No account yet")
	v.open("/activity?what=accounts").shows(t, http.StatusOK, "Connected account", "admin@example.com")
}

func TestAccounts_ConnectLink(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v := b.as(t, domain.RoleAdmin)
	v.open("/accounts/links/new").shows(t, http.StatusOK, "August", `name="customer_key"`)
	bad := v.submit("/accounts/links", "redirect", "ftp://example.com")
	bad.shows(t, http.StatusUnprocessableEntity, "It must begin with https://")
	made := v.submit("/accounts/links", "brand", "august", "customer_key", "hotel", "manage", "yes")
	link := regexp.MustCompile(`http://[^/]+/connect/[A-Za-z0-9_-]{50,}`).FindString(made.body)
	if link == "" || made.StatusCode != http.StatusOK || made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("no link, or it is stored: status %d", made.StatusCode)
	}
	made.shows(t, http.StatusOK, "QR code of the link", "August", "hotel")
	token := link[strings.LastIndex(link, "/")+1:]
	if resp, err := http.Get(b.URL + "/connect/" + token); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the link does not work: %v", err)
	} else {
		resp.Body.Close()
	}
	list := v.open("/accounts/links?state=open")
	list.shows(t, http.StatusOK, "hotel", "August", "Open")
	list.hides(t, token)
	id := regexp.MustCompile(`/accounts/links/([0-9a-f-]{36})"`).FindStringSubmatch(list.body)[1]
	one := v.open("/accounts/links/" + id)
	one.shows(t, http.StatusOK, "The link stops working at once.", "August")
	one.hides(t, token)
	v.act("/accounts/links/" + id + "/delete")
	v.open("/accounts/links").shows(t, http.StatusOK, "No connect link")
	if got := b.open(t, domain.RoleOperator, "/accounts/links/new").StatusCode; got != http.StatusForbidden {
		t.Errorf("as an operator: status %d", got)
	}
}

// A failing account says in words what is wrong and what to do.
func TestAccounts_Failing(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	v := b.as(t, domain.RoleAdmin)
	lock := b.Lock(t, b.Device(t, "august"))
	lock.Account(t, "revoke")
	apptest.Until(t, "the account fails", func() bool {
		return strings.Contains(v.open("/accounts?state=failing").body, "Login rejected")
	})
	id := regexp.MustCompile(`/accounts/([0-9a-f-]{36})"`).FindStringSubmatch(v.open("/accounts?state=failing").body)[1]
	v.open("/accounts/"+id).
		shows(t, http.StatusOK, "Update the credential, or send the owner a new connect link.", "Simulated devices")
}

func TestLooks_AccountsWebhooksActivity(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "yale"))
	v, r := b.as(t, domain.RoleAdmin), newReceiver(t)
	hook, _ := v.newWebhook(
		r.URL+"/a/rather/long/path/of/a/receiver",
		"access_code.created",
		"access_code.set_on_device",
	)
	failing := newReceiver(t)
	failing.status.Store(http.StatusInternalServerError)
	v.newWebhook(failing.URL+"/hooks?token=x", "access_code.created")
	b.emitCode(t)
	v.submit("/accounts/links", "customer_key", "hotel")
	link := regexp.MustCompile(`/webhooks/` + hook + `/deliveries/[0-9a-f-]{36}`)
	delivery := ""
	apptest.Until(t, "a delivery is listed", func() bool {
		delivery = link.FindString(v.open("/webhooks/" + hook + "?state=delivered").body)
		return delivery != "" && failing.received.Load() > 0
	})
	account := regexp.MustCompile(`/accounts/[0-9a-f-]{36}`).FindString(v.open("/accounts").body)
	checkLooks(t, b,
		visit{"accounts", "/accounts"}, visit{"account", account}, visit{"links", "/accounts/links"},
		visit{"new link", "/accounts/links/new"}, visit{"webhooks", "/webhooks"}, visit{"webhook", "/webhooks/" + hook},
		visit{"webhook types", "/webhooks/" + hook + "/types"}, visit{"replay", "/webhooks/" + hook + "/replay"},
		visit{"delivery", delivery}, visit{"activity", "/activity"},
	)
}

func TestLooks_ConnectAccounts(t *testing.T) {
	t.Parallel()
	checkLooks(t, newRealBed(t),
		visit{"empty accounts", "/accounts"}, visit{"connect kinds", "/accounts/connect"},
		visit{"connect", "/accounts/connect?kind=zwavejs"}, visit{"no webhooks", "/webhooks"},
	)
}
