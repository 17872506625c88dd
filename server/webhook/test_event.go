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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
)

// TestEvent is the type of the event that SendTest sends. No other event has it.
const TestEvent = "webhook.test"

// TestResult is the result of a test event.
type TestResult struct {
	EventID uuid.UUID
	Sent    bool
	Status  int // HTTP status; 0: no response
	Latency time.Duration
	Excerpt string // beginning of the response body
	Problem string // why the attempt failed; empty: it succeeded
	Advice  string // how to fix the problem
}

// SendTest sends one signed test event to an endpoint immediately and without retries. It records
// nothing and does not change the endpoint's health.
func (d *Deliverer) SendTest(ctx context.Context, e Endpoint) TestResult {
	out, _ := d.sendTest(ctx, e)
	return out
}

// TestWebhook is SendTest for a webhook of the caller's workspace. It fails with NotFound. The result does not reveal
// the response body nor a refused address, because the caller need not be the operator of the server.
func (d *Deliverer) TestWebhook(ctx context.Context, p domain.Principal, id string) (TestResult, error) {
	w, err := d.access.GetWebhook(ctx, p, id)
	if err != nil {
		return TestResult{}, err
	}
	e, err := d.access.GetEndpoint(ctx, w.ID)
	if err != nil {
		return TestResult{}, err
	}
	out, cause := d.sendTest(ctx, e)
	out.Excerpt = ""
	if isProhibited(cause) {
		out.Advice = "Use a public address, or ask the operator of the server to allow this one."
	}
	return out, nil
}

// sendTest returns also why there was no response.
func (d *Deliverer) sendTest(ctx context.Context, e Endpoint) (_ TestResult, cause error) {
	now := time.Now().UTC()
	event := event.Event{
		ID:          uuid.Must(uuid.NewV7()),
		Type:        TestEvent,
		WorkspaceID: e.WorkspaceID,
		OccurredAt:  now,
		CreatedAt:   now,
		Fields:      json.RawMessage(`{"webhook_id":"` + e.ID.String() + `"}`),
	}
	var sent atomic.Bool
	a := d.send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}), e,
		event)
	out := TestResult{
		EventID: event.ID,
		Sent:    sent.Load(),
		Status:  a.status,
		Latency: a.latency,
		Excerpt: a.excerpt,
		Problem: a.problem,
	}
	if !a.ok() {
		out.Advice = advice(a.status, a.cause)
	}
	return out, a.cause
}

// advice returns how to fix a failure.
func advice(status int, cause error) string {
	switch {
	case status == 0:
		return adviceOn(cause)
	case status/100 == 3:
		return "The server does not follow redirects. Create the webhook with the final URL."
	case status == http.StatusBadRequest, status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "If the receiver checks signatures, it needs this webhook's secret and the raw body, " +
			"and its clock may be at most 5 minutes off. " +
			"If a proxy in front of it requires a login, exempt this path."
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return "This path accepts no POST request. " +
			"Create another webhook with the right path, because a webhook's URL cannot be changed."
	case status == http.StatusGone:
		return "In response to a real event, 410 Gone disables the webhook. Return it only to stop all deliveries."
	case status == http.StatusTooManyRequests:
		return "The receiver limits its request rate. The server retries real events after the time in Retry-After."
	case status >= http.StatusInternalServerError:
		return "The receiver failed. Check its log for the cause."
	}
	return "The receiver must answer 2xx once it has accepted an event."
}

// prefixFor returns the prefix that allows the refused address.
func prefixFor(cause error) string {
	if dial, ok := errors.AsType[*net.OpError](cause); ok && dial.Addr != nil {
		if to, err := netip.ParseAddrPort(dial.Addr.String()); err == nil {
			return PrefixOf(to.Addr()).String()
		}
	}
	return "127.0.0.0/8"
}

func adviceOn(cause error) string {
	switch {
	case isProhibited(cause):
		return "Pass the server's --allow-webhook-prefix to this command as well, " +
			"or start the server with one, such as --allow-webhook-prefix " + prefixFor(cause) + "."
	case errors.Is(cause, context.DeadlineExceeded), errors.Is(cause, os.ErrDeadlineExceeded):
		return "Let the receiver accept the event, answer 200, and process it afterwards. " +
			"If nothing arrives at the receiver, check for a firewall in between."
	case errors.Is(cause, syscall.ECONNREFUSED):
		return "No process listens at this address. Start the receiver, and check the host and the port of the webhook's URL."
	}
	if _, ok := errors.AsType[*net.DNSError](cause); ok {
		return "The server cannot resolve the host name. Check its spelling and the name servers."
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](cause); ok {
		return "Give the receiver a currently valid certificate for this host from an authority that the server trusts. " +
			"SSL_CERT_FILE names additional ones."
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](cause); ok {
		return "Give the receiver a certificate from an authority that the server trusts. " +
			"SSL_CERT_FILE names additional ones."
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](cause); ok || errors.Is(cause, http.ErrSchemeMismatch) {
		return "This port does not use TLS. Create the webhook with http:// or with the TLS port."
	}
	return "Check the webhook's URL, and whether the server can reach it."
}
