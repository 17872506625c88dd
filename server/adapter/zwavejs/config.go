package zwavejs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Config configures the connection to a gateway. Accounts store it as JSON; it may contain a password.
type Config struct {
	// URL is the address of the zwave-js-server: ws://host:3000, or wss:// for a proxy in front of it that speaks
	// TLS. A user and a password in the URL are sent as HTTP Basic authentication to such a proxy.
	URL string `json:"url"`
	// CA is a PEM certificate that verifies the proxy's; empty to use the system's.
	CA string `json:"ca,omitempty"`
	// TimeZone is the time zone of the locks' clocks, such as Europe/Berlin: the gateway sets them to its own local
	// time. Only with a TimeZone do locks apply time frames, because the protocol does not report the zone of their
	// clocks.
	TimeZone string `json:"time_zone,omitempty"`

	// Log defaults to no logging.
	Log *slog.Logger `json:"-"`

	// Control checks each address before it is dialed, as in net.Dialer. With it, no proxy is used. nil accepts all.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// CheckGateway receives the identity that the gateway reports, independent of the address, before anything is
	// requested from it or listed; empty if the gateway reports none. While it fails, the gateway is not used, and
	// the check is repeated. nil accepts all.
	CheckGateway func(ctx context.Context, gateway string) error `json:"-"`
}

// gateway is the validated form of a Config.
type gateway struct {
	url          string
	zone         *time.Location // nil: no time frames
	http         *http.Client
	checkGateway func(ctx context.Context, gateway string) error
}

func (c Config) gateway() (gateway, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss") {
		return gateway{}, adapter.Errorf(adapter.Invalid,
			"the gateway's URL must look like ws://host:3000 or wss://host")
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return gateway{}, adapter.Errorf(adapter.Invalid, "the gateway's CA is not a certificate in PEM")
		}
	}
	// After a rejected upgrade, the connection would be kept and never reused.
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: adapter.MaxResponseHeader,
		DisableKeepAlives:      true,
	}
	if c.Control != nil {
		transport.Proxy, transport.DialContext = nil, (&net.Dialer{Timeout: dialTimeout, Control: c.Control}).DialContext
	}
	g := gateway{url: c.URL, checkGateway: c.CheckGateway, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if c.TimeZone != "" {
		if g.zone, err = time.LoadLocation(c.TimeZone); err != nil {
			return gateway{}, adapter.Errorf(adapter.Invalid,
				"the time zone %q is not known; write one such as Europe/Berlin", c.TimeZone)
		}
	}
	return g, nil
}
