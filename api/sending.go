package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// NewTransport is HTTP with limits on how long a server may keep silent: ten seconds to connect, a minute to
// begin an answer.
func NewTransport() http.RoundTripper { return sending{newTransport()} }

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: proxyAnswered,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    16, // Terraform works on ten resources at once
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  time.Minute,
	}
}

// sending sends a request once, and says of one that was not sent that it was not.
type sending struct{ next *http.Transport }

func (t sending) RoundTrip(req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	req = req.Clone(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}))
	if key := req.Header[keyHeader]; key != nil {
		// An entry of this name allows http.Transport to send the request again where its connection breaks, and whether that is
		// harmless is not known here. To servers the name is the same.
		delete(req.Header, keyHeader)
		req.Header[strings.ToLower(keyHeader)] = key
	}
	resp, err := t.next.RoundTrip(req)
	if odd, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(odd.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch // as http.Client has it, which does not look at what is wrapped
	}
	if err != nil && (!connected.Load() || IsTurnedAway(err)) {
		err = notConnected{err}
	}
	return resp, err
}

// notConnected is what has kept a request from being sent.
type notConnected struct{ error }

func (e notConnected) Unwrap() error { return e.error }

// IsNotConnected says that the last try of a request was not sent, because there was no connection to the server.
func IsNotConnected(err error) bool {
	_, ok := errors.AsType[notConnected](err)
	dial, failed := errors.AsType[*net.OpError](err)
	return ok || failed && dial.Op == "dial" // of any transport
}

// IsUntrusted says that no request was sent, because the server's TLS certificate is not to be trusted or is not
// of that name, or because the server does not speak TLS at all.
func IsUntrusted(err error) bool {
	_, bad := errors.AsType[*tls.CertificateVerificationError](err)
	return bad || errors.Is(err, http.ErrSchemeMismatch)
}

// refusals are the TLS alerts by which a server refuses a connection before it reads any request from it: it demands
// another certificate, version or name. In TLS 1.3 they come when the client is done with its part of the handshake.
var refusals = []tls.AlertError{
	40 /* handshake failure */, 42 /* bad certificate */, 43, 44, 45, 46, 48 /* unknown authority */, 49, /* access denied */
	70 /* version */, 71, 112 /* name */, 116 /* certificate required */, 120,
}

// IsTurnedAway says that no request was sent, because the server has refused the TLS connection, such as for want of a
// certificate of the client.
func IsTurnedAway(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "remote error" && slices.ContainsFunc(refusals, func(r tls.AlertError) bool { return alert.Err.Error() == r.Error() })
}

// refusedByProxy is a proxy's answer to the request for a connection to the server.
type refusedByProxy struct {
	proxy  string
	status int
}

func (e refusedByProxy) Error() string {
	return fmt.Sprintf("the proxy %s does not connect to the server: %d %s", e.proxy, e.status, http.StatusText(e.status))
}

func proxyAnswered(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return refusedByProxy{proxy.Host, resp.StatusCode}
	}
	return nil
}

// IsAboutProxy says that no request was sent, because the proxy before the server cannot be reached or refuses.
func IsAboutProxy(err error) bool {
	_, refused := errors.AsType[refusedByProxy](err)
	away, ok := errors.AsType[*net.OpError](err)
	return refused || ok && (away.Op == "proxyconnect" || away.Op == "socks connect")
}

// IsProxyPasswordWanted says that no request was sent, because the proxy before the server wants to know whose it is.
func IsProxyPasswordWanted(err error) bool {
	refused, ok := errors.AsType[refusedByProxy](err)
	return ok && refused.status == http.StatusProxyAuthRequired
}
