package spec_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// A key that is repeated in a loop is rejected before its credential is looked up. Other keys are not affected, and the
// stored response stays.
func TestIdempotency_RepeatLimit(t *testing.T) {
	t.Parallel()
	s, db := keyedWorkspace(t)
	const path, servers, each, span = "/access_codes/create", 3, 20, 10 * time.Second // each server counts separately
	body := fmt.Sprintf(
		`{"device_id":%q,"name":"Repeated","starts_at":"2040-01-01T00:00:00Z","ends_at":"2040-01-02T00:00:00Z"}`,
		s.Device(t, "august"),
	)
	begun := time.Now()
	first := sent(t, s, s.APIKey, path, "k", body)
	n := 1
	a := sent(t, s, s.APIKey, path, "k", body)
	for ; a.status == http.StatusOK; a = sent(t, s, s.APIKey, path, "k", body) {
		if n++; a.body != first.body {
			t.Fatalf("answer %d is %+v, the first %+v", n, a, first)
		}
		if most := servers * each * (1 + int(time.Since(begun)/span)); n > most {
			t.Fatalf("%d answers to one key", n)
		}
	}
	if n < each || a.kind(t) != "429 too_many_requests" {
		t.Errorf("after %d answers it is %+v", n, a)
	}
	if after, err := strconv.Atoi(a.after); err != nil || after < 1 || after > int(2*span/time.Second) {
		t.Errorf("Retry-After is %q", a.after)
	}
	for key, path := range map[string]string{"another": path, "k": "/webhooks/create"} {
		in := map[string]string{"/webhooks/create": `{"url":"http://127.0.0.1:9/"}`}[path]
		if in == "" {
			in = body
		}
		if other := sent(t, s, s.APIKey, path, key, in); other.status == http.StatusTooManyRequests {
			t.Errorf("%s with the key %q: %+v", path, key, other)
		}
	}
	if n := codesNamed(t, s, db, "Repeated"); n != 2 {
		t.Errorf("there are %d codes of two keys", n)
	}
}

// Requests that fail because of the server do not count towards the limit.
func TestIdempotency_ServerErrorsDoNotCount(t *testing.T) {
	t.Parallel()
	s, _ := keyedServer(t)
	const path, body = "/webhooks/create", `{"url":"http://127.0.0.1:9/"}`
	s.Exec(t, "alter table webhooks rename to mislaid")
	for n := range 70 { // more than the limit of three servers
		if a := sent(t, s, s.APIKey, path, "k", body); a.status != http.StatusInternalServerError {
			t.Fatalf("request %d: %+v", n+1, a)
		}
	}
	s.Exec(t, "alter table mislaid rename to webhooks")
	if a := sent(t, s, s.APIKey, path, "k", body); a.status != http.StatusOK {
		t.Errorf("%+v", a)
	}
}
