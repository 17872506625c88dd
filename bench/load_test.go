package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answeredBy returns a target at a server with handler f.
func answeredBy(t *testing.T, f http.HandlerFunc) target {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return target{url: s.URL, bodies: []string{"{}"}}.expecting(`"device_id":`, 20)
}

func answers(devices int) string { return "[" + strings.Repeat(`{"device_id":"a"}`, devices) + "]" }

func TestLoad_CutOffRequestsDoNotCount(t *testing.T) {
	t.Parallel()
	never := answeredBy(t, func(w http.ResponseWriter, r *http.Request) {
		// the server notices a disconnect only after the body
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	if n, err := load(t.Context(), never, 100*time.Millisecond, 8); n != 0 || err != nil {
		t.Errorf("%g responses per second, %v; want 0 of a server that never responds", n, err)
	}
}

func TestIncompleteResponsesAreRejected(t *testing.T) {
	t.Parallel()
	for name, devices := range map[string]int{"an empty list": 0, "a part of it": 5, "one too many": 21} {
		few := answeredBy(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answers(devices)) })
		if _, err := few.verified(t.Context()); err == nil || !strings.Contains(err.Error(), "device_id") {
			t.Errorf("%s: %v, want the missing text", name, err)
		}
	}
	if _, err := (target{url: "http://127.0.0.1:1", bodies: []string{"{}"}}).verified(t.Context()); err == nil {
		t.Error("a target without expected text was accepted")
	}
}

func TestShorterResponsesAreRejected(t *testing.T) {
	t.Parallel()
	var asks atomic.Int64
	later := answeredBy(t, func(w http.ResponseWriter, _ *http.Request) {
		n := 20
		if asks.Add(1) > 10 {
			n = 5
		}
		io.WriteString(w, answers(n))
	})
	later, err := later.verified(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load(t.Context(), later, time.Minute, 2); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("%v, want their length", err)
	}
}
