package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Operation is what a vendor tells of somebody at a lock.
type Operation struct {
	Kind    OperationKind
	ID      string    // the vendor's identifier of it; empty where it has none
	Locked  bool      // BoltMoved: where the bolt is now; BoltJammed: where it was to go
	Method  string    // BoltMoved: the method of the API's lock.locked
	CodeRef string    // the vendor's reference of the code that was used, where known
	At      time.Time // zero: now
}

// OperationKind says what has happened.
type OperationKind string

const (
	BoltMoved    OperationKind = "moved"
	BoltJammed   OperationKind = "jammed"
	AccessDenied OperationKind = "denied"
)

const (
	sameOperation = 2 * time.Second // what is told again so soon, without an identifier, is the same
	keepOperation = 24 * time.Hour  // how long an identifier is known
	lateOperation = time.Minute     // how long a vendor may take to tell of what we have had it do
)

// RecordOperation notes what a vendor tells of a bolt of the account's device of that reference, once. It says whether
// there is such a device: of one that there is not the account's list tells.
func (s *Service) RecordOperation(ctx context.Context, account uuid.UUID, ref string, o Operation) (known bool, err error) {
	if !keepable(ref) {
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
	err = s.onDevice(ctx, anybody{}, d.DeviceID, "record an operation", func(t *deviceTx) error {
		jammed = false // what one try finds out is nothing to the next one
		if t.d.RemovedAt != nil || !t.d.IsManaged {
			return nil
		}
		known, err := t.knows(ctx, o)
		if err != nil || known {
			return err
		}
		jammed = o.Kind == BoltJammed
		return t.operated(ctx, o)
	})
	if err != nil || !jammed {
		return true, err
	}
	return true, s.Hint(ctx, account, "") // whose list shows the bolt: in a transaction of its own, as accounts are locked before their devices
}

// knows says whether the operation has been told before, and notes it.
func (t *deviceTx) knows(ctx context.Context, o Operation) (bool, error) {
	arg := dbsqlc.SeeLockOperationParams{DeviceID: t.d.DeviceID, Operation: o.ID, Within: keepOperation}
	if o.ID == "" {
		arg.Operation, arg.Within = fmt.Sprintf("%s %t %s %s", o.Kind, o.Locked, o.Method, o.CodeRef), sameOperation
	}
	if !keepable(arg.Operation) {
		arg.Operation = fmt.Sprintf("%x", sha256.Sum256([]byte(arg.Operation)))
	}
	if err := t.tx.ForgetLockOperations(ctx, dbsqlc.ForgetLockOperationsParams{DeviceID: t.d.DeviceID, OlderThan: keepOperation}); err != nil {
		return false, err
	}
	n, err := t.tx.SeeLockOperation(ctx, arg)
	return n == 0, err
}

func (t *deviceTx) operated(ctx context.Context, o Operation) error {
	o.At = *onCalendar(&o.At)
	a := aboutDevice(t.d)
	if !o.At.IsZero() {
		a.at = &o.At
	}
	switch o.Kind {
	case AccessDenied:
		return t.s.emit(ctx, t.tx, "lock.access_denied", t.aboutCodeUsed(a, o.CodeRef))
	case BoltJammed:
		return t.jammed(ctx, o)
	}
	// Of a lock that does not say what has moved it all servers hear, of which one has commanded it.
	silent := o.Method == "unknown" && o.ID == ""
	if silent && t.shows(o.Locked) {
		return nil
	}
	if o.Method == "remote" || silent {
		ours, err := t.ours(ctx, o)
		if err != nil || ours {
			return err
		}
	}
	a = t.aboutCodeUsed(a.with("method", o.Method), o.CodeRef)
	if c := t.codeUsed(o.CodeRef); c != nil {
		pin, err := t.s.pinOf(*c)
		if err != nil {
			return err
		}
		if pin != "" {
			a = a.hiding("code", pin)
		}
	}
	return t.tellBolt(ctx, o.Locked, a)
}

// shows says whether the bolt was last told to be there, and was seen nowhere else since.
func (t *deviceTx) shows(locked bool) bool {
	return t.d.Locked != nil && t.d.AnnouncedLocked != nil && *t.d.Locked == locked && *t.d.AnnouncedLocked == locked
}

// ours says whether the vendor tells of what we have had it do: of an attempt that waits for just that, or, where it says that this was
// done from afar, of one that the device has confirmed already.
func (t *deviceTx) ours(ctx context.Context, o Operation) (bool, error) {
	action := UnlockDoor
	if o.Locked {
		action = LockDoor
	}
	for _, a := range t.pending {
		if a.ActionType == action && a.StartedAt != nil {
			var at *time.Time
			if !o.At.IsZero() {
				at = &o.At
			}
			if o.Method == "remote" { // otherwise it may still say so
				if err := t.tx.TellActionAttempt(ctx, a.ActionAttemptID); err != nil {
					return false, err
				}
			}
			if err := t.moved(ctx, a, at); err != nil {
				return false, err
			}
			return true, t.s.wakeDevice(ctx, t.tx, t.d.DeviceID, false) // the next one may go ahead
		}
	}
	if o.Method != "remote" {
		return false, nil
	}
	a, err := t.tx.UntoldAttempt(ctx, dbsqlc.UntoldAttemptParams{WorkspaceID: t.d.WorkspaceID, DeviceID: t.d.DeviceID, ActionType: action, Within: lateOperation})
	if store.IsNoRows(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !o.At.IsZero() && t.inOrder(&o.At) { // by our clock it was told already
		if err := saveTold(ctx, t.tx, t.d); err != nil {
			return false, err
		}
	}
	return true, t.tx.TellActionAttempt(ctx, a.ActionAttemptID)
}

// jammed ends the attempt that has met with a jam.
func (t *deviceTx) jammed(ctx context.Context, o Operation) error {
	return t.end(ctx, func(a dbsqlc.ActionAttempt) bool {
		return movesBolt(a) && a.StartedAt != nil && (a.ActionType == LockDoor) == o.Locked
	}, Failed, "lock_jammed", "The bolt is jammed. Look at the door: something may be in its way.")
}

// codeUsed is the code of that reference; nil where it is not known, or to nobody.
func (t *deviceTx) codeUsed(ref string) *dbsqlc.AccessCode {
	if c := t.code(t.codeByRef(ref)); c != nil && !c.InPool {
		return c
	}
	return nil
}

// aboutCodeUsed names the code that was used at the keypad, where it is known.
func (t *deviceTx) aboutCodeUsed(a about, ref string) about {
	c := t.codeUsed(ref)
	if c == nil {
		return a
	}
	a.code = &c.AccessCodeID
	if managed := c.IsManaged; a.fields["method"] != nil {
		a = a.with("access_code_is_managed", managed)
	}
	return a
}
