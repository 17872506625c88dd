package reconcile

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// unlockRetryDelay is the delay before a command that could not be sent is tried again.
const unlockRetryDelay = time.Second

// unlockEntrances sends the pending commands to the entrances of a system, each once. It returns the delay until the
// next try if a command could not be sent; 0 means that none is left. A door that opens a second time, or minutes
// later, would be worse than one that stays closed.
func (d *Reconciler) unlockEntrances(
	ctx context.Context,
	lease *worker.Lease,
	a adapter.AccessSystems,
	system acs.ReconcileState,
) (time.Duration, error) {
	for {
		u, ok, err := d.acs.StartUnlock(ctx, lease, system.ID)
		if err != nil || !ok {
			return 0, err
		}
		err = a.UnlockEntrance(ctx, adapter.SystemRef(system.Ref), u.Ref)
		if err == nil {
			if err := d.acs.RecordUnlock(ctx, lease, system.ID, u, "", ""); err != nil {
				return 0, err
			}
			continue
		}
		e := adapter.AsError(err)
		if e == nil || ctx.Err() != nil {
			return 0, err
		}
		if e.Class == adapter.Transient || e.Class == adapter.GatewayDown {
			return max(unlockRetryDelay, e.RetryAfter), d.acs.RecordUnlockNotStarted(ctx, lease, system.ID, u)
		}
		errorType, message := unlockError(e)
		if err := d.acs.RecordUnlock(ctx, lease, system.ID, u, errorType, message); err != nil {
			return 0, err
		}
	}
}

// unlockError returns the error of an attempt whose command failed.
func unlockError(e *adapter.Error) (errorType, message string) {
	switch e.Class {
	case adapter.Unconfirmed:
		return acs.UnlockUnconfirmed, ""
	case adapter.Offline:
		return "acs_system_disconnected", ""
	case adapter.AuthRevoked:
		return "account_disconnected", "The vendor refuses the account's credentials. Connect the account again."
	case adapter.NotFound:
		return "acs_entrance_removed", "The entrance was removed from its access system."
	case adapter.NotSupported:
		return "acs_system_not_supported", e.Message
	}
	return "acs_system_refused", e.Message
}

// deleteGroups deletes the groups of a system that must be deleted. It returns the delay until the next look, and
// whether that look must precede all further writes; 0 means no look.
func (d *Reconciler) deleteGroups(
	ctx context.Context,
	lease *worker.Lease,
	a adapter.AccessSystems,
	system acs.ReconcileState,
) (pause time.Duration, stop bool, err error) {
	due, pause, err := d.acs.GroupDeletions(ctx, lease, system.ID)
	if err != nil {
		return 0, false, err
	}
	for _, g := range due {
		err := a.DeleteGroup(ctx, adapter.SystemRef(system.Ref), g.Ref)
		e := adapter.AsError(err)
		var failure *acs.Failure
		switch {
		case err == nil:
			stop = true
		case e == nil || ctx.Err() != nil:
			return 0, false, err
		case e.Class == adapter.Offline || e.Class == adapter.AuthRevoked || e.Class == adapter.GatewayDown:
			pause, err = d.unwritable(ctx, lease, a, system, err)
			return pause, true, err
		default:
			// Only a look shows what happened.
			stop = stop || e.Class == adapter.Unconfirmed
			permanent := e.Class == adapter.Invalid || e.Class == adapter.NotSupported
			failure = &acs.Failure{
				Message:    e.Message,
				Permanent:  permanent,
				Rejected:   permanent,
				RetryAfter: e.RetryAfter,
			}
		}
		again, err := d.acs.RecordGroupDeletion(ctx, lease, system.ID, g, failure)
		if err != nil {
			return 0, false, err
		}
		if again > 0 && (pause == 0 || again < pause) {
			pause = again
		}
	}
	if stop {
		pause = rereadDelay
	}
	return pause, stop, nil
}
