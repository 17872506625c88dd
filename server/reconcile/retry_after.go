package reconcile

import (
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// noteRetryAfter remembers when the vendor accepts writes again. Writing the other codes earlier
// would cost each of them an attempt.
func (p *pass) noteRetryAfter(err error) {
	if e := adapter.AsError(err); e.Class == adapter.Transient && e.RetryAfter > 0 {
		p.busy.Store(p.device.ID, p.access.Devices.Now().Add(e.RetryAfter))
	}
}

// blockedUntil returns until when the vendor accepts no codes for the device, if it said so.
func (r *Reconciler) blockedUntil(device uuid.UUID) (until time.Time, busy bool) {
	at, ok := r.busy.Load(device)
	if !ok {
		return until, false
	}
	if until = at.(time.Time); until.After(r.access.Devices.Now()) {
		return until, true
	}
	r.busy.CompareAndDelete(device, at)
	return until, false
}
