package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// choose selects an option of the form at a selector.
func choose(form, name, value string) browser.Step {
	return chromedp.SetValue(chromedp.CSS(form+` [name="`+name+`"]`), value)
}

// secret reads the text that a page shows once.
func secret(t *testing.T, w *browser.Browser) string {
	t.Helper()
	return strings.TrimSpace(browser.Ask(w, chromedp.Text(chromedp.CSS("main pre"))))
}

// An administrator invites a person, who sets a password, gets another role, and is disabled, without JavaScript.
func TestAccess_Operators(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	admin, person := browser.Open(t), browser.Open(t)
	admin.Do(
		browser.Scripts(false),
		b.signIn(t, domain.RoleAdmin),
		chromedp.Navigate(b.console+"/console/access"),
		chromedp.Click(`//summary[.="Invite a person"]`),
		choose("#invite", "email", "joe@example.com"),
		choose("#invite", "name", "Joe"),
		choose("#invite", "workspace", b.WorkspaceID),
		press("Make a link"),
		browser.Shows("h1", "Link for joe@example.com"),
	)
	link := secret(t, admin)
	person.Do(
		browser.Scripts(false),
		chromedp.Navigate(link),
		browser.Shows("strong", "joe@example.com"),
		fill("password", password), press("Set the password and sign in"),
		browser.Shows("h1", "Today"),
		chromedp.Navigate(b.console+"/console/access"),
		browser.Shows("p", "This needs the role admin."),
	)
	admin.Do(
		chromedp.Navigate(b.console+"/console/access"),
		chromedp.Click(`//a[contains(., "joe@example.com")]`),
		browser.Shows("h1", "joe@example.com"),
		choose("main form", "role-00000000-0000-0000-0000-000000000000", "admin"),
		press("Change roles"),
		browser.Shows("p", "The roles are changed."),
	)
	person.Do(
		chromedp.Navigate(b.console+"/console/access"),
		browser.Shows("h1", "Access"),
	)
	admin.Do(
		chromedp.Click(`//summary[.="Disable"]`), chromedp.Click(`//form[contains(@action, "/disable")]//button`),
		browser.Shows("p", "The operator is disabled"),
	)
	person.Do(
		chromedp.Navigate(b.console+"/console/access"),
		browser.Shows("h1", "Sign in"),
		fill("email", "joe@example.com"), fill("password", password), press("Sign in"),
		browser.Shows("p", "The email address or the password is wrong."),
	)
	admin.Do(
		press("Enable"),
		browser.Shows("p", "The operator is enabled."),
		chromedp.Click(`//summary[.="Make a new link"]`), chromedp.Click(`//form[contains(@action, "/reset")]//button`),
		browser.Shows("h1", "Link for joe@example.com"),
	)
	if again := secret(t, admin); again == link || !strings.HasPrefix(again, b.console+"/console/invite/") {
		t.Errorf("the new link is %q", again)
	}
	admin.Do(
		chromedp.Navigate(b.console+"/console/access"),
		chromedp.Click(`//a[contains(., "joe@example.com")]`),
		chromedp.Click(`//summary[.="Delete"]`), chromedp.Click(`//form[contains(@action, "/delete")]//button`),
		browser.Shows("p", "The operator is deleted."),
	)
	admin.CheckReports()
	admin.CheckRequests(b.console)
	person.CheckReports()
	person.CheckRequests(b.console)
}

// The last administrator stays, and the page says why.
func TestAccess_KeepsLastAdministrator(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	w := browser.Open(t)
	w.Do(
		browser.Scripts(false),
		b.signIn(t, domain.RoleAdmin),
		chromedp.Navigate(b.console+"/console/access"),
		chromedp.Click(`//a[contains(., "admin@example.com")]`),
		chromedp.Click(`//summary[.="Disable"]`), chromedp.Click(`//form[contains(@action, "/disable")]//button`),
		browser.Shows("p", "This is the last administrator"),
		chromedp.Navigate(b.console+"/console/access"),
		chromedp.Click(`//a[contains(., "admin@example.com")]`),
		chromedp.Click(`//summary[.="Make a new link"]`), chromedp.Click(`//form[contains(@action, "/reset")]//button`),
		browser.Shows("p", "This is the last administrator"),
	)
}

// An administrator creates a key, which works until it is revoked. Only the first page shows it.
func TestAccess_Keys(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	w := browser.Open(t)
	w.Do(
		browser.Scripts(false),
		b.signIn(t, domain.RoleAdmin),
		chromedp.Navigate(b.console+"/console/access"),
		chromedp.Click(`//summary[.="New key"]`),
		choose("#new-key", "name", "cleaning"),
		choose("#new-key", "owner", "joe@example.com"),
		press("Create key"),
		browser.Shows("h1", "New API key"),
	)
	key := secret(t, w)
	if status := b.call(t, key, "/devices/list"); status != http.StatusOK {
		t.Errorf("the key: status %d", status)
	}
	if status := b.call(t, key, "/webhooks/create"); status != http.StatusForbidden {
		t.Errorf("the key is no viewer's: status %d", status)
	}
	w.Do(
		chromedp.Navigate(b.console+"/console/access"),
		browser.Shows("td", "joe@example.com"),
	)
	if page := browser.Ask(w, chromedp.Text(chromedp.CSS("body"))); strings.Contains(page, key) {
		t.Error("the list shows the key")
	}
	w.Do(
		chromedp.Click(`//tr[contains(., "cleaning")]//summary`),
		chromedp.Click(`//tr[contains(., "cleaning")]//form//button`),
		browser.Shows("p", "The key is revoked."),
	)
	if status := b.call(t, key, "/devices/list"); status != http.StatusUnauthorized {
		t.Errorf("the revoked key: status %d", status)
	}
	w.Do(
		chromedp.Click(`//a[.="Show revoked and expired keys"]`),
		browser.Shows("td", "cleaning"),
	)
	w.CheckReports()
	w.CheckRequests(b.console)
}

// call calls an operation of the API with a key, and returns the status.
func (b *bed) call(t *testing.T, key, path string) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+key)
	q.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
