package app

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
)

// What a client may take: see server/docs/limits.md, and package crowd for how many there may be.
const (
	headerWithin  = 10 * time.Second // from the first byte
	requestWithin = 60 * time.Second // header and body
	answerWithin  = 60 * time.Second // to work on a request, and to send a short answer
	idleFor       = 2 * time.Minute
	maxHeader     = 64 << 10
)

// newHTTP is a server of HTTP that waits for nobody for ever.
func newHTTP(log *slog.Logger) *http.Server {
	return &http.Server{ReadHeaderTimeout: headerWithin, ReadTimeout: requestWithin, WriteTimeout: answerWithin,
		IdleTimeout: idleFor, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// serveLimited has s serve on l until it is stopped, within limits.
func serveLimited(s *http.Server, h http.Handler, limits admission.Limits, l net.Listener) error {
	clients := admission.New(limits)
	s.Handler = clients.Limit(h)
	return clients.Serve(s, l)
}
