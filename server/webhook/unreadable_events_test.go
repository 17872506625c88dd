package webhook

import (
	"errors"
	"testing"

	"github.com/google/uuid"
)

// If an event cannot be read, a run ends after the requests in flight are answered and recorded.
// Canceling them would send them twice.
func TestUnreadableEvent_CancelsNoOther(t *testing.T) {
	t.Parallel()
	unreadable, other := uuid.New(), uuid.New()
	p := &run{
		Deliverer:    &Deliverer{memory: newMemoryBudget()},
		inFlightByID: map[uuid.UUID]flight{unreadable: {}, other: {}},
		inFlight:     2,
	}
	p.handleResult(t.Context(), answer{event: unreadable, cut: true, unread: errors.New("the database is gone")})
	if _, waits := p.inFlightByID[other]; !waits || len(p.inFlightByID) != 1 || p.inFlight != 1 {
		t.Errorf("%d in flight, %d without a response, want only the other one", len(p.inFlightByID), p.inFlight)
	}
	if p.unread == nil || p.canSend() {
		t.Errorf("the run continues: %v", p.unread)
	}
}
