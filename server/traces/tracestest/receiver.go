// Package tracestest is a collector for tests: it takes what is sent over OTLP, and shows it.
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

// Receiver is a collector.
type Receiver struct {
	URL string // to which spans are posted

	mu       sync.Mutex
	raw      bytes.Buffer // all bodies
	readable bytes.Buffer // what is in them
	spans    []Span
	resource map[string]string
	header   http.Header // of the last request
	requests int
}

// Span is one that has been received.
type Span struct {
	Name, Kind                string
	TraceID, ID, Parent       string
	Links                     []string // identifiers of spans
	Attributes                map[string]string
	Events                    []string
	Failed                    bool
	Begin, End                time.Time
	StatusMessage, TraceState string
}

// New runs a collector until the test ends.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.URL = s.URL + "/v1/traces"
	return r
}

// Options send spans here, and soon.
func (r *Receiver) Options() traces.Options {
	return traces.Options{Endpoint: r.URL, Every: 20 * time.Millisecond, Queue: 1 << 16}
}

func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	var batch collector.ExportTraceServiceRequest
	if req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &batch) != nil {
		http.Error(w, "this is no OTLP", http.StatusBadRequest)
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
	out := Span{Name: s.GetName(), Kind: strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
		TraceID: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Attributes: attributes(s.GetAttributes()), Failed: s.GetStatus().GetCode() == wire.Status_STATUS_CODE_ERROR, StatusMessage: s.GetStatus().GetMessage(),
		TraceState: s.GetTraceState(), Begin: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano()))}
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

// Spans are all that have come so far and meet all conditions.
func (r *Receiver) Spans(conditions ...func(Span) bool) (out []Span) {
	r.mu.Lock()
	all := slices.Clip(r.spans)
	r.mu.Unlock() // conditions may ask for spans, too
	for _, s := range all {
		if !slices.ContainsFunc(conditions, func(is func(Span) bool) bool { return !is(s) }) {
			out = append(out, s)
		}
	}
	return out
}

// Requests is how often something was sent.
func (r *Receiver) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// Header is that of the last request.
func (r *Receiver) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header
}

// Resource is what all spans are of.
func (r *Receiver) Resource() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resource
}

// Raw is all that was sent, and Readable the same as text, in which values stand in quotes.
func (r *Receiver) Raw() []byte { r.mu.Lock(); defer r.mu.Unlock(); return bytes.Clone(r.raw.Bytes()) }
func (r *Receiver) Readable() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.readable.Bytes())
}

// Named is the condition of having a name.
func Named(name string) func(Span) bool { return func(s Span) bool { return s.Name == name } }

// With is the condition of having an attribute.
func With(key, value string) func(Span) bool {
	return func(s Span) bool { return s.Attributes[key] == value }
}

// Below is the condition of being a part of a span.
func Below(parent Span) func(Span) bool {
	return func(s Span) bool { return s.TraceID == parent.TraceID && s.Parent == parent.ID }
}
