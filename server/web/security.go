// Package web has what the server's pages for people share: embedded files, security headers, and the check of a form's
// origin. It must not know what a page shows.
package web

import (
	"net/http"
	"net/url"
	"strings"
)

// SetSecurityHeaders sets the headers of a page. The page contains nothing inline and nothing of other sites, does not
// leak its URL, is not cached, and cannot be framed, so that people see to whom they give a password. Its forms can
// lead to the server itself and, by redirects, to the given origins.
func SetSecurityHeaders(header http.Header, formOrigins ...string) {
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action "+strings.Join(append([]string{"'self'"}, formOrigins...), " ")+
		"; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Robots-Tag", "noindex, nofollow")
}

// Address says how people reach the server.
type Address struct {
	// PublicURL is the URL at which people reach the server. If empty, each request's own URL is used.
	PublicURL string
	// TrustForwarded reports whether X-Forwarded-Host and X-Forwarded-Proto come from a trusted proxy.
	TrustForwarded bool
}

// Host returns the host to which the browser sent the request.
func (a Address) Host(r *http.Request) string {
	if u, err := url.Parse(a.PublicURL); err == nil && u.Host != "" {
		return u.Host
	}
	if first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Host"), ","); a.TrustForwarded && first != "" {
		return strings.TrimSpace(first)
	}
	return r.Host
}

// IsSecure reports whether the browser uses HTTPS.
func (a Address) IsSecure(r *http.Request) bool {
	if u, err := url.Parse(a.PublicURL); err == nil && u.Host != "" {
		return u.Scheme == "https"
	}
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || a.TrustForwarded && strings.TrimSpace(first) == "https"
}

// Origin is where a form comes from, as far as the browser says.
type Origin int

// The origins of forms.
const (
	// UnknownOrigin is that of old browsers and, by plain HTTP, of every page without a referrer, also of another
	// site. A secret that only a page of this server knows must then suffice.
	UnknownOrigin Origin = iota
	OwnOrigin
	ForeignOrigin
)

// FormOrigin returns where the form of a POST request comes from. Browsers send Sec-Fetch-Site only by HTTPS and to the
// same machine. SetSecurityHeaders makes them send the Origin "null" with the server's own forms.
func (a Address) FormOrigin(r *http.Request) Origin {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "":
	case "same-origin", "none": // none: the person resends it, for example by reopening a window
		return OwnOrigin
	default:
		return ForeignOrigin
	}
	origin := r.Header.Get("Origin")
	if origin == "" || origin == "null" {
		return UnknownOrigin
	}
	if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Host, a.Host(r)) {
		return OwnOrigin
	}
	return ForeignOrigin
}

// HTMXConfig disables the features of htmx that the content security policy forbids, and shows error responses like
// others.
const HTMXConfig = `{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"historyEnabled":false,` +
	`"responseHandling":[{"code":"204","swap":false},{"code":"...","swap":true}]}`
