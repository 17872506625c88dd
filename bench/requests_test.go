package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// discardWriter is a ResponseWriter that costs nothing.
type discardWriter struct {
	header http.Header
	status int
}

func (u *discardWriter) Header() http.Header       { return u.header }
func (*discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (u *discardWriter) WriteHeader(status int)    { u.status = status }

// BenchmarkRequest measures a request from the server's handler to the database and back, without the network. `make
// benchstat` compares it with an older version. Compare the allocations, because times depend on the machine.
func BenchmarkRequest(b *testing.B) {
	bed, err := newBed(b.Context(), 1)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bed.close)
	list := &listBed{bed: bed}
	if err := list.prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := list.copies(b.Context(), "devices", "device_id", "connected_account_id = '"+list.account+
		"'", `'due_at', null, 'vendor_ref', 'copy/' || n`, 100); err != nil {
		b.Fatal(err)
	}
	if _, err := bed.pool.Exec(
		b.Context(),
		`insert into events (event_id, workspace_id, event_type, device_id, connected_account_id, payload)
		select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0') || '7000' || substr(device_id::text, 20, 5) || substr(device_id::text, 25))::uuid, workspace_id, 'device.connected', device_id, connected_account_id,
			jsonb_build_object('device_id', device_id, 'device_custom_metadata', '{}'::jsonb, 'connected_account_id', connected_account_id)
		from devices where vendor_ref like 'copy/%'`,
	); err != nil {
		b.Fatal(err)
	}
	codes, err := bed.ids(b.Context(), "select access_code_id::text from access_codes where is_managed")
	if err != nil || len(codes) == 0 {
		b.Fatalf("%d codes: %v", len(codes), err)
	}
	for _, bench := range []struct{ path, body, undo string }{
		{"/devices/get", fmt.Sprintf(`{"device_id":%q}`, list.device), ""},
		{"/devices/list", `{"limit":20}`, ""},
		{"/access_codes/get", fmt.Sprintf(`{"access_code_id":%q}`, codes[0]), ""},
		{"/access_codes/list", fmt.Sprintf(`{"device_id":%q}`, list.device), ""},
		{
			"/access_codes/create",
			fmt.Sprintf(
				`{"device_id":%q,"name":"Stay","starts_at":"2999-01-01T12:00:00Z","ends_at":"2999-01-08T12:00:00Z"}`,
				list.device,
			),
			"delete from access_codes where name = 'Stay'",
		}, // otherwise the lock fills up
		{"/events/list", `{"since":"2020-01-01T00:00:00Z","limit":100}`, ""},
		{"/webhooks/create", `{"url":"https://example.com/hook"}`, ""},
		{"/user_identities/create", `{"full_name":"Jane"}`, ""},
	} {
		b.Run(strings.ReplaceAll(bench.path[1:], "/", "_"), func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, bench.path, http.NoBody)
			r.Header.Set("Authorization", "Bearer "+bed.key)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = int64(len(bench.body))
			b.ReportAllocs()
			for b.Loop() {
				w := &discardWriter{header: http.Header{}, status: http.StatusOK}
				again := r.WithContext(b.Context())
				again.Body = readCloser{strings.NewReader(bench.body)}
				bed.handler.ServeHTTP(w, again)
				if w.status != http.StatusOK {
					b.Fatalf("%s: status %d", bench.path, w.status)
				}
				if bench.undo != "" {
					b.StopTimer()
					if _, err := bed.pool.Exec(b.Context(), bench.undo); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
