package connectpage

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The cookie of a login goes to the return path only, also below the path of a public URL, and over TLS only where the
// server is reached over TLS. It does not reveal the state.
func TestBrowserCookie(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		public, forwarded string
		path              string
		secure            bool
	}{
		"the request's own URL": {path: "/connect/back"},
		"a proxy with TLS":      {forwarded: "https", path: "/connect/back", secure: true},
		"a public URL":          {public: "https://locks.example.com", path: "/connect/back", secure: true},
		"a path prefix":         {public: "https://example.com/locks/", path: "/locks/connect/back", secure: true},
		"a public URL without":  {public: "http://locks.internal:8080", path: "/connect/back"},
	} {
		h := &handler{Options{PublicURL: c.public, TrustForwarded: true}}
		r := httptest.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			"http://locks.internal/connect/x/y/authorize",
			nil,
		)
		r.Header.Set("X-Forwarded-Proto", c.forwarded)
		got := h.browserCookie(r, "the-state", "value", time.Minute)
		if got.Path != c.path || got.Secure != c.secure || !got.HttpOnly || got.SameSite != http.SameSiteLaxMode ||
			got.MaxAge != 60 || strings.Contains(got.String(), "the-state") || got.Valid() != nil {
			t.Errorf("%s: %s, %v", name, got, got.Valid())
		}
		if gone := h.browserCookie(
			r,
			"the-state",
			"",
			0,
		); gone.MaxAge >= 0 || gone.Name != got.Name ||
			gone.Path != got.Path {
			t.Errorf("%s: it is not deleted: %s", name, gone)
		}
		if other := h.browserCookie(r, "another", "value", time.Minute); other.Name == got.Name {
			t.Errorf("%s: two logins share a cookie", name)
		}
	}
}
