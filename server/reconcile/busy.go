package reconcile

import (
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// refused keeps to what a vendor that has refused a code says of when to ask again: it would refuse the others as well, which would cost
// each of them an attempt.
func (p *pass) refused(err error) {
	if e := adapter.AsError(err); e.Class == adapter.Transient && e.RetryAfter > 0 {
		p.busy.Store(p.device.ID, p.access.Now().Add(e.RetryAfter))
	}
}

// isBusy says until when a device takes no codes, where its vendor has said so.
func (r *Reconciler) isBusy(device uuid.UUID) (until time.Time, busy bool) {
	at, ok := r.busy.Load(device)
	if !ok {
		return until, false
	}
	if until = at.(time.Time); until.After(r.access.Now()) {
		return until, true
	}
	r.busy.CompareAndDelete(device, at)
	return until, false
}
