package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
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

// checkPages follows the links to the next page of a list of 120 rows, and fails the test unless each row is on one
// page, and no page has more than 50.
func checkPages(t *testing.T, b *bed, address, param, row string) {
	t.Helper()
	rows, seen := regexp.MustCompile(row), map[string]bool{}
	links := regexp.MustCompile(`rel="next" href="([^"]*)"`)
	position := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get(param)
	}
	for range 10 {
		page := b.send(t, domain.RoleAdmin, http.MethodGet, address, nil, nil)
		page.shows(t, http.StatusOK)
		on := map[string]bool{}
		for _, name := range rows.FindAllString(page.main(), -1) {
			on[name] = true
		}
		if len(on) == 0 || len(on) > 50 {
			t.Errorf("%s has %d rows", address, len(on))
		}
		for name := range on {
			if seen[name] {
				t.Errorf("%q is on two pages", name)
			}
			seen[name] = true
		}
		at := address
		for _, link := range links.FindAllStringSubmatch(page.body, -1) {
			// The links of other lists keep the position of this one.
			if to := b.console + html.UnescapeString(link[1]); position(to) != position(at) {
				address = to
			}
		}
		if address == at {
			break
		}
	}
	if len(seen) != 120 {
		t.Errorf("the pages have %d rows, want 120", len(seen))
	}
}

// The lists of workspaces, operators, and keys have pages, and forms find workspaces beyond the first page.
func TestAccess_ListsHavePages(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.session(t, domain.RoleAdmin)
	b.Exec(t, `insert into workspaces (workspace_id, name, company_name, is_sandbox)
		select gen_random_uuid(), 'Paged place ' || i, '', false from generate_series(1, 120) i`)
	b.Exec(t, `insert into operators (operator_id, email, name, roles, mac)
		select gen_random_uuid(), 'paged' || i || '@example.com', '', '{}', '' from generate_series(1, 120) i`)
	b.Exec(t, `insert into credentials (credential_id, kind, name, hint, token_hash, mac, role, owner)
		select gen_random_uuid(), 'api_key', 'Paged key ' || i || '.', '', sha256(i::text::bytea), '', 'viewer', ''
		from generate_series(1, 120) i`)
	checkPages(t, b, b.console+"/console?q=Paged", "after", `Paged place \d+`)
	checkPages(t, b, b.console+"/console/access?q=paged", "operators", `paged\d+@`)
	checkPages(t, b, b.console+"/console/access?q=paged", "keys", `Paged key \d+`)
	access := func(query string) answer {
		return b.send(t, domain.RoleAdmin, http.MethodGet, b.console+"/console/access"+query, nil, nil)
	}
	if n := strings.Count(access("").main(), "<option"); n > 150 {
		t.Errorf("the forms have %d options", n)
	}
	found := access("?workspace=Paged+place+117")
	found.shows(t, http.StatusOK, ">Paged place 117<")
	place := regexp.MustCompile(`value="([0-9a-f-]{36})"[^>]*>Paged place 117<`).FindStringSubmatch(found.main())
	if place == nil {
		t.Fatal("the workspace is no option")
	}
	b.send(t, domain.RoleAdmin, http.MethodGet, b.console+"/console/w/"+place[1], nil, nil).
		shows(t, http.StatusOK, "Paged place 117", "All workspaces")
	o, _, err := b.App.Access.Operators.CreateOperator(t.Context(), operator.NewOperator{
		Email: "roles@example.com",
		Roles: map[uuid.UUID]domain.Role{uuid.MustParse(place[1]): domain.RoleAdmin},
	})
	if err != nil {
		t.Fatal(err)
	}
	page := b.console + "/console/access/operators/" + o.ID.String()
	b.send(t, domain.RoleAdmin, http.MethodGet, page, nil, nil).shows(t, http.StatusOK, "In Paged place 117")
	_, secret := b.session(t, domain.RoleAdmin)
	form := url.Values{"csrf": {secret}, "role-" + b.WorkspaceID: {"viewer"}}
	b.send(t, domain.RoleAdmin, http.MethodPost, page+"/roles", form, nil).shows(t, http.StatusSeeOther)
	got, err := b.App.Access.Operators.GetOperator(t.Context(), o.ID)
	if err != nil || len(got.Roles) != 2 || got.Roles[uuid.MustParse(b.WorkspaceID)] != domain.RoleViewer {
		t.Errorf("roles %v, %v", got.Roles, err)
	}
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
