package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// silent is a ResponseWriter without cost.
type silent struct{ header http.Header }

func (s silent) Header() http.Header       { return s.header }
func (silent) Write(b []byte) (int, error) { return len(b), nil }
func (silent) WriteHeader(int)             {}

// BenchmarkEdge measures a request through the edge, with a handler that does nothing.
func BenchmarkEdge(b *testing.B) {
	a := answers{pager: pager{keys: cursorKeys(make([]byte, 32))}, rows: 3}
	edge, err := newEdge(a, knownKeys, Options{Logger: discard})
	if err != nil {
		b.Fatal(err)
	}
	bare := openapi.HandlerWithOptions(openapi.NewStrictHandler(a, nil), openapi.ChiServerOptions{})
	small := `{"url":"https://hooks.example/x","event_types":["device.connected"]}`
	for _, bench := range []struct {
		name    string
		handler http.Handler
		request
	}{
		{"without the edge, POST", bare, request{method: "POST", path: "/webhooks/create", body: small}},
		{"POST", edge, request{method: "POST", path: "/webhooks/create", body: small}},
		{"POST of an access code", edge, request{
			method: "POST", path: "/access_codes/create",
			body: `{"device_id":"` + someID + `","name":"Guest","code":"4711","starts_at":"2026-11-21T15:00:00Z","ends_at":"2026-11-22T15:00:00Z"}`,
		}},
		{"DELETE by query", edge, request{method: "DELETE", path: "/webhooks/delete?webhook_id=" + someID + "&_strict=true"}},
		{"page", edge, request{method: "POST", path: "/devices/list", body: `{"limit":2}`}},
		{"violation", edge, request{method: "POST", path: "/webhooks/create", body: `{"event_types":[]}`}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := httptest.NewRequest(bench.method, bench.path, nil)
			r.Header.Set("Authorization", "Bearer "+goodKey)
			r.Header.Set("Content-Type", "application/json")
			body := strings.NewReader(bench.body)
			r.ContentLength = int64(len(bench.body))
			w := silent{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(bench.body)
				r.Body = readCloser{body}
				bench.handler.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkCanonical measures parsing and validating a small POST.
func BenchmarkCanonical(b *testing.B) {
	doc, err := Document()
	if err != nil {
		b.Fatal(err)
	}
	operations, err := compileOperations(doc)
	if err != nil {
		b.Fatal(err)
	}
	shape := operations["/webhooks/create"].body
	raw := []byte(`{"url":"https://hooks.example/x","event_types":["device.connected"]}`)
	b.ReportAllocs()
	for b.Loop() {
		params, err := parseBody(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, issues := canonical(shape, params, true); issues != nil {
			b.Fatal(issues)
		}
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
