package connectpage

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// bodyLimit is more than anybody has to enter.
const bodyLimit = 16 << 10

// guard sets what every answer says to browsers. Nothing on a page is inline or of another site; no other site learns
// its URL; none shows it in a frame, where a person cannot see whom they give a password to.
func guard(header http.Header) {
	header.Set("Content-Security-Policy", policy(""))
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Robots-Tag", "noindex, nofollow")
}

// policy lets forms lead to the page itself and, by way of a redirect, to those origins.
func policy(origins string) string {
	return "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'" + origins +
		"; base-uri 'none'; frame-ancestors 'none'"
}

// allowRedirects lets the page's forms end where the webview sends the person. Their hosts were checked when it was made.
func allowRedirects(header http.Header, w access.Webview) {
	origins := ""
	for _, text := range []string{w.RedirectURL, w.FailureURL} {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			origins += " " + u.Scheme + "://" + u.Host
		}
	}
	header.Set("Content-Security-Policy", policy(origins))
}

// ownOrigin says whether a form was sent from our own page, as far as the browser tells. The token in the URL is what
// keeps others out: where there is no origin (it is "null", since the page has no referrer) that has to do.
func (h *handler) ownOrigin(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin" || site == "none" // of none: the person repeats it, such as by opening a window again
	}
	origin := r.Header.Get("Origin")
	if origin == "" || origin == "null" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, h.host(r))
}

// host is where the browser has sent the request.
func (h *handler) host(r *http.Request) string {
	if u, err := url.Parse(h.PublicURL); err == nil && u.Host != "" {
		return u.Host
	}
	if first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Host"), ","); h.TrustForwarded && first != "" {
		return strings.TrimSpace(first)
	}
	return r.Host
}
