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

// judge returns the conformance checker of the test process. It is nil if the published description is missing, which
// is an error only with REQUIRE_ALL=1.
var judge = sync.OnceValues(func() (*conformance.Checker, error) {
	required := os.Getenv("REQUIRE_ALL") == "1"
	r, err := conformance.Open(context.Background(), required)
	if errors.Is(err, gateways.ErrMissing) && !required {
		return nil, nil
	}
	return r, err
})

// checkConformance checks every response of the server against the published description until the test ends, except in
// benchmarks.
func (s *Server) checkConformance(t testing.TB) {
	t.Helper()
	if _, measured := t.(*testing.B); measured {
		return
	}
	r, err := judge()
	if err != nil {
		t.Fatalf("create the conformance checker: %v", err)
	}
	s.checker = r
	s.complaints = map[string]bool{}
	t.Cleanup(func() { // after the server has stopped
		s.mu.Lock()
		defer s.mu.Unlock()
		for complaint := range s.complaints {
			t.Error(complaint)
		}
	})
}

// checkResponse records the complaints of the checker about a response.
func (s *Server) checkResponse(path string, body []byte) {
	if path == "/access_codes/get_timeline" { // undocumented
		return
	}
	if s.checker == nil {
		return
	}
	complaints := s.checker.CheckResponse(path, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range complaints {
		s.complaints[c] = true
	}
}
