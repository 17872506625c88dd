package traces_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces/tracestest"
)

// A code goes from the request to the lock, and its events go to an endpoint. One trace has all of it, and no trace
// header reaches a vendor or an endpoint.
func TestTraceFromRequestToEndpoint(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var carried []string // trace headers in outgoing requests
	watch := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/sandbox/") || strings.HasPrefix(r.URL.Path, "/hook") {
				mu.Lock()
				carried = append(
					carried,
					r.Header.Get("Traceparent")+r.Header.Get("Tracestate")+r.Header.Get("Baggage"),
				)
				mu.Unlock()
			}
			next.ServeHTTP(w, r)
		})
	}
	endpoint := httptest.NewServer(watch(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	t.Cleanup(endpoint.Close)
	s, r := start(t, wrapped(watch))
	device := s.Device(t, "august")
	var hook struct {
		Webhook struct {
			ID     string `json:"webhook_id"`
			Secret string `json:"secret"`
		} `json:"webhook"`
	}
	s.Post(
		t,
		"/webhooks/create",
		map[string]any{
			"url":         endpoint.URL + "/hook/" + canary + "?key=" + canary,
			"event_types": []string{"access_code.created", "access_code.set_on_device"},
		},
		&hook,
	)
	header := apptest.Bearer(s.APIKey)
	header.Set("Traceparent", parent(true))
	isRequest := func(s tracestest.Span) bool {
		return s.Name == "POST /access_codes/create" && s.TraceID == theirTrace
	}
	onDevice := func(s tracestest.Span) bool {
		return s.Name == "work device" && s.Attributes["deviceaccess.device_id"] == device
	}
	codes, whole := 0, false
	// running work picks up codes that arrive meanwhile; their spans belong to that work
	for !whole && codes < 20 {
		codes++
		if res := s.Send(
			t,
			http.MethodPost,
			"/access_codes/create",
			header,
			fmt.Sprintf(`{"device_id":%q,"code":"%d","name":%q}`, device, 481500+codes, canary),
			nil,
		); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		var made, set []tracestest.Span
		apptest.Until(t, "all spans that led to the deliveries were received", func() bool {
			made = r.Spans(
				tracestest.Named("deliver"),
				tracestest.With("deviceaccess.event_type", "access_code.created"),
			)
			set = r.Spans(
				tracestest.Named("deliver"),
				tracestest.With("deviceaccess.event_type", "access_code.set_on_device"),
			)
			return len(made) == codes && len(set) == codes &&
				!slices.ContainsFunc(append(made, set...), func(s tracestest.Span) bool { return !complete(r, s) })
		})
		from := func(meant func(tracestest.Span) bool) func(tracestest.Span) bool {
			return func(s tracestest.Span) bool { return comesFrom(r, s, meant, "work outbox", "work endpoint") }
		}
		whole = slices.ContainsFunc(made, from(isRequest)) && slices.ContainsFunc(set, from(onDevice))
		for name, want := range map[string]string{
			"deviceaccess.webhook_id":   hook.Webhook.ID,
			"http.response.status_code": "200",
			"url.scheme":                "http",
			"server.address":            "127.0.0.1",
		} {
			if set[0].Attributes[name] != want || set[0].Kind != "client" {
				t.Errorf("%s of the delivery is %q, want %q", name, set[0].Attributes[name], want)
			}
		}
	}
	if !whole {
		t.Errorf("no delivery comes from the request, or none from the work on the device: %+v", r.Spans())
	}
	in := func(s tracestest.Span) bool { return s.TraceID == theirTrace }
	apptest.Until(t, "the work on the device comes from the request", func() bool {
		return len(r.Spans(onDevice, func(s tracestest.Span) bool { return comesFrom(r, s, isRequest) })) > 0
	})
	request := r.Spans(isRequest)[0]
	written := 0
	apptest.Until(t, "the work that created codes at the vendor was received", func() bool {
		written = 0
		for _, w := range r.Spans(onDevice) {
			written += len(
				r.Spans(
					tracestest.Below(w),
					tracestest.Named("POST /locks/{id}/access_codes"),
					tracestest.With("deviceaccess.adapter", "devicecloud"),
					tracestest.With("http.response.status_code", "201"),
				),
			)
		}
		return written >= codes
	})
	if written != codes {
		t.Errorf("%d codes were created %d times at the vendor", codes, written)
	}
	for _, w := range r.Spans(onDevice) {
		if w.Attributes["deviceaccess.outcome"] == "" ||
			len(r.Spans(tracestest.Below(w), tracestest.With("db.operation.name", "batch LockDevice"))) == 0 {
			t.Errorf("the span of the work on the device is %+v", w)
		}
	}
	apptest.Until(t, "the vendor's request has a span", func() bool { // the vendor's lock has changed
		return len(
			r.Spans(tracestest.Named("POST /vendors/{account}"), tracestest.With("http.response.status_code", "204")),
		) > 0
	})
	if statements := r.Spans(
		tracestest.Below(request),
		tracestest.With("db.system.name", "postgresql"),
	); len(
		statements,
	) < 2 {
		t.Errorf("the request has %d statements: %+v", len(statements), statements)
	}
	if unnamed := r.Spans(tracestest.With("db.operation.name", "unnamed"), in); len(unnamed) > 0 {
		t.Errorf("statements have no name: %+v", unnamed)
	}
	for _, secret := range []string{canary, "481501", hook.Webhook.Secret, s.APIKey} {
		if strings.Contains(string(r.Raw()), secret) {
			t.Errorf("the spans contain %q", secret)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(carried) < 2 || strings.Join(carried, "") != "" {
		t.Errorf("outgoing requests have trace headers: %q", carried)
	}
}

// complete reports whether all ancestors of a span were received.
func complete(r *tracestest.Receiver, span tracestest.Span) bool {
	for _, above := range append(span.Links, span.Parent) {
		if above == "" || above == theirSpan {
			continue
		}
		found := r.Spans(func(s tracestest.Span) bool { return s.ID == above })
		if len(found) == 0 || !complete(r, found[0]) {
			return false
		}
	}
	return true
}

// comesFrom reports whether a span descends from one that is meant, by parents and links, through spans with the given
// names.
func comesFrom(r *tracestest.Receiver, span tracestest.Span, meant func(tracestest.Span) bool, by ...string) bool {
	for _, above := range append(span.Links, span.Parent) {
		for _, s := range r.Spans(func(s tracestest.Span) bool { return s.ID == above }) {
			if meant(s) || slices.Contains(by, s.Name) && comesFrom(r, s, meant, by...) {
				return true
			}
		}
	}
	return false
}

// Spans have a word for errors of an endpoint, a vendor, and the database.
func TestFailedSpans(t *testing.T) {
	t.Parallel()
	s, r := start(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(broken.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, url := range []string{broken.URL, closed.URL} {
		s.Post(t, "/webhooks/create", map[string]any{"url": url, "event_types": []string{"access_code.created"}}, nil)
	}
	s.Post(t, "/access_codes/create", map[string]any{"device_id": s.Device(t, "august")}, nil)
	for _, word := range []string{"418", "no_answer"} {
		apptest.Until(t, "a delivery fails with "+word, func() bool {
			failed := r.Spans(tracestest.Named("deliver"), tracestest.With("error.type", word))
			return len(failed) > 0 && failed[0].Failed && failed[0].StatusMessage == ""
		})
	}
}

// Concurrent requests have separate spans.
func TestRequestsDoNotMix(t *testing.T) {
	t.Parallel()
	s, r := start(t)
	const n = 40
	trace := func(i int) string { return fmt.Sprintf("%031d1", i) }
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			header := apptest.Bearer(s.APIKey)
			header.Set("Traceparent", "00-"+trace(i)+"-"+theirSpan+"-01")
			s.Send(
				t,
				http.MethodPost,
				[]string{"/devices/list", "/access_codes/list"}[i%2],
				header,
				fmt.Sprintf(`{"device_id":%q}`, s.Device(t, "august")),
				nil,
			)
		})
	}
	all.Wait()
	lists := []string{"ListDevices", "ListAccessCodesOfDevice"}
	for i := range n {
		request := one(t, r, func(s tracestest.Span) bool { return s.TraceID == trace(i) && s.Kind == "server" })
		its := func(s tracestest.Span) bool { return s.TraceID == trace(i) && s.Kind == "client" }
		apptest.Until(
			t,
			"the span of its list was received",
			func() bool { return len(r.Spans(its, tracestest.Named(lists[i%2]))) > 0 },
		)
		for _, p := range r.Spans(its) {
			if p.Parent != request.ID || p.Name == lists[1-i%2] {
				t.Errorf("request %d has the span %s of another request: %+v", i, p.Name, p)
			}
		}
	}
}
