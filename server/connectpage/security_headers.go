package connectpage

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
)

// bodyLimit bounds the size of a form in bytes.
const bodyLimit = 16 << 10

// setSecurityHeaders sets the security headers. Pages contain nothing inline and nothing of other sites, do not leak their URL,
// and cannot be framed, so that people see to whom they give a password.
func setSecurityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", policy(""))
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Robots-Tag", "noindex, nofollow")
}

// policy returns the content security policy. Forms can lead to the page itself and, by redirect, to origins.
func policy(origins string) string {
	return "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'" + origins +
		"; base-uri 'none'; frame-ancestors 'none'"
}

// allowRedirects allows forms to redirect to the URLs of the webview. Their hosts were checked when the webview was
// created.
func allowRedirects(header http.Header, w account.Webview) {
	origins := ""
	for _, text := range []string{w.RedirectURL, w.FailureURL} {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			origins += " " + u.Scheme + "://" + u.Host
		}
	}
	header.Set("Content-Security-Policy", policy(origins))
}

// ownOrigin reports whether a form comes from this page, as far as the browser says. If there is no origin (it is
// "null", because the page has no referrer), the secret token in the URL must suffice.
func (h *handler) ownOrigin(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin" || site == "none" // none: the person resends it, for example by reopening a window
	}
	origin := r.Header.Get("Origin")
	if origin == "" || origin == "null" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, h.host(r))
}

// host returns the host to which the browser sent the request.
func (h *handler) host(r *http.Request) string {
	if u, err := url.Parse(h.PublicURL); err == nil && u.Host != "" {
		return u.Host
	}
	if first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Host"), ","); h.TrustForwarded && first != "" {
		return strings.TrimSpace(first)
	}
	return r.Host
}
