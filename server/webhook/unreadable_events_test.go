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
	p := &pass{
		Deliverer: &Deliverer{loads: newLoads()},
		flying:    map[uuid.UUID]flight{unreadable: {}, other: {}},
		air:       2,
	}
	p.land(t.Context(), answer{event: unreadable, cut: true, unread: errors.New("the database is gone")})
	if _, waits := p.flying[other]; !waits || len(p.flying) != 1 || p.air != 1 {
		t.Errorf("%d in flight, %d without a response, want only the other one", len(p.flying), p.air)
	}
	if p.unread == nil || p.free() {
		t.Errorf("the run continues: %v", p.unread)
	}
}
