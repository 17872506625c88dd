package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

var pathValue = regexp.MustCompile(`\{[^}]*\}`)

// routeURL returns a URL that the pattern of a route matches. Its identifiers exist nowhere, except the workspace.
func (b *bed) routeURL(pattern string) string {
	path := strings.Replace(pattern, "{workspace}", b.WorkspaceID, 1)
	return b.console + "/console" + pathValue.ReplaceAllString(path, uuid.NewString())
}

// Every route admits the roles that include its own, and no other: signed out, without a role in the workspace, and
// with each role.
func TestRoles_EveryRouteEveryRole(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, role := range append([]domain.Role{"", none}, domain.Roles...) {
		t.Run("role "+string(role), func(t *testing.T) {
			t.Parallel()
			for _, r := range console.Routes() {
				if r.Pattern == "/sign-out" { // ends the session of the other routes
					continue
				}
				status, to := b.try(t, r, role, nil)
				if want := expected(r, role); !want(status, to) {
					t.Errorf("%s %s as %q: status %d to %s", r.Method, r.Pattern, role, status, to)
				}
			}
		})
	}
}

// expected returns what the response to a role must be.
func expected(r console.Route, role domain.Role) func(status int, to string) bool {
	signIn := func(status int, to string) bool {
		return status == http.StatusSeeOther && strings.HasPrefix(to, "/console/sign-in")
	}
	admitted := func(status int, to string) bool {
		return status != http.StatusForbidden && status < 500 && !strings.HasPrefix(to, "/console/sign-in")
	}
	switch {
	case r.Public:
		return func(status int, _ string) bool { return status != http.StatusForbidden && status < 500 }
	case role == "":
		return signIn
	case r.Role == "" || role.Includes(r.Role):
		return admitted
	case r.InWorkspace && role == none:
		return func(status int, _ string) bool { return status == http.StatusNotFound }
	}
	return func(status int, _ string) bool { return status == http.StatusForbidden }
}

// No action runs with a form of another site, or without the secret of the session.
func TestActions_RefuseForgedForms(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, r := range console.Routes() {
		if r.Method != http.MethodPost {
			continue
		}
		for what, forge := range map[string]func(*http.Request){
			"from another site": func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "cross-site") },
			"from a sibling":    func(q *http.Request) { q.Header.Set("Sec-Fetch-Site", "same-site") },
			"from another origin": func(q *http.Request) {
				q.Header.Del("Sec-Fetch-Site")
				q.Header.Set("Origin", "https://evil.example")
			},
			"from a page without an origin": func(q *http.Request) {
				q.Header.Del("Sec-Fetch-Site")
				q.Header.Set("Origin", "null")
				q.Body, q.ContentLength = http.NoBody, 0
			},
		} {
			if status, _ := b.try(t, r, domain.RoleAdmin, forge); status != http.StatusForbidden {
				t.Errorf("%s %s: status %d", r.Pattern, what, status)
			}
		}
		if r.Public {
			continue
		}
		withoutSecret := func(q *http.Request) { q.Body, q.ContentLength = http.NoBody, 0 }
		if status, _ := b.try(t, r, domain.RoleAdmin, withoutSecret); status != http.StatusForbidden {
			t.Errorf("%s without the session's secret: status %d", r.Pattern, status)
		}
	}
}

// try sends a request to a route as a role; empty: signed out. change can be nil.
func (b *bed) try(t *testing.T, r console.Route, role domain.Role, change func(*http.Request)) (status int, to string) {
	t.Helper()
	_, secret := b.session(t, role)
	form := url.Values{}
	if r.Method == http.MethodPost {
		form.Set("csrf", secret)
	}
	got := b.send(t, role, r.Method, b.routeURL(r.Pattern), form, change)
	return got.StatusCode, got.Header.Get("Location")
}

// Every page of the navigation exists.
func TestNavigation_LeadsToPages(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, path := range console.Pages() {
		if status := b.open(t, domain.RoleViewer, path).StatusCode; status != http.StatusOK {
			t.Errorf("%q: status %d", path, status)
		}
	}
}
