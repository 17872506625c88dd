package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzCanonical sends anything to operations of every kind: no answer is a 5xx, all have the shape of the contract, and
// what reaches a handler is what a second, canonical request would bring it.
func FuzzCanonical(f *testing.F) {
	a := answers{pager: pager{keys: cursorKeys(make([]byte, 32))}, rows: 3}
	handler, err := newEdge(a, knownKeys, Options{Logger: discard})
	if err != nil {
		f.Fatal(err)
	}
	operations := []string{
		"/devices/list",
		"/access_codes/create",
		"/webhooks/create",
		"/webhooks/delete",
		"/webhooks/update",
		"/events/list",
		"/devices/list_device_providers",
		"/none",
	}
	methods := []string{"POST", "GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"}
	f.Add(uint8(0), uint8(0), "limit=2&_strict=true", []byte(`{"limit":"3","device_ids":[]}`), "application/json")
	f.Add(uint8(0), uint8(1), "device_types[]=a&device_types=b&custom_metadata_has.x=true", []byte(``), "")
	f.Add(
		uint8(1),
		uint8(0),
		"device_id="+someID,
		[]byte(`{"code":"12\u0000","sync":1e400}`),
		"application/json; charset=x",
	)
	f.Add(uint8(5), uint8(1), "between=a,b&unstable_offset=1e3", []byte(`null`), "text/plain")
	f.Add(uint8(4), uint8(3), "", []byte(`{"webhook_id":"\ud800","event_types":[[[[]]]]}`), "application/json")
	f.Fuzz(func(t *testing.T, operation, method uint8, query string, body []byte, contentType string) {
		r := httptest.NewRequest(methods[int(method)%len(methods)], "/", strings.NewReader(string(body)))
		r.URL.Path, r.URL.RawQuery = operations[int(operation)%len(operations)], query
		r.Header.Set("Authorization", "Bearer "+goodKey)
		r.Header.Set("Content-Type", contentType)
		first := serve(t, handler, r)
		if first.status != 200 || first.body["request"] == nil {
			return
		}
		canonical, _ := json.Marshal(first.body["request"])
		r = httptest.NewRequest(http.MethodPost, r.URL.Path, strings.NewReader(string(canonical)))
		r.Header.Set("Authorization", "Bearer "+goodKey)
		r.Header.Set("Content-Type", "application/json")
		if second := serve(
			t,
			handler,
			r,
		); second.echoed() != first.echoed() &&
			!strings.Contains(string(canonical), "page_cursor") {
			t.Errorf("%s brought the handler\n%s, which brought it\n%s", query, first.echoed(), second.raw)
		}
	})
}
