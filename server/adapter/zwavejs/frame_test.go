package zwavejs_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

const (
	listen  = "start_listening"
	updated = `{"type":"event","event":{"source":"node","event":"value updated","nodeId":2,"args":{"newValue":%q}}}`
)

func listings(s *script) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, command := range s.asked {
		if command == listen {
			n++
		}
	}
	return n
}

// A network may have hundreds of locks, and one event tells of one: a gateway that goes on sending megabytes would have
// the server keep, and collect, several times as many.
func TestOnlyTheNetworkIsALargeFrame(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("a", 2<<20)
	s := play(t, nil, func(s *script, c command) string {
		if c.Name != listen {
			return ""
		}
		return `{"state":{"nodes":[` + s.node() + `],"more":"` + large + `"}}`
	})
	s.tell(fmt.Sprintf(updated, large[:1<<19]))
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
		t.Fatal(err)
	}
	if n := listings(s); n != 1 {
		t.Fatalf("connected %d times, want once", n)
	}
	s.tell(fmt.Sprintf(updated, large))
	until(t, "it is connected to anew", func() bool { return listings(s) == 2 })
	if _, err := s.adapter.Codes(t.Context(), s.device, true); err != nil {
		t.Fatal(err)
	}
}

func TestBeforeTheNetworkIsListedOnlyThatIsALargeFrame(t *testing.T) {
	t.Parallel()
	var tried atomic.Int32
	s := begin(t, nil, func(s *script, c command) string {
		if c.Name == listen && tried.Add(1) == 1 {
			s.tell(fmt.Sprintf(updated, strings.Repeat("a", 2<<20)))
		}
		return ""
	})
	until(t, "it is connected to anew", func() bool { return listings(s) == 2 })
}

func TestAnAnswerThatIsNotAsExpectedIsAnError(t *testing.T) {
	t.Parallel()
	for _, result := range []string{`7`, `[]`, `"864209"`} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			s := play(t, map[int]string{2: result}, nil)
			_, err := s.adapter.Codes(t.Context(), s.device, true)
			failsAs(t, err, adapter.GatewayDown)
		})
	}
}
