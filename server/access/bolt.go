package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// BoltWork is a bolt that is to be moved.
type BoltWork struct {
	Attempt uuid.UUID
	Lock    bool // otherwise unlock
	Started bool // the command may have been sent: it is sent once only, what has become of it the device shows
}

// MoveBolt asks for a door to be locked or unlocked, and returns the attempt, which ends when the device has
// confirmed. One of a device that is offline has failed already: a door must not open at another time than
// when somebody asks for it.
// It fails with NotFound, with Invalid where the device cannot be moved so from afar, and with TooMany.
func (s *Service) MoveBolt(ctx context.Context, p Principal, deviceID string, lock bool) (a Attempt, err error) {
	id, err := uuid.Parse(deviceID)
	if err != nil {
		return a, deviceNotFound("device_id", deviceID)
	}
	action := UnlockDoor
	if lock {
		action = LockDoor
	}
	if err := s.hasTurns(ctx, p, id); err != nil {
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
		if err := mayCommand(ctx, tx, d); err != nil {
			return err
		}
		r, err := s.newDeviceAttempt(ctx, tx, d, action, s.opt.BoltPatience)
		if err != nil {
			return err
		}
		if !d.Online {
			message := "The device is offline. Try again when it is back."
			if err := s.finishTold(ctx, tx, d, r, Failed, "device_offline", message); err != nil {
				return err
			}
			a = toAttempt(r)
			a.Status, a.ErrorType, a.Message = Failed, "device_offline", message
			return nil
		}
		a = toAttempt(r)
		return s.wakeDevice(ctx, tx, d.DeviceID, false)
	})
	if _, ok := asError(err); err != nil && !ok {
		err = fmt.Errorf("move the bolt of device %s: %w", id, err)
	}
	return a, err
}

// mostCommands is how many commands may wait for one device, which does one after another: those behind them would be
// given up before they had their turn.
const mostCommands = 20

// mayCommand fails with TooMany where as many commands wait for a device as may; the device is locked.
func mayCommand(ctx context.Context, tx store.Tx, d dbsqlc.Device) error {
	n, err := tx.CountCommands(ctx, d.DeviceID)
	if err != nil || n < mostCommands {
		return err
	}
	return tooManyCommands(d.DeviceID, n)
}

// hasTurns fails as mayCommand does, without locking the device: whoever goes on asking keeps it from nobody.
// It fails with NotFound, too.
func (s *Service) hasTurns(ctx context.Context, p Principal, id uuid.UUID) error {
	n, err := s.db.CountCommands(ctx, id)
	if err != nil {
		return fmt.Errorf("count what waits for the device: %w", err)
	}
	if n < mostCommands {
		return nil
	}
	if _, err := s.findDevice(ctx, p, id.String()); err != nil {
		return err
	}
	return tooManyCommands(id, n)
}

func tooManyCommands(id uuid.UUID, n int64) error {
	return &Error{Kind: TooMany, Type: "too_many_requests", Data: map[string]any{"device_id": id},
		Message: fmt.Sprintf("%d commands wait for this device already. Ask again once one of them has ended; /action_attempts/list with its device_id shows them.", n)}
}

func canMove(caps Capabilities, lock bool) error {
	refused := func(what, flag string) error {
		return &Error{Kind: Invalid, Type: "device_type_not_supported", Field: "device_id",
			Message: fmt.Sprintf("This device cannot be %s from afar: its %s is false.", what, flag)}
	}
	switch {
	case lock && !caps.Lock:
		return refused("locked", "can_remotely_lock")
	case !lock && !caps.Unlock:
		return refused("unlocked", "can_remotely_unlock")
	}
	return nil
}

// newDeviceAttempt writes an attempt that is about a device and none of its codes.
func (s *Service) newDeviceAttempt(ctx context.Context, tx store.Tx, d dbsqlc.Device, action string, patience time.Duration) (dbsqlc.ActionAttempt, error) {
	return s.newDeviceAttemptWith(ctx, tx, d, action, patience, attemptOptions{})
}

func (s *Service) newDeviceAttemptWith(ctx context.Context, tx store.Tx, d dbsqlc.Device, action string, patience time.Duration, opt attemptOptions) (dbsqlc.ActionAttempt, error) {
	r, err := tx.InsertActionAttempt(ctx, dbsqlc.InsertActionAttemptParams{ActionAttemptID: newID(), WorkspaceID: d.WorkspaceID, DeviceID: &d.DeviceID,
		ActionType: action, Options: mustJSON(opt), Status: string(Pending), Patience: patience})
	if err != nil {
		return r, fmt.Errorf("write the action attempt: %w", err)
	}
	tx.Begins()
	return r, nil
}

// finishTold ends an attempt, with the event where its type has one.
func (s *Service) finishTold(ctx context.Context, tx store.Tx, d dbsqlc.Device, r dbsqlc.ActionAttempt, status AttemptStatus, errorType, message string) error {
	ended, err := s.finish(ctx, tx, r, status, errorType, message)
	prefix, told := attemptEvents[r.ActionType]
	if err != nil || !ended || !told {
		return err
	}
	outcome := ".succeeded"
	if status == Failed {
		outcome = ".failed"
	}
	a := aboutDevice(d).with("action_attempt_id", r.ActionAttemptID).with("action_type", r.ActionType).with("status", string(status))
	return s.emit(ctx, tx, prefix+outcome, a)
}

func movesBolt(a dbsqlc.ActionAttempt) bool {
	return a.ActionType == LockDoor || a.ActionType == UnlockDoor
}

// bolt is the bolt's next work: attempts are done one after another, in the order they were asked for.
func (t *deviceTx) bolt() (work *BoltWork, poll *time.Time) {
	for _, a := range t.pending {
		if !movesBolt(a) {
			continue
		}
		if a.StartedAt != nil {
			again := pollAfter(*a.StartedAt, t.now)
			poll = &again
		}
		return &BoltWork{Attempt: a.ActionAttemptID, Lock: a.ActionType == LockDoor, Started: a.StartedAt != nil}, poll
	}
	return nil, nil
}

// Interruption is why nothing more is to be written to a device for now.
type Interruption struct {
	AtDoor bool // somebody waits for the bolt to be moved, who comes before the codes
	Gone   bool // the device has left its account, or is no longer managed
}

// Interrupted says whether anything has come between what was decided about a device and the next write to it.
func (s *Service) Interrupted(ctx context.Context, device uuid.UUID) (Interruption, error) {
	r, err := s.db.Interrupted(ctx, device)
	return Interruption(r), err
}

// RecordBoltStarted notes, before a command to the bolt or about the automatic is sent, that this is about to happen:
// after a crash nobody sends it again. It says whether it still is to be sent.
func (s *Service) RecordBoltStarted(ctx context.Context, h Holder, device uuid.UUID, w BoltWork) (still bool, err error) {
	err = s.onDevice(ctx, h, device, "record the start of an action", func(t *deviceTx) error {
		still = false
		for _, a := range t.pending {
			if a.ActionAttemptID == w.Attempt && a.StartedAt == nil && !t.late(a) && t.d.RemovedAt == nil {
				still = true
				return t.tx.StartActionAttempt(ctx, dbsqlc.StartActionAttemptParams{ActionAttemptID: w.Attempt, StartedAt: &t.now})
			}
		}
		return nil
	})
	return still, err
}

// RecordBoltNotStarted notes that the command did not get through after all: it may be sent again.
func (s *Service) RecordBoltNotStarted(ctx context.Context, h Holder, device uuid.UUID, w BoltWork) error {
	return s.onDevice(ctx, h, device, "record that an action did not start", func(t *deviceTx) error {
		return t.tx.StartActionAttempt(ctx, dbsqlc.StartActionAttemptParams{ActionAttemptID: w.Attempt})
	})
}

// RecordBoltMoved notes that the device has confirmed.
func (s *Service) RecordBoltMoved(ctx context.Context, h Holder, device uuid.UUID, w BoltWork) error {
	return s.onDevice(ctx, h, device, "record a moved bolt", func(t *deviceTx) error {
		for _, a := range t.pending {
			if a.ActionAttemptID == w.Attempt {
				return t.moved(ctx, a, nil)
			}
		}
		return nil
	})
}

// RecordBoltFailed notes that the bolt was not moved, and why.
func (s *Service) RecordBoltFailed(ctx context.Context, h Holder, device uuid.UUID, w BoltWork, errorType, message string) error {
	return s.onDevice(ctx, h, device, "record a failed action", func(t *deviceTx) error {
		return t.end(ctx, func(a dbsqlc.ActionAttempt) bool { return a.ActionAttemptID == w.Attempt }, Failed, errorType, message)
	})
}

// moved ends the attempt well and tells of the bolt; at is when it happened, nil: now.
func (t *deviceTx) moved(ctx context.Context, a dbsqlc.ActionAttempt, at *time.Time) error {
	if err := t.end(ctx, is(a), Succeeded, "", ""); err != nil {
		return err
	}
	told := aboutDevice(t.d).with("method", "remote").with("action_attempt_id", a.ActionAttemptID)
	told.at = at
	return t.tellBolt(ctx, a.ActionType == LockDoor, told)
}

// tellBolt notes where the bolt is, unless it has been moved since, and tells it.
func (t *deviceTx) tellBolt(ctx context.Context, locked bool, a about) error {
	if t.inOrder(a.at) {
		if t.d.Locked == nil || *t.d.Locked != locked {
			t.d.Locked, t.d.LockedChangedAt = &locked, t.now
			if err := t.tx.SetDeviceLocked(ctx, dbsqlc.SetDeviceLockedParams{DeviceID: t.d.DeviceID, Locked: &locked, LockedChangedAt: t.now}); err != nil {
				return err
			}
		}
		t.d.AnnouncedLocked = &locked
		if err := saveTold(ctx, t.tx, t.d); err != nil {
			return err
		}
	}
	event := "lock.unlocked"
	if locked {
		event = "lock.locked"
	}
	return t.s.emit(ctx, t.tx, event, a)
}

// inOrder notes when the bolt was moved, by its vendor's clock, and says whether that is not before the last time that was told: pushes are
// repeated until they come through. Two clocks are not compared, and one that is ahead, or was before ours was stepped back, says nothing about later.
func (t *deviceTx) inOrder(at *time.Time) bool {
	switch {
	case at == nil:
		return true
	case t.d.OperatedAt != nil && at.Before(*t.d.OperatedAt) && !t.d.OperatedAt.After(t.now):
		return false
	}
	t.d.OperatedAt = earlier(at, t.now)
	return true
}

// boltDoubted says whether the bolt was seen elsewhere than last told, for so long that its vendor will not
// tell of it any more, or when that will be.
func (s *Service) boltDoubted(d dbsqlc.Device) (doubted bool, again *time.Time) {
	if d.RemovedAt != nil || d.Locked == nil || d.AnnouncedLocked == nil || *d.Locked == *d.AnnouncedLocked {
		return false, nil
	}
	if until := d.LockedChangedAt.Add(s.opt.OperationLag); until.After(s.opt.Now()) {
		return false, &until
	}
	return true, nil
}
