package nukitest

import (
	"io"
	"net/http"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// faults are what goes wrong until Heal.
type faults struct {
	class   adapter.Class
	status  int // of all answers
	drop    int // writes to lose
	cut     bool
	stalled chan struct{}
}

// Heal ends all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.class == adapter.Full {
		s.mu.Unlock()
		s.Lock().Empty()
		s.mu.Lock()
	}
	if s.faults.class == adapter.Offline {
		s.locks[0].server = serverOnline
	}
	if s.faults.stalled != nil {
		close(s.faults.stalled)
	}
	s.faults = faults{}
}

// Fail causes errors of a class until Heal.
func (s *Server) Fail(class adapter.Class) {
	if class == adapter.Full {
		s.Lock().Fill()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if class == adapter.Offline {
		s.locks[0].server = serverOffline
	}
	s.faults.class = class
}

// Answer answers all calls with a status until Heal, such as 429, which has a Retry-After of two minutes.
func (s *Server) Answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.status = status
}

// DropNext accepts the next write without effect.
func (s *Server) DropNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.drop = 1
}

// Cut executes creations and deletions, and loses their responses until Heal.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.cut = true
}

// LoseNext loses the next creation, and all responses to creations and deletions until Heal.
func (s *Server) LoseNext() {
	s.DropNext()
	s.Cut()
}

// Stall leaves all calls unanswered until Heal.
func (s *Server) Stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.stalled = make(chan struct{})
}

// stalls waits with a request that gets no response, and reports whether it is one.
func (s *Server) stalls(r *http.Request) bool {
	s.mu.Lock()
	stalled := s.faults.stalled
	s.mu.Unlock()
	if stalled == nil {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of the client only after the body
	select {
	case <-stalled:
	case <-r.Context().Done():
	}
	return true
}

// lose reports whether a write is lost: nothing reports it, as when the lock is offline.
func (s *Server) lose(l *Lock) bool {
	if s.faults.drop > 0 {
		s.faults.drop--
		return true
	}
	return l.server != serverOnline
}

// refuse returns the error of a request to which the vendor refuses everything.
func (s *Server) refuse(r *http.Request) error {
	switch {
	case s.faults.status != 0:
		return refusal{status: s.faults.status, text: "refused for " + Token}
	case s.faults.class == adapter.Transient:
		return refusal{status: http.StatusServiceUnavailable, text: ""}
	case s.faults.class == adapter.AuthRevoked:
		return refusal{status: http.StatusUnauthorized, text: "unauthorized"}
	case r.URL.Path == "/oauth/token":
		return nil
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !s.tokens.valid(token) {
		return refusal{status: http.StatusUnauthorized, text: "unauthorized"}
	}
	return nil
}
