package webhook

import (
	"errors"
	"testing"

	"github.com/google/uuid"
)

// An event that cannot be read ends a pass once all that is in the air has been answered and recorded: what is cut off is sent twice.
func TestEventThatCannotBeReadCutsOffNoOther(t *testing.T) {
	t.Parallel()
	unreadable, other := uuid.New(), uuid.New()
	p := &pass{
		Deliverer: &Deliverer{loads: newLoads()},
		flying:    map[uuid.UUID]flight{unreadable: {}, other: {}},
		air:       2,
	}
	p.land(t.Context(), answer{event: unreadable, cut: true, unread: errors.New("the database is gone")})
	if _, waits := p.flying[other]; !waits || len(p.flying) != 1 || p.air != 1 {
		t.Errorf("%d are waited for, %d of them for an answer, want the other one", len(p.flying), p.air)
	}
	if p.unread == nil || p.free() {
		t.Errorf("the pass goes on: %v", p.unread)
	}
}
