package console_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// answer is a response of the console.
type answer struct {
	*http.Response
	body string
}

// send sends a request with the session of a role, and does not follow redirects. change can be nil.
func (b *bed) send(
	t *testing.T,
	role domain.Role,
	method, address string,
	form url.Values,
	change func(*http.Request),
) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if token, _ := b.session(t, role); token != "" {
		r.AddCookie(&http.Cookie{Name: "deviceaccess", Value: token})
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return answer{resp, ""} // it does not end
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp, string(body)}
}

// open requests a page of the workspace as a role.
func (b *bed) open(t *testing.T, role domain.Role, path string) answer {
	t.Helper()
	return b.send(t, role, http.MethodGet, b.page(path), nil, nil)
}

// submit sends a form to a path of the workspace, with the secret of the session.
func (b *bed) submit(t *testing.T, role domain.Role, path string, fields url.Values) answer {
	t.Helper()
	if fields == nil {
		fields = url.Values{}
	}
	_, secret := b.session(t, role)
	fields.Set("csrf", secret)
	return b.send(t, role, http.MethodPost, b.page(path), fields, nil)
}

// shows fails the test unless the page has the status and contains all texts.
func (a answer) shows(t *testing.T, status int, texts ...string) {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", a.StatusCode, status, a.main())
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page lacks %q:\n%s", text, a.main())
		}
	}
}

// hides fails the test if the page contains one of the texts.
func (a answer) hides(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("the page contains %q:\n%s", text, a.main())
		}
	}
}

// redirects fails the test unless the response leads to a path of the workspace.
func (a answer) redirects(t *testing.T, b *bed, path string) {
	t.Helper()
	to := strings.TrimPrefix(a.Header.Get("Location"), "/console/w/"+b.WorkspaceID)
	if a.StatusCode != http.StatusSeeOther || to != path {
		t.Fatalf("status %d to %q, want %q: %s", a.StatusCode, to, path, a.main())
	}
}

// main returns the part of the page after its frame.
func (a answer) main() string {
	_, main, found := strings.Cut(a.body, "<main")
	if !found {
		return a.body
	}
	return main
}

// visitor uses pages of the workspace with the session of a role.
type visitor struct {
	*bed
	t    *testing.T
	role domain.Role
}

func (b *bed) as(t *testing.T, role domain.Role) visitor { return visitor{b, t, role} }

// open requests a page, which must exist.
func (v visitor) open(path string) answer {
	v.t.Helper()
	got := v.bed.open(v.t, v.role, path)
	got.shows(v.t, http.StatusOK)
	return got
}

// submit sends a form with pairs of names and values.
func (v visitor) submit(path string, pairs ...string) answer {
	v.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return v.bed.submit(v.t, v.role, path, form)
}

// act submits a form that must redirect, and returns where to.
func (v visitor) act(path string, pairs ...string) (location string) {
	v.t.Helper()
	got := v.submit(path, pairs...)
	got.shows(v.t, http.StatusSeeOther)
	return got.Header.Get("Location")
}

// actAndFollow is act, and returns the page that follows.
func (v visitor) actAndFollow(path string, pairs ...string) answer {
	v.t.Helper()
	return v.send(v.t, v.role, http.MethodGet, v.console+v.act(path, pairs...), nil, nil)
}
