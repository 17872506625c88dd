package device

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// deviceTx is a transaction on one device, its codes, and its pending attempts. Callers change the lock; the
// transaction writes the difference at its end, in one round trip with the commit.
type deviceTx struct {
	s    *Service
	tx   store.Tx
	d    dbsqlc.Device
	lock *lockstate.Lock
	now  time.Time

	pins pinDigits
	// rows and before are the codes as they were loaded.
	rows   map[uuid.UUID]dbsqlc.AccessCode
	before map[uuid.UUID]lockstate.Code
	// pending are the attempts as they were loaded.
	pending map[uuid.UUID]dbsqlc.ActionAttempt
	// changes collects those of the lock.
	changes lockstate.Changes
	// events are those to write, in their order.
	events []event.Occurrence
	// inPass is true for a transaction of a pass, which looks at the device again anyway.
	inPass bool
	// seq is the wake-up that a read covers.
	seq int64
	// last are further statements to run at the end.
	last []func(store.Tx) error
	// answered are the rows of the new attempts.
	answered map[uuid.UUID]dbsqlc.ActionAttempt
	// inserted are the rows of the new codes.
	inserted map[uuid.UUID]dbsqlc.AccessCode
}

// onDevice runs f in a transaction that locks a device and checks the fence. doing describes f in errors.
func (s *Service) onDevice(
	ctx context.Context,
	h store.Fence,
	id uuid.UUID,
	doing string,
	f func(*deviceTx) error,
) error {
	return s.onLockedDevice(ctx, id, doing, func(tx store.Tx) (store.LockedDevice, error) {
		return lockHeld(ctx, tx, h, id)
	}, f)
}

// lockHeld locks a device and checks the fence. A lease is checked in the same round trip. The further steps are those
// of store.Tx.LockDeviceWithCodes.
func lockHeld(
	ctx context.Context, tx store.Tx, h store.Fence, id uuid.UUID, further ...func(store.Tx) error,
) (store.LockedDevice, error) {
	verify := func() error { return h.Check(ctx, tx) }
	if lease, ok := h.(*worker.Lease); ok {
		var check func(store.Tx) error
		check, verify = lease.CheckQuery(ctx, tx)
		further = append(slices.Clip(further), check)
	}
	l, err := tx.LockDeviceWithCodes(ctx, id, further...)
	if err != nil {
		return l, err
	}
	return l, verify()
}

// onLockedDevice is onDevice with its own lock function.
func (s *Service) onLockedDevice(
	ctx context.Context, id uuid.UUID, doing string,
	lock func(store.Tx) (store.LockedDevice, error), f func(*deviceTx) error,
) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		l, err := lock(tx)
		if err != nil {
			return err
		}
		t, err := s.load(tx, l)
		if err != nil {
			return err
		}
		if err := f(t); err != nil {
			return err
		}
		return t.write(ctx, tx.BatchLast)
	})
	if err != nil {
		return fmt.Errorf("%s of device %s: %w", doing, id, err)
	}
	return nil
}

// load returns the transaction on a locked device.
func (s *Service) load(tx store.Tx, l store.LockedDevice) (*deviceTx, error) {
	macs := make([][]byte, 0, 2*len(l.Codes))
	for _, r := range l.Codes {
		macs = append(macs, r.PinMac, r.WritePinMac)
	}
	t := s.txOn(tx, l.Device, s.pinsOn(l.Device.DeviceID, macs...))
	for _, r := range l.Codes {
		c, err := t.pins.load(r)
		if err != nil {
			return nil, err
		}
		t.rows[c.ID], t.lock.Codes = r, append(t.lock.Codes, &c)
	}
	for _, a := range l.Pending {
		t.pending[a.ActionAttemptID] = a
		t.lock.Attempts = append(t.lock.Attempts, toLockAttempt(a, t.now.Sub(l.Moment)))
	}
	t.before = t.lock.Snapshot()
	t.lock.ForgetFuture()
	return t, nil
}

// txOn returns the transaction on a locked device without its codes.
func (s *Service) txOn(tx store.Tx, d dbsqlc.Device, pins pinDigits) *deviceTx {
	t := &deviceTx{
		s:        s,
		tx:       tx,
		d:        d,
		now:      s.opt.Now().UTC(),
		pins:     pins,
		rows:     map[uuid.UUID]dbsqlc.AccessCode{},
		pending:  map[uuid.UUID]dbsqlc.ActionAttempt{},
		answered: map[uuid.UUID]dbsqlc.ActionAttempt{},
		inserted: map[uuid.UUID]dbsqlc.AccessCode{},
	}
	t.lock = &lockstate.Lock{Device: toLockDevice(d), Now: t.now, Timeouts: s.timeouts(), Sources: t.sources()}
	return t
}

func toLockDevice(d dbsqlc.Device) lockstate.Device {
	return lockstate.Device{
		ID:                  d.DeviceID,
		Capabilities:        capabilities(d),
		Managed:             d.IsManaged,
		Removed:             d.RemovedAt != nil,
		Detached:            isDetached(d),
		Online:              d.Online,
		SubscriptionMissing: d.SubscriptionMissingAt != nil,
		ReadNeeded:          d.ReadNeeded || d.LastGoodReadAt == nil,
		RereadAt:            d.RereadAt,
		EmptySince:          d.EmptySince,
		Pool:                readPool(d),
	}
}

// toLockAttempt returns an attempt whose deadline is moved to this server's clock, which is ahead of the database's.
func toLockAttempt(a dbsqlc.ActionAttempt, ahead time.Duration) lockstate.Attempt {
	opt := options(a)
	return lockstate.Attempt{
		ID:                          a.ActionAttemptID,
		CodeID:                      domain.Value(a.AccessCodeID),
		Type:                        a.ActionType,
		Gen:                         a.DesiredGen,
		StartedAt:                   a.StartedAt,
		Deadline:                    a.DeadlineAt.Add(ahead),
		ExternalModificationAllowed: opt.ExternalModificationAllowed,
		AutoLock:                    opt.AutoLock,
	}
}

func (s *Service) timeouts() lockstate.Timeouts {
	return lockstate.Timeouts{
		Confirm:        s.opt.ConfirmTimeout,
		ReadLag:        s.opt.ReadLag,
		EmptyListGrace: s.opt.EmptyListGrace,
		DelayAfter:     s.opt.DelayAfter,
		Attempt:        s.opt.AttemptTimeout,
	}
}

func (t *deviceTx) sources() lockstate.Sources {
	return lockstate.Sources{
		NewID:  domain.NewID,
		Jitter: rand.N[time.Duration],
		NewPIN: func(taken []lockstate.PIN) (lockstate.PIN, bool) {
			digits, err := generatePIN(capabilities(t.d), 0, func(digits string) bool {
				return slices.Contains(taken, t.pins.of(digits))
			})
			return t.pins.of(digits), err == nil
		},
		Admit: func(n int) int {
			return t.s.inventoryLimit.acquire(t.d.ConnectedAccountID, t.s.opt.Now(), n)
		},
	}
}

// newAttempt returns the row of an attempt that the lock has requested.
func (t *deviceTx) newAttempt(r lockstate.Requested) dbsqlc.InsertActionAttemptParams {
	if r.Status == lockstate.Pending {
		t.tx.Begins()
	}
	arg := dbsqlc.InsertActionAttemptParams{
		ActionAttemptID: r.ID,
		WorkspaceID:     t.d.WorkspaceID,
		DeviceID:        &t.d.DeviceID,
		ActionType:      r.Type,
		DesiredGen:      r.Gen,
		Options:         domain.MustJSON(attemptOptions{ExternalModificationAllowed: r.ExternalModificationAllowed}),
		Status:          string(r.Status),
		Timeout:         t.s.opt.AttemptTimeout,
	}
	if r.CodeID != uuid.Nil {
		arg.AccessCodeID = &r.CodeID
	}
	return arg
}

// attempt returns the row of a requested attempt, after the transaction.
func (t *deviceTx) attempt(r lockstate.Requested) dbsqlc.ActionAttempt {
	if old, ok := t.pending[r.ID]; ok { // of an earlier request
		return old
	}
	return t.answered[r.ID]
}
