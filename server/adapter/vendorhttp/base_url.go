package vendorhttp

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// BaseURL returns the canonical form of a URL for Client.Base that an operator entered. It accepts http only for the own
// machine, because credentials must not travel in clear. Its errors do not quote the URL, which may contain a password.
func BaseURL(entered string) (string, error) {
	u, err := url.Parse(strings.TrimRight(strings.TrimSpace(entered), "/"))
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http":
		return "", errors.New("not a URL such as https://api.example.com")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "", errors.New("credentials must not travel in clear; use https")
	}
	host := adapter.NormalizeHost(u.Hostname())
	if port := u.Port(); port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host = net.JoinHostPort(host, port)
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + u.Path, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.IsLoopback()
}
