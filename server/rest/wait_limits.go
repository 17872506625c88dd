package rest

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Limits on concurrent waits of simulations and requests with sync. Each wait polls the database.
const (
	maxWaits              = 400
	maxWaitsPerCredential = 100 // per credential
)

// waits counts the requests that wait for an attempt or a simulation, by credential.
type waits struct {
	mu   sync.Mutex
	all  int
	each map[uuid.UUID]int
}

// enter reports whether another request may wait. If so, the caller must call leave.
func (w *waits) enter(credential uuid.UUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= maxWaits || w.each[credential] >= maxWaitsPerCredential {
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

// simulated runs a simulation and waits until the server has noticed its effect. It releases the request's slot
// meanwhile, unless too many requests wait. named reads the simulated resource, to check that the credential still
// has access.
func (h *handlers) simulated(ctx context.Context, do, named func(domain.Principal) error) error {
	began := principal(ctx)
	if h.waits.enter(began.CredentialID) {
		defer h.waits.leave(began.CredentialID)
		admission.Release(ctx)
	}
	done := do(began)
	now, err := h.access.Auth.Recheck(ctx, began)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(began.Scope, func(id uuid.UUID) bool { return !slices.Contains(now.Scope, id) }) {
		if err := named(now); err != nil {
			return err
		}
	}
	return done
}

// simulatedUpon is simulated for a device.
func (h *handlers) simulatedUpon(ctx context.Context, deviceID string, do func(domain.Principal) error) error {
	return h.simulated(ctx, do, func(now domain.Principal) error {
		_, err := h.access.Devices.SimulatedDevice(ctx, now, deviceID)
		return err
	})
}
