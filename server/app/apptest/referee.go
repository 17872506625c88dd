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

// judge is the referee of all servers of the test process, nil where there is none: the published description is
// fetched only when REQUIRE_ALL=1 says that everything has to be there, and by the referee's own tests.
var judge = sync.OnceValues(func() (*conformance.Referee, error) {
	required := os.Getenv("REQUIRE_ALL") == "1"
	r, err := conformance.Open(context.Background(), required)
	if errors.Is(err, gateways.ErrMissing) && !required {
		return nil, nil
	}
	return r, err
})

// referee has every answer of the server judged until the test ends. Benchmarks are not to pay for it.
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

// judged keeps what the referee complains of.
func (s *Server) judged(path string, body []byte) {
	if path == "/access_codes/get_timeline" { // undocumented: what it tells of an event is passed on as it is
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
