package webhook_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

func TestSendTest_Advice(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	plain := newSink(t, nil)
	answering := func(code int) string { return newSink(t, status(code)).URL }
	hanging := newSink(t, func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	for name, c := range map[string]struct{ url, problem, advice string }{
		"works":            {plain.URL, "", ""},
		"redirect":         {answering(http.StatusPermanentRedirect), "308", "does not follow redirects"},
		"forbidden":        {answering(http.StatusForbidden), "403", "signatures"},
		"wrong path":       {answering(http.StatusNotFound), "404", "accepts no POST"},
		"gone":             {answering(http.StatusGone), "410", "disables the webhook"},
		"too many":         {answering(http.StatusTooManyRequests), "429", "Retry-After"},
		"broken":           {answering(http.StatusBadGateway), "502", "Check its log"},
		"teapot":           {answering(http.StatusTeapot), "418", "2xx"},
		"slow":             {hanging.URL, "within 2s", "afterwards"},
		"no listener":      {"http://127.0.0.1:1/", "refused", "No process listens"},
		"unknown name":     {"http://nowhere.invalid/", "nowhere.invalid", "name"},
		"wrong authority":  {tls.URL, "certificate", "SSL_CERT_FILE"},
		"no TLS":           {strings.Replace(plain.URL, "http://", "https://", 1), "HTTPS", "does not use TLS"},
		"private":          {"http://10.255.255.1/", "not public", "--allow-webhook-prefix 10.255.255.1/32"},
		"with its own key": {plain.URL + "?token=hush", "", ""},
	} {
		w := b.hook(c.url, "device.added")
		e, err := b.access.Webhooks.GetEndpoint(t.Context(), w.ID)
		b.must(err)
		d := webhook.New(b.access.Webhooks, webhook.Options{AllowPrefixes: loopback, Timeout: 2 * time.Second})
		if name != "slow" {
			// Some resolvers are slow for unknown names.
			d = webhook.New(b.access.Webhooks, webhook.Options{AllowPrefixes: loopback, Timeout: time.Minute})
		}
		got := d.SendTest(t.Context(), e)
		if !strings.Contains(got.Problem, c.problem) || !strings.Contains(got.Advice, c.advice) ||
			(got.Problem == "") != (c.problem == "") ||
			got.Latency <= 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if unsent := map[string]bool{"no listener": true, "unknown name": true, "wrong authority": true, "no TLS": true, "private": true}[name]; got.Sent == unsent {
			t.Errorf("%s: sent: %t", name, got.Sent)
		}
		if n := len(b.deliveries(webhook.Webhook{ID: w.ID})); n != 0 {
			t.Errorf("%s: %d deliveries recorded", name, n)
		}
	}
	m := plain.messages()[0]
	if m.eventType(t) != webhook.TestEvent || !strings.Contains(string(m.body), m.id()) {
		t.Errorf("received %s", m.body)
	}
	all, err := b.access.Webhooks.ListWebhooks(t.Context(), b.p)
	b.must(err)
	var verified bool
	for _, w := range all {
		verified = verified || m.verifies(w.Secret)
	}
	if !verified {
		t.Error("the test event is not signed with the webhook's secret")
	}
}

// The caller of the API need not be the operator of the server.
func TestTestWebhook_HidesBodyAndRefusedAddress(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	sink := newSink(t, func(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, "internal") })
	d := webhook.New(b.access.Webhooks, webhook.Options{AllowPrefixes: loopback, Timeout: time.Minute})
	got, err := d.TestWebhook(t.Context(), b.p, b.hook(sink.URL, "device.added").ID.String())
	if err != nil || !got.Sent || got.Status != http.StatusOK || got.Problem != "" || got.Excerpt != "" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = d.TestWebhook(t.Context(), b.p, b.hook("http://10.255.255.1/", "device.added").ID.String())
	if err != nil || got.Sent || !strings.Contains(got.Problem, "not public") ||
		!strings.Contains(got.Advice, "operator") || strings.Contains(got.Problem+got.Advice, "10.255") {
		t.Errorf("a refused address: %+v, %v", got, err)
	}
	for _, id := range []string{"nope", uuid.NewString()} {
		if _, err := d.TestWebhook(t.Context(), b.p, id); !isNotFound(err) {
			t.Errorf("%s: %v", id, err)
		}
	}
	elsewhere := domain.Principal{WorkspaceID: uuid.New()}
	if _, err := d.TestWebhook(t.Context(), elsewhere, b.hook(sink.URL, "device.added").ID.String()); !isNotFound(err) {
		t.Errorf("another workspace: %v", err)
	}
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*domain.Error](err)
	return ok && e.Kind == domain.NotFound
}

// A holder that has lost the lease of an endpoint sends nothing.
func TestSendTest_LostLease(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	sink := newSink(t, nil)
	w := b.hook(sink.URL, "device.added")
	e, err := b.access.Webhooks.GetEndpoint(t.Context(), w.ID)
	b.must(err)
	d := webhook.New(b.access.Webhooks, webhook.Options{AllowPrefixes: loopback})
	if got := d.SendTest(
		worker.WithLease(t.Context(), &worker.Lease{}),
		e,
	); !strings.Contains(
		got.Problem,
		"another server",
	) ||
		len(sink.messages()) != 0 {
		t.Errorf("%+v, %d messages received", got, len(sink.messages()))
	}
}
