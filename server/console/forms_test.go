package console_test

import (
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// openPage requests a page of the workspace as a role, and returns the status and the body or, after a redirect, where
// that leads.
func openPage(t *testing.T, b *bed, role domain.Role, path string) (status int, result string) {
	t.Helper()
	return resultOf(b.open(t, role, path))
}

// mustOpen is openPage for a page that must exist.
func mustOpen(t *testing.T, b *bed, path string) string {
	t.Helper()
	return b.as(t, domain.RoleViewer).open(path).body
}

// sendForm posts a form with pairs of names and values to a path of the workspace as a role. It returns what openPage
// does.
func sendForm(t *testing.T, b *bed, role domain.Role, path string, fields ...string) (status int, result string) {
	t.Helper()
	return resultOf(b.as(t, role).submit(path, fields...))
}

func resultOf(a answer) (status int, result string) {
	if to := a.Header.Get("Location"); to != "" {
		return a.StatusCode, to
	}
	return a.StatusCode, a.body
}

// mustSend is sendForm for an action that an operator may do and that succeeds. It returns the page that follows.
func mustSend(t *testing.T, b *bed, path string, fields ...string) string {
	t.Helper()
	return b.as(t, domain.RoleOperator).actAndFollow(path, fields...).body
}

// mustContain checks that a page has texts.
func mustContain(t *testing.T, page string, texts ...string) {
	t.Helper()
	answer{&http.Response{StatusCode: http.StatusOK}, page}.shows(t, http.StatusOK, texts...)
}

// mustLack checks that a page does not have texts.
func mustLack(t *testing.T, page string, texts ...string) {
	t.Helper()
	answer{body: page}.hides(t, texts...)
}

// mainPart is the part of a page after its frame.
func mainPart(page string) string { return answer{body: page}.main() }
