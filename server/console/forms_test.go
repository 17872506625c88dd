package console_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// openPage requests a page of the workspace as a role, and returns the status and the body.
func openPage(t *testing.T, b *bed, role domain.Role, path string) (int, string) {
	t.Helper()
	return roundTrip(t, b, role, http.MethodGet, b.page(path), nil)
}

// mustOpen is openPage for a page that must exist.
func mustOpen(t *testing.T, b *bed, path string) string {
	t.Helper()
	status, body := openPage(t, b, domain.RoleViewer, path)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d\n%s", path, status, body)
	}
	return body
}

// sendForm posts a form with pairs of names and values to a path of the workspace as a role. It returns the status and
// the body or, after a redirect, where that leads.
func sendForm(t *testing.T, b *bed, role domain.Role, path string, fields ...string) (status int, result string) {
	t.Helper()
	_, secret := b.session(t, role)
	form := url.Values{"csrf": {secret}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return roundTrip(t, b, role, http.MethodPost, b.page(path), form)
}

// mustSend is sendForm for an action that an operator may do and that succeeds. It returns the page that follows.
func mustSend(t *testing.T, b *bed, path string, fields ...string) string {
	t.Helper()
	status, to := sendForm(t, b, domain.RoleOperator, path, fields...)
	if status != http.StatusSeeOther {
		t.Fatalf("POST %s: %d\n%s", path, status, to)
	}
	_, body := roundTrip(t, b, domain.RoleOperator, http.MethodGet, b.console+to, nil)
	return body
}

func roundTrip(t *testing.T, b *bed, role domain.Role, method, to string, form url.Values) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, to, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	token, _ := b.session(t, role)
	r.AddCookie(&http.Cookie{Name: "deviceaccess", Value: token})
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "" {
		return resp.StatusCode, to
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// mustContain checks that a page has texts.
func mustContain(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q:\n%s", text, mainPart(page))
		}
	}
}

// mustLack checks that a page does not have texts.
func mustLack(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q:\n%s", text, mainPart(page))
		}
	}
}

// mainPart is the part of a page after its frame.
func mainPart(page string) string {
	_, rest, found := strings.Cut(page, "<main")
	if !found {
		return page
	}
	return rest
}
