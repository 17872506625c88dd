package rest

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/crowd"
)

// How many requests with sync, and simulations, wait at once: each asks the database now and then.
const (
	mostWaits     = 400
	mostWaitsEach = 100 // of one credential
)

// waits are the requests of this process that wait for an attempt, or until a simulation is noticed, by credential.
type waits struct {
	mu   sync.Mutex
	all  int
	each map[uuid.UUID]int
}

// enter says whether one more may wait. Whoever may, leaves.
func (w *waits) enter(credential uuid.UUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= mostWaits || w.each[credential] >= mostWaitsEach {
		return false
	}
	if w.each == nil {
		w.each = map[uuid.UUID]int{}
	}
	w.all++
	w.each[credential]++
	return true
}

func (w *waits) leave(credential uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.each[credential]--; w.each[credential] == 0 {
		delete(w.each, credential)
	}
}

// resting gives up the turn of a simulation, which waits for a vendor and then until what that tells has been noticed. Where too many
// wait, it keeps it. Whoever rests is done when the function is called.
func (h *handlers) resting(ctx context.Context) (done func()) {
	who := principal(ctx).CredentialID
	if !h.waits.enter(who) {
		return func() {}
	}
	crowd.Rest(ctx)
	return func() { h.waits.leave(who) }
}
