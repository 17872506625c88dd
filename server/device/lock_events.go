package device

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Operation is a vendor's report of an action at a lock.
type Operation struct {
	Kind    OperationKind
	ID      string    // the vendor's identifier, or empty
	Locked  bool      // BoltMoved: the new position; BoltJammed: the target position
	Method  string    // BoltMoved: the method of the API's lock.locked
	CodeRef string    // the vendor's reference of the used code, if known
	At      time.Time // zero: now
}

// OperationKind is the kind of an Operation.
type OperationKind string

// Kinds of operations.
const (
	BoltMoved    OperationKind = "moved"
	BoltJammed   OperationKind = "jammed"
	AccessDenied OperationKind = "denied"
	Tampered     OperationKind = "tampered"
)

const (
	sameOperation = 2 * time.Second // equal reports without an identifier within this time are duplicates
	keepOperation = 24 * time.Hour  // how long an identifier is remembered
	lateOperation = time.Minute     // how late a vendor may report our own command
)

// RecordOperation records an operation at a device, once. known reports whether the account has a device of
// that reference. The list of the account shows unknown devices.
func (s *Service) RecordOperation(
	ctx context.Context,
	account uuid.UUID,
	ref string,
	o Operation,
) (known bool, err error) {
	if !domain.ValidRef(ref) {
		return false, nil
	}
	d, err := s.db.GetDeviceByRef(ctx, dbsqlc.GetDeviceByRefParams{ConnectedAccountID: account, VendorRef: ref})
	if store.IsNoRows(err) || (err == nil && d.RemovedAt != nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the device of an operation: %w", err)
	}
	jammed := false
	err = s.onDevice(ctx, noFence{}, d.DeviceID, "record an operation", func(t *deviceTx) error {
		jammed = false // reset for each retry of the transaction
		if t.d.RemovedAt != nil || !t.d.IsManaged {
			return nil
		}
		known, err := t.isDuplicate(ctx, o)
		if err != nil || known {
			return err
		}
		jammed = o.Kind == BoltJammed
		return t.recordOperation(ctx, o)
	})
	if err != nil || !jammed {
		return true, err
	}
	return true, s.accounts.Hint(
		ctx,
		account,
		"",
	) // in its own transaction, because accounts are locked before their devices
}

// isDuplicate reports whether the operation was already recorded, and records it.
func (t *deviceTx) isDuplicate(ctx context.Context, o Operation) (bool, error) {
	arg := dbsqlc.SeeLockOperationParams{DeviceID: t.d.DeviceID, Operation: o.ID, Within: keepOperation}
	if o.ID == "" {
		arg.Operation, arg.Within = fmt.Sprintf("%s %t %s %s", o.Kind, o.Locked, o.Method, o.CodeRef), sameOperation
	}
	if !domain.ValidRef(arg.Operation) {
		arg.Operation = fmt.Sprintf("%x", sha256.Sum256([]byte(arg.Operation)))
	}
	if err := t.tx.ForgetLockOperations(
		ctx,
		dbsqlc.ForgetLockOperationsParams{DeviceID: t.d.DeviceID, OlderThan: keepOperation},
	); err != nil {
		return false, err
	}
	n, err := t.tx.SeeLockOperation(ctx, arg)
	return n == 0, err
}

// recordOperation announces an operation.
func (t *deviceTx) recordOperation(ctx context.Context, o Operation) error {
	o.At = *domain.OnCalendar(&o.At)
	a := event.AboutDevice(t.d)
	if !o.At.IsZero() {
		a.At = &o.At
	}
	switch o.Kind {
	case AccessDenied:
		return t.emit(ctx, "lock.access_denied", t.aboutCodeUsed(a, o.CodeRef))
	case BoltJammed:
		t.lock.FailJammed(o.Locked)
		return nil
	case Tampered:
		return t.emit(ctx, "device.tampered", a)
	}
	// A report without a method reaches all servers on the account, of which one sent the command.
	silent := o.Method == "unknown" && o.ID == ""
	if silent && t.confirmsLocked(o.Locked) {
		return nil
	}
	if o.Method == "remote" || silent {
		ours, err := t.isOwnOperation(ctx, o)
		if err != nil || ours {
			return err
		}
	}
	a = t.aboutCodeUsed(a.With("method", o.Method), o.CodeRef)
	if c := t.codeUsed(o.CodeRef); c != nil {
		pin, err := t.pins.digits(c.PIN)
		if err != nil {
			return err
		}
		if pin != "" {
			a = a.WithSecret("code", pin)
		}
	}
	return t.emitLock(ctx, o.Locked, a)
}

// confirmsLocked reports whether the bolt's announced and observed positions are both this one.
func (t *deviceTx) confirmsLocked(locked bool) bool {
	return t.d.Locked != nil && t.d.AnnouncedLocked != nil && *t.d.Locked == locked && *t.d.AnnouncedLocked == locked
}

// isOwnOperation reports whether the vendor reports our own command: a pending attempt for the same movement
// or, for the remote method, one that the device has already confirmed.
func (t *deviceTx) isOwnOperation(ctx context.Context, o Operation) (bool, error) {
	action := domain.UnlockDoor
	if o.Locked {
		action = domain.LockDoor
	}
	for _, a := range t.lock.Attempts {
		if a.Type == action && a.StartedAt != nil {
			var at *time.Time
			if !o.At.IsZero() {
				at = &o.At
			}
			if o.Method == "remote" { // otherwise it may still say so
				if err := t.tx.MarkAttemptReported(ctx, a.ID); err != nil {
					return false, err
				}
			}
			if err := t.recordMoved(ctx, a, at); err != nil {
				return false, err
			}
			t.wake(false) // to run the next command
			return true, nil
		}
	}
	if o.Method != "remote" {
		return false, nil
	}
	a, err := t.tx.GetUnreportedAttempt(ctx, dbsqlc.GetUnreportedAttemptParams{
		WorkspaceID: t.d.WorkspaceID,
		DeviceID:    t.d.DeviceID,
		ActionType:  action,
		Within:      lateOperation,
	})
	if store.IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !o.At.IsZero() && t.advanceOperatedAt(&o.At) { // already announced with the time of our clock
		if err := saveAnnounced(ctx, t.tx, t.d); err != nil {
			return false, err
		}
	}
	return true, t.tx.MarkAttemptReported(ctx, a.ActionAttemptID)
}

// codeUsed returns the code of a vendor reference, or nil if it is unknown or in the backup pool.
func (t *deviceTx) codeUsed(ref string) *lockstate.Code {
	if c := t.lock.CodeByRef(ref); c != nil && !c.InPool {
		return c
	}
	return nil
}

// aboutCodeUsed adds the code that was used at the keypad, if known.
func (t *deviceTx) aboutCodeUsed(a event.About, ref string) event.About {
	c := t.codeUsed(ref)
	if c == nil {
		return a
	}
	a.Code = &c.ID
	if managed := c.Managed; a.Fields["method"] != nil {
		a = a.With("access_code_is_managed", managed)
	}
	return a
}
