package apptest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/conformance"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

// judge returns the conformance referee of the test process. It is nil if the published description is missing, which
// is an error only with REQUIRE_ALL=1.
var judge = sync.OnceValues(func() (*conformance.Referee, error) {
	required := os.Getenv("REQUIRE_ALL") == "1"
	r, err := conformance.Open(context.Background(), required)
	if errors.Is(err, gateways.ErrMissing) && !required {
		return nil, nil
	}
	return r, err
})

// referee checks every response of the server against the published description until the test ends, except in
// benchmarks.
func (s *Server) referee(t testing.TB) {
	t.Helper()
	if _, measured := t.(*testing.B); measured {
		return
	}
	r, err := judge()
	if err != nil {
		t.Fatalf("the referee of the answers: %v", err)
	}
	s.judge = r
	s.complaints = map[string]bool{}
	t.Cleanup(func() { // after the server has stopped
		s.mu.Lock()
		defer s.mu.Unlock()
		for complaint := range s.complaints {
			t.Error(complaint)
		}
	})
}

// judged records the complaints of the referee about a response.
func (s *Server) judged(path string, body []byte) {
	if path == "/access_codes/get_timeline" { // undocumented
		return
	}
	if s.judge == nil {
		return
	}
	complaints := s.judge.Answer(path, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range complaints {
		s.complaints[c] = true
	}
}
