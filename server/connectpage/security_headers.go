package connectpage

import (
	"net/http"
	"net/url"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/web"
)

// bodyLimit bounds the size of a form in bytes.
const bodyLimit = 16 << 10

// allowRedirects allows forms to redirect to the URLs of the webview. Their hosts were checked when the webview was
// created.
func allowRedirects(header http.Header, w account.Webview) {
	var origins []string
	for _, text := range []string{w.RedirectURL, w.FailureURL} {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			origins = append(origins, u.Scheme+"://"+u.Host)
		}
	}
	web.SetSecurityHeaders(header, origins...)
}

// address says how people reach the pages.
func (h *handler) address() web.Address {
	return web.Address{PublicURL: h.PublicURL, TrustForwarded: h.TrustForwarded}
}
