package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// TestEvent is the type of the event that Try sends. It is ours, and in no list of events.
const TestEvent = "webhook.test"

// Trial is what a test event has come to.
type Trial struct {
	EventID uuid.UUID
	Sent    bool
	Status  int // of HTTP; 0: there was no answer
	Latency time.Duration
	Excerpt string // how the response's body begins
	Problem string // why it counts as a failure; empty: it does not
	Advice  string // what to do about it
}

// Try sends an event of its own to an endpoint, signed like all, at once and once. It is no delivery: nothing is
// recorded, and the endpoint is none the better or worse for it.
func (d *Deliverer) Try(ctx context.Context, e access.Endpoint) Trial {
	now := time.Now().UTC()
	event := access.Event{ID: uuid.Must(uuid.NewV7()), Type: TestEvent, WorkspaceID: e.WorkspaceID, OccurredAt: now, CreatedAt: now,
		Fields: json.RawMessage(`{"webhook_id":"` + e.ID.String() + `"}`)}
	var sent atomic.Bool
	a := d.send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}), e, event)
	out := Trial{EventID: event.ID, Sent: sent.Load(), Status: a.status, Latency: a.latency, Excerpt: a.excerpt, Problem: a.problem}
	if !a.ok() {
		out.Advice = advice(a.status, a.cause)
	}
	return out
}

// advice is what a failure can be mended by.
func advice(status int, cause error) string {
	switch {
	case status == 0:
		return adviceOn(cause)
	case status/100 == 3:
		return "Redirects are not followed. Make the webhook with the address that this one redirects to."
	case status == http.StatusBadRequest, status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "If the receiver checks signatures, it needs this webhook's secret and the body as it came, before it is parsed; its clock may be 5 minutes off. " +
			"If something in front of it asks for a login, let this path pass."
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return "Nothing takes a POST at this path. A webhook's URL cannot be changed: make another one with the right path."
	case status == http.StatusGone:
		return "To a real event this answer disables the webhook. Let the endpoint give it only when it is to be given up."
	case status == http.StatusTooManyRequests:
		return "The receiver asks for fewer requests. Real events are tried again, as late as its Retry-After says."
	case status >= http.StatusInternalServerError:
		return "The receiver has failed: its own log says why."
	}
	return "The receiver has to answer 2xx once it has taken an event."
}

// prefixFor is what allows the address that was refused.
func prefixFor(cause error) string {
	if dial, ok := errors.AsType[*net.OpError](cause); ok && dial.Addr != nil {
		if to, err := netip.ParseAddrPort(dial.Addr.String()); err == nil {
			return access.PrefixOf(to.Addr()).String()
		}
	}
	return "127.0.0.0/8"
}

func adviceOn(cause error) string {
	switch {
	case isProhibited(cause):
		return "Give this command the --allow-webhook-prefix that the server has, or start the server with one, such as --allow-webhook-prefix " + prefixFor(cause) + "."
	case errors.Is(cause, context.DeadlineExceeded), errors.Is(cause, os.ErrDeadlineExceeded):
		return "Let the receiver take the event, answer 200, and do its work afterwards. If nothing arrives there at all, a firewall may be in the way."
	case errors.Is(cause, syscall.ECONNREFUSED):
		return "Nothing listens there. Start the receiver, and check the host and the port of the webhook's URL."
	}
	if _, ok := errors.AsType[*net.DNSError](cause); ok {
		return "The name is not known to this machine. Check how the host is spelled, and the name servers."
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](cause); ok {
		return "Give the receiver a certificate for this host that is valid now and from an authority that this machine trusts; SSL_CERT_FILE names further ones."
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](cause); ok {
		return "Give the receiver a certificate from an authority that this machine trusts; SSL_CERT_FILE names further ones."
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](cause); ok || errors.Is(cause, http.ErrSchemeMismatch) {
		return "There is no TLS at this port: make the webhook with http://, or with the port that has it."
	}
	return "Check the webhook's URL, and whether this machine can reach it."
}
