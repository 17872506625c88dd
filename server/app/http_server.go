package app

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
)

// Limits of a single connection. See server/docs/limits.md, and package admission for limits of all connections.
const (
	headerTimeout   = 10 * time.Second // reading the header, from its first byte
	requestTimeout  = 60 * time.Second // reading header and body
	responseTimeout = 60 * time.Second // handling a request and writing a short response
	idleTimeout     = 2 * time.Minute
	maxHeader       = 64 << 10
	// http2Buffer is the maximum size of unread request bodies of one HTTP/2 connection, and of one request. Package
	// admission does not count them. net/http allows no less for a connection. For a request, clients may send 65,535
	// bytes before they know the limit (RFC 9113, section 6.9.2).
	http2Buffer = 64 << 10
)

// newHTTP returns an HTTP server with timeouts for every phase of a connection.
func newHTTP(log *slog.Logger) *http.Server {
	return &http.Server{
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      responseTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          http2Streams,
			MaxReceiveBufferPerConnection: http2Buffer,
			MaxReceiveBufferPerStream:     http2Buffer,
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// serveLimited serves h on l within limits until s is stopped.
func serveLimited(s *http.Server, h http.Handler, limits admission.Limits, l net.Listener) error {
	clients := admission.New(limits)
	s.Handler = clients.Limit(h)
	return clients.Serve(s, l)
}
