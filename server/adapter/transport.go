package adapter

import (
	"net/http"
	"time"
)

// NewTransport returns an HTTP transport for the cloud of one account, with bounds for unsolicited data.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = MaxResponseHeader
	t.HTTP2 = &http.HTTP2Config{
		// net/http allocates a buffer of the announced frame size when the frame header arrives.
		MaxReadFrameSize: 16 << 10,
		// The default is 4 MiB per unread response.
		MaxReceiveBufferPerStream:     256 << 10,
		MaxReceiveBufferPerConnection: 1 << 20,
		// Many calls share a connection, which may be dead.
		SendPingTimeout: 15 * time.Second,
		PingTimeout:     15 * time.Second,
	}
	return t
}

// WrapTransport wraps the HTTP transport of an adapter. nil changes nothing.
type WrapTransport func(next http.RoundTripper) http.RoundTripper

// Wrap returns the wrapped transport.
func (w WrapTransport) Wrap(next http.RoundTripper) http.RoundTripper {
	if w == nil {
		return next
	}
	return w(next)
}
