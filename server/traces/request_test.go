package traces_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces/tracestest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// start starts a server that sends its traces to a collector.
func start(t *testing.T, options ...apptest.Option) (*apptest.Server, *tracestest.Receiver) {
	t.Helper()
	r := tracestest.New(t)
	options = append(
		[]apptest.Option{apptest.WithProfiles("august"), func(c *app.Config) { c.Traces = r.Options() }},
		options...)
	return apptest.Start(t, options...), r
}

// one waits for the only span that meets the conditions.
func one(t *testing.T, r *tracestest.Receiver, conditions ...func(tracestest.Span) bool) tracestest.Span {
	t.Helper()
	var found []tracestest.Span
	apptest.Until(t, "the span is received", func() bool { found = r.Spans(conditions...); return len(found) > 0 })
	if len(found) > 1 {
		t.Fatalf("%d spans are received: %+v", len(found), found)
	}
	return found[0]
}

const (
	theirTrace  = "0af7651916cd43dd8448eb211c80319c"
	theirSpan   = "b7ad6b7169203331"
	canary      = "unmistakable7788"
	requestedBy = "deviceaccess.request_id"
)

func parent(sampled bool) string {
	return "00-" + theirTrace + "-" + theirSpan + map[bool]string{true: "-01", false: "-00"}[sampled]
}

func TestRequestSpan(t *testing.T) {
	t.Parallel()
	s, r := start(t)
	header := apptest.Bearer(s.APIKey)
	header.Set("Traceparent", parent(true))
	header.Set("Tracestate", "vendor="+canary)
	header.Set("Baggage", "name="+canary)
	header.Set("User-Agent", canary)
	res := s.Send(t, http.MethodGet, "/devices/get?device_id="+s.Device(t, "august"), header, "", nil)
	span := one(t, r, tracestest.With(requestedBy, res.Header.Get("Seam-Request-Id")))
	if span.Name != "GET /devices/get" || span.Kind != "server" || span.TraceID != theirTrace ||
		span.Parent != theirSpan ||
		span.Failed {
		t.Errorf("the request's span is %+v", span)
	}
	for name, want := range map[string]string{
		"http.request.method":       "GET",
		"http.route":                "/devices/get",
		"http.response.status_code": "200",
		"deviceaccess.workspace_id": s.WorkspaceID,
	} {
		if span.Attributes[name] != want {
			t.Errorf("%s is %q, want %q", name, span.Attributes[name], want)
		}
	}
	if strings.Join(span.Events, ", ") != "its turn has come, the credential is good" {
		t.Errorf("the events are %q", span.Events)
	}
	if about := r.Resource(); about["service.name"] != "deviceaccess-server" || about["service.instance.id"] == "" ||
		about["process.command_args"] != "" {
		t.Errorf("the resource is %v", about)
	}
	for _, what := range []string{canary, s.APIKey} {
		if strings.Contains(string(r.Raw()), what) {
			t.Errorf("the spans contain %q", what)
		}
	}
}

// A rejected request has a word for the reason, and no unknown path is recorded.
func TestRequestSpan_Rejected(t *testing.T) {
	t.Parallel()
	s, r := start(t)
	res := s.Send(t, http.MethodPost, "/devices/get", apptest.Bearer(s.APIKey), `{"device_id":"`+canary+`"}`, nil)
	span := one(t, r, tracestest.With(requestedBy, res.Header.Get("Seam-Request-Id")))
	if span.Attributes["error.type"] == "" ||
		span.Attributes["http.response.status_code"] != "404" &&
			span.Attributes["http.response.status_code"] != "400" ||
		span.Failed {
		t.Errorf("the rejected request is %+v", span)
	}
	res = s.Send(t, "STRANGE", "/"+canary, nil, "", nil)
	span = one(t, r, tracestest.With(requestedBy, res.Header.Get("Seam-Request-Id")))
	if span.Name != "_OTHER unknown" {
		t.Errorf("the unauthenticated request is %+v", span)
	}
	s.Send(t, http.MethodGet, "/health", nil, "", nil)
	last := s.Send(t, http.MethodPost, "/devices/list", apptest.Bearer(s.APIKey), "{}", nil)
	one(t, r, tracestest.With(requestedBy, last.Header.Get("Seam-Request-Id")))
	if health := r.Spans(
		tracestest.With("http.route", "/health"),
	); len(health) != 0 ||
		strings.Contains(string(r.Raw()), canary) {
		t.Errorf("spans of /health, or input of an unauthenticated client: %v", health)
	}
}

// A caller with a valid credential can request sampling; other clients cannot.
func TestSampling_DecidedByAuthenticatedCallers(t *testing.T) {
	t.Parallel()
	s, r := start(t, func(c *app.Config) { c.Traces.Sampler = sdktrace.ParentBased(sdktrace.NeverSample()) })
	for _, token := range []string{"seam_test1234_unknown", ""} {
		header := apptest.Bearer(token)
		header.Set("Traceparent", parent(true))
		s.Send(t, http.MethodPost, "/devices/list", header, "{}", nil)
		s.Send(t, http.MethodPost, "/no/such/path", header, "{}", nil)
	}
	header := apptest.Bearer(s.APIKey)
	header.Set("Traceparent", parent(false))
	s.Send(t, http.MethodPost, "/devices/list", header, "{}", nil)
	s.Send(t, http.MethodPost, "/devices/list", apptest.Bearer(s.APIKey), "{}", nil)
	header.Set("Traceparent", parent(true))
	res := s.Send(t, http.MethodPost, "/devices/list", header, "{}", nil)
	apptest.Until(t, "the request has a span", func() bool {
		return len(r.Spans(tracestest.With(requestedBy, res.Header.Get("Seam-Request-Id")))) > 0
	})
	if served := r.Spans(func(s tracestest.Span) bool { return s.Kind == "server" }); len(served) != 1 {
		t.Errorf("%d requests have spans: %+v", len(served), served)
	}
}

// A flood of unauthenticated requests leaves the queue to others.
func TestUnauthenticatedRequestsAreLimited(t *testing.T) {
	t.Parallel()
	s, r := start(t)
	header := http.Header{"Traceparent": {parent(true)}}
	begun := time.Now()
	for range 200 {
		s.Send(t, http.MethodPost, "/no/such/path", header, "{}", nil)
	}
	res := s.Send(t, http.MethodPost, "/devices/list", apptest.Bearer(s.APIKey), "{}", nil)
	one(t, r, tracestest.With(requestedBy, res.Header.Get("Seam-Request-Id")))
	strangers := r.Spans(tracestest.With("http.route", "unknown"))
	if most := 11 + int(10*time.Since(begun).Seconds()); len(strangers) == 0 || len(strangers) > most {
		t.Errorf("%d of 200 unauthenticated requests have spans, want at most %d", len(strangers), most)
	}
	for _, s := range strangers {
		if s.TraceID == theirTrace {
			t.Fatal("an unauthenticated request is in the trace that it names")
		}
	}
}

// Without a collector nothing runs or sends.
func TestWithoutCollector(t *testing.T) {
	t.Parallel()
	tr, err := traces.New(
		t.Context(),
		traces.Options{Sampler: sdktrace.AlwaysSample(), Queue: 10},
		slog.New(slog.DiscardHandler),
	)
	if tr != nil || err != nil {
		t.Fatalf("%v, %v", tr, err)
	}
	ctx, work := tr.Work(t.Context(), "device", uuid.New(), nil)
	request := tr.Request(ctx, http.Header{"Traceparent": {parent(true)}}, time.Now(), http.MethodPost, "/x")
	if work.Recording() || request.Decided() ||
		tr.UnauthenticatedRequest(ctx, time.Now(), http.MethodPost, "/x").Decided() ||
		traces.Recording(request.NewContext(ctx)) ||
		traces.CauseOf(ctx).Valid() {
		t.Error("a span is recorded")
	}
	if err := tr.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// Untraced work costs nothing. Allocations can be counted only while no other test runs.
func TestUntracedWorkAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		inner, span := traces.Start(ctx, "x")
		traces.FromContext(inner).Set()
		span.End()
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// wrapped wraps the server's handler.
func wrapped(by func(http.Handler) http.Handler) apptest.Option {
	return func(c *app.Config) {
		inner := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler { return by(inner(next)) }
	}
}
