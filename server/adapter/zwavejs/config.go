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

// Config says how a gateway is reached. As JSON it is what an account is kept as; it may hold a password.
type Config struct {
	// URL of the zwave-js-server: ws://host:3000, or wss:// where a proxy in front of it speaks TLS. A user and
	// a password in it are sent as HTTP Basic authentication, for such a proxy.
	URL string `json:"url"`
	// CA is a certificate in PEM that the proxy's may be signed with; empty: those the machine trusts.
	CA string `json:"ca,omitempty"`
	// TimeZone is that of the locks' own clocks, such as Europe/Berlin: the gateway sets them to its own local
	// time. Only where it is given are time frames left to locks that can keep them, because nothing else tells
	// what their clocks show.
	TimeZone string `json:"time_zone,omitempty"`

	Log *slog.Logger `json:"-"` // nil: none

	// Control judges each address before it is dialled, as of net.Dialer. With it no proxy is used. nil: all are good.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// Met is told which gateway has answered, by what it says of itself and whatever address it was reached at, before anything
	// is asked of it or listed; empty: it does not say. Where it fails the gateway is left alone, and tried again. nil: all are good.
	Met func(ctx context.Context, gateway string) error `json:"-"`
}

// gateway is a Config that was checked.
type gateway struct {
	url  string
	zone *time.Location // nil: no time frames
	http *http.Client
	met  func(ctx context.Context, gateway string) error
}

func (c Config) gateway() (gateway, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss") {
		return gateway{}, adapter.Errorf(adapter.Invalid, "the gateway's URL must look like ws://host:3000 or wss://host")
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return gateway{}, adapter.Errorf(adapter.Invalid, "the gateway's CA is not a certificate in PEM")
		}
	}
	// A connection is no WebSocket's only where that was refused: it would be kept, and never used again.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: dialWithin, MaxResponseHeaderBytes: adapter.AnswerHeader,
		DisableKeepAlives: true}
	if c.Control != nil {
		transport.Proxy, transport.DialContext = nil, (&net.Dialer{Timeout: dialWithin, Control: c.Control}).DialContext
	}
	g := gateway{url: c.URL, met: c.Met, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if c.TimeZone != "" {
		if g.zone, err = time.LoadLocation(c.TimeZone); err != nil {
			return gateway{}, adapter.Errorf(adapter.Invalid, "the time zone %q is not known; write one such as Europe/Berlin", c.TimeZone)
		}
	}
	return g, nil
}
