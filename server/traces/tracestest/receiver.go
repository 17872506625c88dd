// Package tracestest provides an OTLP collector for tests.
package tracestest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Receiver is a collector that keeps what it receives.
type Receiver struct {
	// URL is where spans are posted to.
	URL string

	mu       sync.Mutex
	raw      bytes.Buffer // all request bodies
	readable bytes.Buffer // the bodies as text
	spans    []Span
	resource map[string]string
	header   http.Header // of the last request
	requests int
}

// Span is a received span.
type Span struct {
	Name, Kind          string
	TraceID, ID, Parent string
	// Links are the identifiers of linked spans.
	Links                     []string
	Attributes                map[string]string
	Events                    []string
	Failed                    bool
	Begin, End                time.Time
	StatusMessage, TraceState string
}

// New starts a collector that runs until the test ends.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.URL = s.URL + "/v1/traces"
	return r
}

// Options returns options that send spans here with little delay.
func (r *Receiver) Options() traces.Options {
	return traces.Options{Endpoint: r.URL, Interval: 20 * time.Millisecond, Queue: 1 << 16}
}

// ServeHTTP receives a request of OTLP over HTTP.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	var batch collector.ExportTraceServiceRequest
	if req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" ||
		proto.Unmarshal(body, &batch) != nil {
		http.Error(w, "not an OTLP request", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.header = req.Header
	r.raw.Write(body)
	fmt.Fprintln(&r.readable, prototext.Format(&batch))
	for _, of := range batch.GetResourceSpans() {
		r.resource = attributes(of.GetResource().GetAttributes())
		for _, in := range of.GetScopeSpans() {
			for _, s := range in.GetSpans() {
				r.spans = append(r.spans, read(s))
			}
		}
	}
}

func read(s *wire.Span) Span {
	out := Span{
		Name:          s.GetName(),
		Kind:          strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
		TraceID:       hex.EncodeToString(s.GetTraceId()),
		ID:            hex.EncodeToString(s.GetSpanId()),
		Parent:        hex.EncodeToString(s.GetParentSpanId()),
		Attributes:    attributes(s.GetAttributes()),
		Failed:        s.GetStatus().GetCode() == wire.Status_STATUS_CODE_ERROR,
		StatusMessage: s.GetStatus().GetMessage(),
		TraceState:    s.GetTraceState(),
		Begin:         time.Unix(0, int64(s.GetStartTimeUnixNano())),
		End:           time.Unix(0, int64(s.GetEndTimeUnixNano())),
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, hex.EncodeToString(l.GetSpanId()))
	}
	for _, e := range s.GetEvents() {
		out.Events = append(out.Events, e.GetName())
	}
	return out
}

func attributes(list []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			out[a.GetKey()] = fmt.Sprint(v.BoolValue)
		default:
			out[a.GetKey()] = a.GetValue().String()
		}
	}
	return out
}

// Spans returns the received spans that meet all conditions.
func (r *Receiver) Spans(conditions ...func(Span) bool) (out []Span) {
	r.mu.Lock()
	all := slices.Clip(r.spans)
	r.mu.Unlock() // conditions may call Spans, too
	for _, s := range all {
		if !slices.ContainsFunc(conditions, func(is func(Span) bool) bool { return !is(s) }) {
			out = append(out, s)
		}
	}
	return out
}

// Requests returns the number of received requests.
func (r *Receiver) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// Header returns the header of the last request.
func (r *Receiver) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header
}

// Resource returns the resource attributes of the last spans.
func (r *Receiver) Resource() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resource
}

// Raw returns all request bodies.
func (r *Receiver) Raw() []byte { r.mu.Lock(); defer r.mu.Unlock(); return bytes.Clone(r.raw.Bytes()) }

// Readable returns all request bodies as text, with quoted values.
func (r *Receiver) Readable() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.readable.Bytes())
}

// Named returns the condition that a span has a name.
func Named(name string) func(Span) bool { return func(s Span) bool { return s.Name == name } }

// With returns the condition that a span has an attribute.
func With(key, value string) func(Span) bool {
	return func(s Span) bool { return s.Attributes[key] == value }
}

// Below returns the condition that a span is a child of parent.
func Below(parent Span) func(Span) bool {
	return func(s Span) bool { return s.TraceID == parent.TraceID && s.Parent == parent.ID }
}
