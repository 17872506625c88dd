package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// account returns the account of the locks.
func (b *bed) account(t *testing.T) string {
	t.Helper()
	var out api.ConnectedAccountsResponse
	b.Post(t, "/connected_accounts/list", map[string]any{}, &out)
	return out.ConnectedAccounts[0].ConnectedAccountID
}

func TestLocks_ListAndFilters(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august", "yale")
	front, back := "Front Door", "Back Door"
	b.newCode(t, map[string]any{"device_id": b.Device(t, "august"), "code": pin})
	if status := b.Post(
		t,
		"/devices/simulate/disconnect",
		map[string]any{"device_id": b.Device(t, "yale")},
		nil,
	); status != http.StatusOK {
		t.Fatalf("disconnect: %d", status)
	}
	apptest.Until(t, "the lock is offline", func() bool {
		return strings.Contains(b.open(t, domain.RoleViewer, "/locks?state=offline").body, back)
	})
	list := b.open(t, domain.RoleViewer, "/locks")
	list.shows(t, http.StatusOK, front, back, "Wi-Fi Smart Lock", "1 of 1 (limit 250)", "Offline", "<time")
	list.hides(t, pin)
	accountOf := map[string]any{"connected_account_id": b.account(t), "customer_key": "smith"}
	if status := b.Post(t, "/connected_accounts/update", accountOf, nil); status != http.StatusOK {
		t.Fatalf("set the customer: %d", status)
	}
	b.open(t, domain.RoleViewer, "/locks?customer=smith").shows(t, http.StatusOK, front, back)
	for query, want := range map[string]string{
		"?q=front":                  front,
		"?state=online":             front,
		"?provider=august":          front,
		"?account=" + b.WorkspaceID: "No locks here",
		"?state=offline":            back,
		"?provider=yale":            back,
		"?customer=unknown":         "No locks here",
	} {
		page := b.open(t, domain.RoleViewer, "/locks"+query)
		page.shows(t, http.StatusOK, want)
		for _, name := range []string{front, back} {
			if name != want {
				page.hides(t, name)
			}
		}
	}
}

func TestLock_RefreshLockAndUnlock(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, "august")
	device := b.Device(t, "august")
	path := "/locks/" + device
	page := b.open(t, domain.RoleAdmin, path)
	page.shows(t, http.StatusOK, "Refresh now", "Unlock", "New code", "Unlocks remotely")
	b.open(t, domain.RoleOperator, path).hides(t, "The door moves at once")
	b.submit(t, domain.RoleViewer, path+"/refresh", nil).shows(t, http.StatusForbidden)
	b.submit(t, domain.RoleOperator, path+"/unlock", url.Values{"confirm": {"Front Door"}}).
		shows(t, http.StatusForbidden)

	// A code that was set at the keypad shows after a refresh.
	b.Lock(t, device).Control(t, http.MethodPost, "/keypad/codes", map[string]any{"code": pin, "name": "At the keypad"})
	b.submit(t, domain.RoleOperator, path+"/refresh", nil).redirects(t, b, path+"?done=lock-refresh")
	apptest.Until(t, "the code is found", func() bool {
		return strings.Contains(b.open(t, domain.RoleViewer, path+"/unmanaged").body, "At the keypad")
	})

	b.submit(t, domain.RoleAdmin, path+"/unlock", url.Values{"confirm": {"front door"}}).
		shows(t, http.StatusUnprocessableEntity, "Nothing was done")
	b.submit(t, domain.RoleAdmin, path+"/unlock", url.Values{"confirm": {"Front Door"}}).
		redirects(t, b, path+"?done=lock-unlock")
	apptest.Until(t, "the door is unlocked", func() bool {
		return strings.Contains(b.open(t, domain.RoleViewer, path).body, "The door was unlocked.")
	})
	page = b.open(t, domain.RoleViewer, path)
	page.shows(
		t,
		http.StatusOK,
		"Unlock the door: done",
		"Unlocked the door",
		"admin@example.com",
		"Asked for a refresh",
		"operator@example.com",
	)
	page.hides(t, pin)
	b.submit(t, domain.RoleAdmin, path+"/lock", url.Values{"confirm": {"Front Door"}}).
		redirects(t, b, path+"?done=lock-lock")
}

func TestLooks_LocksAndCodes(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august", "igloohome"))
	lock := b.Device(t, "august")
	apptest.Until(t, "the codes are read", func() bool { return len(b.UnmanagedCodes(t, lock)) == 3 })
	code := b.newCode(t, map[string]any{"device_id": lock, "code": pin, "name": "Guest of June"})
	timed := b.newCode(t, map[string]any{
		"device_id": lock,
		"name":      "Cleaner of the weekend",
		"starts_at": "2040-06-07T15:00:00Z",
		"ends_at":   "2040-06-09T11:00:00Z",
	})
	unmanaged := b.UnmanagedCodes(t, lock)[0].AccessCodeID
	checkLooks(t, b,
		visit{"locks", "/locks"},
		visit{"lock", "/locks/" + lock},
		visit{"codes", "/codes"},
		visit{"code", "/codes/" + code},
		visit{"timed code", "/codes/" + timed},
		visit{"new code", "/locks/" + b.Device(t, "igloohome") + "/codes/new"},
		visit{"unmanaged", "/locks/" + lock + "/unmanaged"},
		visit{"import", "/locks/" + lock + "/unmanaged/import?code=" + unmanaged},
	)
}

// Without JavaScript, an operator adopts codes, sees a PIN, and hides it.
func TestBrowser_AdoptAndRevealWithoutScripts(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("august"))
	lock := b.Device(t, "august")
	apptest.Until(t, "the codes are read", func() bool { return len(b.UnmanagedCodes(t, lock)) == 3 })
	first := b.UnmanagedCodes(t, lock)[0]
	w := browser.Open(t)
	w.Do(
		b.signIn(t, domain.RoleOperator),
		browser.Scripts(false),
		chromedp.Navigate(b.page("/locks/"+lock+"/unmanaged")),
		chromedp.Click(chromedp.CSS("#tick-"+first.AccessCodeID)),
		chromedp.Click(`//button[.="Manage with Terraform"]`),
		browser.Shows("pre", first.AccessCodeID),
	)
	if at := browser.Ask(w, chromedp.Location()); strings.Contains(at, "csrf") {
		t.Errorf("the token is in the URL %s", at)
	}
	w.Do(
		chromedp.Navigate(b.page("/locks/"+lock+"/unmanaged")),
		chromedp.Click(chromedp.CSS("#tick-"+first.AccessCodeID)),
		chromedp.Click(`//button[.="Manage here"]`),
		browser.Shows("p", "become managed"),
	)
	apptest.Until(t, "the code is managed", func() bool { return len(b.UnmanagedCodes(t, lock)) == 2 })
	w.Do(
		chromedp.Navigate(b.page("/codes/"+first.AccessCodeID)),
		chromedp.Click(`//button[.="Reveal PIN"]`),
		browser.Shows("p", *first.Code),
		chromedp.Click(`//a[.="Hide now"]`),
		browser.Shows("h2", "Facts"),
	)
	w.CheckReports()
	w.CheckRequests(b.console)
}
