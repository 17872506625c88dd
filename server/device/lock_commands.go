package device

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// RunLockCommand requests to lock or unlock a door. It returns the attempt, which ends when the device confirms. On
// an offline device the attempt has already failed, because a door must not open later than its user expects.
// It fails with NotFound, with Invalid where the device does not support the command, and with TooMany.
func (s *Service) RunLockCommand(
	ctx context.Context,
	p domain.Principal,
	deviceID string,
	lock bool,
) (a Attempt, err error) {
	id, err := uuid.Parse(deviceID)
	if err != nil {
		return a, deviceNotFound("device_id", deviceID)
	}
	action := domain.UnlockDoor
	if lock {
		action = domain.LockDoor
	}
	if err := s.checkCommandQueue(ctx, p, id); err != nil {
		return a, err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		d, err := lockManagedDevice(ctx, tx, p, id)
		if err != nil {
			return err
		}
		if err := canMove(capabilities(d), lock); err != nil {
			return err
		}
		if err := checkCommandRoom(ctx, tx, d); err != nil {
			return err
		}
		r, err := s.newDeviceAttempt(ctx, tx, d, action, s.opt.LockCommandTimeout)
		if err != nil {
			return err
		}
		if !d.Online {
			message := "The device is offline. Try again when it is back."
			if err := s.finishWithEvent(ctx, tx, d, r, Failed, "device_offline", message); err != nil {
				return err
			}
			a = toAttempt(r)
			a.Status, a.ErrorType, a.Message = Failed, "device_offline", message
			return nil
		}
		a = toAttempt(r)
		return s.accounts.WakeDevice(ctx, tx, d.DeviceID, false)
	})
	if _, ok := domain.AsError(err); err != nil && !ok {
		err = fmt.Errorf("move the bolt of device %s: %w", id, err)
	}
	return a, err
}

// maxCommands is how many commands may wait for one device, which runs one at a time. Later ones would expire
// before their turn.
const maxCommands = 20

// checkCommandRoom fails with TooMany where the maximum of commands waits for a device, which the caller has
// locked.
func checkCommandRoom(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	n, err := tx.CountCommands(ctx, d.DeviceID)
	if err != nil || n < maxCommands {
		return err
	}
	return tooManyCommands(d.DeviceID, n)
}

// checkCommandQueue is checkCommandRoom without the lock on the device, so that a flood of requests does not
// block it. It also fails with NotFound.
func (s *Service) checkCommandQueue(ctx context.Context, p domain.Principal, id uuid.UUID) error {
	n, err := s.db.CountCommands(ctx, id)
	if err != nil {
		return fmt.Errorf("count the commands of the device: %w", err)
	}
	if n < maxCommands {
		return nil
	}
	if _, err := s.findDevice(ctx, p, id.String()); err != nil {
		return err
	}
	return tooManyCommands(id, n)
}

func tooManyCommands(id uuid.UUID, n int64) error {
	return &domain.Error{
		Kind: domain.TooMany,
		Type: "too_many_requests",
		Data: map[string]any{"device_id": id},
		Message: fmt.Sprintf(
			"%d commands already wait for this device. Try again when one of them has ended; "+
				"/action_attempts/list with its device_id shows them.",
			n,
		),
	}
}

// canMove fails with Invalid where the device does not support the command.
func canMove(caps capability.Set, lock bool) error {
	refused := func(what, flag string) error {
		return &domain.Error{
			Kind:    domain.Invalid,
			Type:    "device_type_not_supported",
			Field:   "device_id",
			Message: fmt.Sprintf("This device cannot be %s remotely: its %s is false.", what, flag),
		}
	}
	switch {
	case lock && !caps.Lock:
		return refused("locked", "can_remotely_lock")
	case !lock && !caps.Unlock:
		return refused("unlocked", "can_remotely_unlock")
	}
	return nil
}

// newDeviceAttempt inserts an attempt about a device and none of its codes.
func (s *Service) newDeviceAttempt(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	action string,
	timeout time.Duration,
) (dbsqlc.ActionAttempt, error) {
	return s.newDeviceAttemptWith(ctx, tx, d, action, timeout, attemptOptions{})
}

func (s *Service) newDeviceAttemptWith(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	action string,
	timeout time.Duration,
	opt attemptOptions,
) (dbsqlc.ActionAttempt, error) {
	r, err := tx.InsertActionAttempt(ctx, dbsqlc.InsertActionAttemptParams{
		ActionAttemptID: domain.NewID(),
		WorkspaceID:     d.WorkspaceID,
		DeviceID:        &d.DeviceID,
		ActionType:      action,
		Options:         domain.MustJSON(opt),
		Status:          string(Pending),
		Timeout:         timeout,
	})
	if err != nil {
		return r, fmt.Errorf("write the action attempt: %w", err)
	}
	tx.Begins()
	return r, nil
}

// finishWithEvent ends an attempt, and emits the event of its type, if there is one.
func (s *Service) finishWithEvent(
	ctx context.Context,
	tx store.Tx,
	d dbsqlc.Device,
	r dbsqlc.ActionAttempt,
	status AttemptStatus,
	errorType, message string,
) error {
	ended, err := s.finish(ctx, tx, r, status, errorType, message)
	occurrence, announced := endOf(d, r.ActionAttemptID, r.ActionType, status)
	if err != nil || !ended || !announced {
		return err
	}
	return s.events.Emit(ctx, tx, occurrence.Type, occurrence.About)
}

// RecordLockCommandStarted records that a lock command or auto-lock setting is about to be sent, so that it is not
// sent again after a crash. still reports whether the caller must send it.
func (s *Service) RecordLockCommandStarted(
	ctx context.Context,
	h store.Fence,
	device uuid.UUID,
	w lockstate.Command,
) (still bool, err error) {
	err = s.onDevice(ctx, h, device, "record the start of an action", func(t *deviceTx) error {
		still = false
		for _, a := range t.lock.Attempts {
			if a.ID == w.Attempt && a.StartedAt == nil && a.Deadline.After(t.now) && t.d.RemovedAt == nil {
				still = true
				return t.tx.StartActionAttempt(
					ctx,
					dbsqlc.StartActionAttemptParams{ActionAttemptID: w.Attempt, StartedAt: &t.now},
				)
			}
		}
		return nil
	})
	return still, err
}

// RecordLockCommandNotStarted records that the command was not sent and may be sent again.
func (s *Service) RecordLockCommandNotStarted(
	ctx context.Context,
	h store.Fence,
	device uuid.UUID,
	w lockstate.Command,
) error {
	return s.onDevice(ctx, h, device, "record that an action did not start", func(t *deviceTx) error {
		return t.tx.StartActionAttempt(ctx, dbsqlc.StartActionAttemptParams{ActionAttemptID: w.Attempt})
	})
}

// RecordLockCommandDone records that the device confirmed the command.
func (s *Service) RecordLockCommandDone(
	ctx context.Context,
	h store.Fence,
	device uuid.UUID,
	w lockstate.Command,
) error {
	return s.onDevice(ctx, h, device, "record a moved bolt", func(t *deviceTx) error {
		for _, a := range t.lock.Attempts {
			if a.ID == w.Attempt {
				return t.recordMoved(ctx, a, nil)
			}
		}
		return nil
	})
}

// RecordLockCommandFailed records that the command failed, and why.
func (s *Service) RecordLockCommandFailed(
	ctx context.Context,
	h store.Fence,
	device uuid.UUID,
	w lockstate.Command,
	errorType, message string,
) error {
	return s.onDevice(ctx, h, device, "record a failed action", func(t *deviceTx) error {
		t.lock.End(w.Attempt, Failed, errorType, message)
		return nil
	})
}

// recordMoved ends the attempt successfully and announces the bolt's position. at is when it moved; nil means
// now.
func (t *deviceTx) recordMoved(ctx context.Context, a lockstate.Attempt, at *time.Time) error {
	t.lock.End(a.ID, Succeeded, "", "")
	about := event.AboutDevice(t.d).With("method", "remote").With("action_attempt_id", a.ID)
	about.At = at
	return t.emitLock(ctx, a.Type == domain.LockDoor, about)
}

// emitLock records the position of the bolt, unless it has moved since, and announces it.
func (t *deviceTx) emitLock(ctx context.Context, locked bool, a event.About) error {
	if t.advanceOperatedAt(a.At) {
		if t.d.Locked == nil || *t.d.Locked != locked {
			t.d.Locked, t.d.LockedChangedAt = &locked, t.now
			if err := t.tx.SetDeviceLocked(
				ctx,
				dbsqlc.SetDeviceLockedParams{DeviceID: t.d.DeviceID, Locked: &locked, LockedChangedAt: t.now},
			); err != nil {
				return err
			}
		}
		t.d.AnnouncedLocked = &locked
		if err := saveAnnounced(ctx, t.tx, t.d); err != nil {
			return err
		}
	}
	event := "lock.unlocked"
	if locked {
		event = "lock.locked"
	}
	return t.emit(ctx, event, a)
}

// advanceOperatedAt records when the bolt moved, by the vendor's clock. It returns false for a time before the
// last announced one, because vendors repeat pushes. It ignores a recorded time in the future, which comes from
// a clock that was ahead or stepped back.
func (t *deviceTx) advanceOperatedAt(at *time.Time) bool {
	switch {
	case at == nil:
		return true
	case t.d.OperatedAt != nil && at.Before(*t.d.OperatedAt) && !t.d.OperatedAt.After(t.now):
		return false
	}
	t.d.OperatedAt = earlier(at, t.now)
	return true
}

// lockUnconfirmed reports whether the bolt has differed from its announced position for so long that the vendor
// will not report the movement. Otherwise again is when that will be the case.
func (s *Service) lockUnconfirmed(d dbsqlc.Device) (doubted bool, again *time.Time) {
	if d.RemovedAt != nil || d.Locked == nil || d.AnnouncedLocked == nil || *d.Locked == *d.AnnouncedLocked {
		return false, nil
	}
	if until := d.LockedChangedAt.Add(s.opt.OperationLag); until.After(s.opt.Now()) {
		return false, &until
	}
	return true, nil
}
