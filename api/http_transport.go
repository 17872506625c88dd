package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

// NewTransport returns a transport that sends a request once. It limits connecting to ten seconds, and the wait for a
// response to one minute. It trusts the certificate authorities in roots, or those of the system if roots is nil.
func NewTransport(roots *x509.CertPool) http.RoundTripper {
	transport := newTransport()
	if roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return sending{transport}
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: proxyAnswered,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    16, // Terraform works on ten resources concurrently
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  time.Minute,
	}
}

// sending sends a request once, and marks the error of a request that was not sent.
type sending struct{ next *http.Transport }

func (t sending) RoundTrip(req *http.Request) (*http.Response, error) {
	var connected atomic.Bool
	req = req.Clone(
		httptrace.WithClientTrace(
			req.Context(),
			&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }},
		),
	)
	if key := req.Header[keyHeader]; key != nil {
		// With the canonical name, http.Transport resends the request if its connection breaks. That is safe only if the
		// server supports keys, which is unknown here. Servers ignore the case of the name.
		delete(req.Header, keyHeader)
		req.Header[strings.ToLower(keyHeader)] = key
	}
	resp, err := t.next.RoundTrip(req)
	if odd, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(odd.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch // as http.Client reports it, which does not unwrap errors
	}
	if err != nil && (!connected.Load() || IsTLSRejected(err)) {
		err = notConnected{err}
	}
	return resp, err
}

// notConnected is the error of a request that was not sent.
type notConnected struct{ error }

func (e notConnected) Unwrap() error { return e.error }

// IsNotConnected reports whether the last try was not sent, because there was no connection to the server.
func IsNotConnected(err error) bool {
	_, ok := errors.AsType[notConnected](err)
	dial, failed := errors.AsType[*net.OpError](err)
	return ok || failed && dial.Op == "dial" // an error of any transport
}

// IsUntrusted reports whether the request was not sent, because the server's TLS certificate is invalid or has
// another name, or because the server does not speak TLS.
func IsUntrusted(err error) bool {
	_, bad := errors.AsType[*tls.CertificateVerificationError](err)
	return bad || errors.Is(err, http.ErrSchemeMismatch)
}

// tlsRejections are the TLS alerts with which a server rejects a connection before it reads a request: it requires another
// certificate, version or name. In TLS 1.3 they arrive after the client's part of the handshake.
var tlsRejections = []tls.AlertError{
	40, /* handshake failure */
	42, /* bad certificate */
	43,
	44,
	45,
	46,
	48, /* unknown authority */
	49, /* access denied */
	70, /* version */
	71,
	112, /* name */
	116, /* certificate required */
	120,
}

// IsTLSRejected reports whether the request was not sent, because the server rejected the TLS connection, for example
// because the client has no certificate.
func IsTLSRejected(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	return ok && alert.Op == "remote error" &&
		slices.ContainsFunc(tlsRejections, func(r tls.AlertError) bool { return alert.Err.Error() == r.Error() })
}

// refusedByProxy is a proxy's rejection of the CONNECT request.
type refusedByProxy struct {
	proxy  string
	status int
}

func (e refusedByProxy) Error() string {
	return fmt.Sprintf(
		"the proxy %s does not connect to the server: %d %s",
		e.proxy,
		e.status,
		http.StatusText(e.status),
	)
}

// proxyAnswered turns a proxy's rejection into an error.
func proxyAnswered(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return refusedByProxy{proxy.Host, resp.StatusCode}
	}
	return nil
}

// IsAboutProxy reports whether the request was not sent, because the proxy is unreachable or rejects it.
func IsAboutProxy(err error) bool {
	_, refused := errors.AsType[refusedByProxy](err)
	away, ok := errors.AsType[*net.OpError](err)
	return refused || ok && (away.Op == "proxyconnect" || away.Op == "socks connect")
}

// IsProxyAuthRequired reports whether the request was not sent, because the proxy requires authentication.
func IsProxyAuthRequired(err error) bool {
	refused, ok := errors.AsType[refusedByProxy](err)
	return ok && refused.status == http.StatusProxyAuthRequired
}
