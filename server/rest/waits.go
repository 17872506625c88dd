package rest

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
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

// simulated does a simulation, which waits for a vendor and then until what that tells has been noticed. It gives up its turn for
// that, unless too many wait. What has come of it is told by what the credential sees by then; named finds what was simulated upon.
func (h *handlers) simulated(ctx context.Context, do, named func(access.Principal) error) error {
	began := principal(ctx)
	if h.waits.enter(began.CredentialID) {
		defer h.waits.leave(began.CredentialID)
		admission.Rest(ctx)
	}
	done := do(began)
	now, err := h.access.StandsNow(ctx, began)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(began.Reach, func(id uuid.UUID) bool { return !slices.Contains(now.Reach, id) }) {
		if err := named(now); err != nil {
			return err
		}
	}
	return done
}

// simulatedUpon is simulated for a device.
func (h *handlers) simulatedUpon(ctx context.Context, deviceID string, do func(access.Principal) error) error {
	return h.simulated(ctx, do, func(now access.Principal) error {
		_, err := h.access.SimulatedDevice(ctx, now, deviceID)
		return err
	})
}
