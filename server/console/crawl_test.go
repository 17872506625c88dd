package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// PINs are in no page, fragment, and export: not those of managed codes, of changed ones, of unmanaged ones, and of
// codes that the lock refuses.
func TestPages_ContainNoPIN(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "schlage", "ecobee", "minut"))
	b.Device(t, "ecobee")
	b.Device(t, "minut")
	addGuest(t, b, b.AccessSystem(t), "Ada Adams", "ada@example.com")
	v, r := b.as(t, domain.RoleAdmin), newReceiver(t)
	hook, _ := v.newWebhook(r.URL, "access_code.created", "access_code.set_on_device")
	var pins secretscan.Ledger
	b.plantPINs(t, &pins)
	const token = "token-of-the-receiver-5501"
	failing := newReceiver(t)
	failing.status.Store(http.StatusInternalServerError)
	v.newWebhook(failing.URL+"/?key="+token, "access_code.created")
	pins.Learn("token in the URL of a webhook", token)
	b.emitCode(t)
	apptest.Until(t, "the webhook fails", func() bool { return strings.Contains(v.open("").body, "failed") })
	apptest.Until(t, "a delivery is listed", func() bool {
		return strings.Contains(v.open("/webhooks/"+hook).body, "/webhooks/"+hook+"/deliveries/")
	})
	seen := b.crawl(t, domain.RoleAdmin, func(at string, body []byte) {
		for _, found := range pins.Find(body) {
			t.Errorf("%s contains a PIN: %s", at, found)
		}
	})
	for _, r := range console.Routes() {
		if r.Method != http.MethodGet || r.Public || slices.Contains(notLinked, r.Pattern) {
			continue
		}
		pattern := "^/console" + regexp.MustCompile(`\\\{[^}]*\\\}`).
			ReplaceAllString(regexp.QuoteMeta(r.Pattern), "[^/]+") +
			"$"
		if !slices.ContainsFunc(seen, regexp.MustCompile(pattern).MatchString) {
			t.Errorf("no link leads to %s", r.Pattern)
		}
	}
}

// notLinked are the routes that no link of a sandbox leads to: the stream has no content of its own, the confirmation
// needs an OpenID Connect provider, and the others are for real workspaces.
var notLinked = []string{
	"/confirm/oidc",
	"/w/{workspace}/live",
	"/w/{workspace}/accounts/connect",
	"/w/{workspace}/accounts/{account}/credential",
}

// plantPINs makes codes with PINs of all kinds on the locks.
func (b *bed) plantPINs(t *testing.T, pins *secretscan.Ledger) {
	t.Helper()
	august, schlage := b.Device(t, "august"), b.Device(t, "schlage")
	learn := func(what, pin string) {
		if !pins.Learn(what, pin) {
			t.Fatalf("the PIN of %s is too short to be found", what)
		}
	}
	create := func(device, name, pin string) (out api.AccessCodeResponse) {
		learn("PIN of "+name, pin)
		in := map[string]any{"device_id": device, "name": name, "code": pin, "sync": true}
		if status := b.Post(t, "/access_codes/create", in, &out); status != http.StatusOK {
			t.Fatalf("create %s: %d", name, status)
		}
		return out
	}
	create(august, "Set", "739164")
	changed := create(schlage, "Changed", "8295")
	learn("new PIN", "6147")
	b.Post(t, "/access_codes/update", map[string]any{
		"access_code_id": changed.AccessCode.AccessCodeID, "code": "6147", "name": "Changed again", "sync": true,
	}, nil)
	learn("PIN of an unmanaged code", "4938")
	b.Post(t, "/access_codes/simulate/create_unmanaged_access_code",
		map[string]any{"device_id": schlage, "name": "Keypad", "code": "4938"}, nil)
	apptest.Until(t, "the unmanaged code is found", func() bool { return len(b.UnmanagedCodes(t, schlage)) > 0 })
}

var link = regexp.MustCompile(`(?:href|action|src|hx-get|sse-connect)="([^"]+)"`)

// crawl requests all pages that links and forms that only read lead to, and returns their paths.
func (b *bed) crawl(t *testing.T, role domain.Role, check func(at string, body []byte)) (paths []string) {
	t.Helper()
	next, known := []string{b.page("")}, map[string]bool{}
	for len(next) > 0 && len(known) < 400 {
		at := next[0]
		next = next[1:]
		u, err := url.Parse(at)
		if err != nil || known[at] || strings.HasSuffix(u.Path, "/live") || strings.Contains(u.Path, "/assets/") {
			continue
		}
		known[at] = true
		page := b.send(t, role, http.MethodGet, at, nil, nil)
		if page.StatusCode >= 500 {
			t.Errorf("%s: status %d", at, page.StatusCode)
		}
		body := []byte(page.body)
		paths = append(paths, u.Path)
		check(at, body)
		for _, m := range link.FindAllSubmatch(body, -1) {
			to, err := u.Parse(html.UnescapeString(string(m[1])))
			if err == nil && to.Host == u.Host && strings.HasPrefix(to.Path, "/console") {
				to.Fragment = ""
				next = append(next, to.String())
			}
		}
	}
	return paths
}
