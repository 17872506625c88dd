package device

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// dropPool removes the whole pool from the device. The codes of a pool are not shown to users and open at any
// time, so none may stay on a device that is given up.
func (t *deviceTx) dropPool(ctx context.Context) error {
	for _, c := range t.inPool() {
		if c.RemovingSince != nil {
			continue
		}
		if err := t.expire(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (t *deviceTx) inPool() (pool []*dbsqlc.AccessCode) {
	for _, c := range t.codes {
		if c.InPool {
			pool = append(pool, c)
		}
	}
	return pool
}

// planPoolRemoval is PlanDevice for an unmanaged device: the only work there is the removal of its pool.
func (t *deviceTx) planPoolRemoval(ctx context.Context) (w Work, err error) {
	for _, c := range t.inPool() {
		if err := t.tickCode(ctx, c); err != nil {
			return w, err
		}
	}
	w = Work{Device: toDevice(toAnnouncedDevice(t.d)), Seq: t.d.WakeSeq, Failures: int(t.d.Failures)}
	if w.Due, err = t.s.emitDeviceEvents(ctx, t.tx, &t.d); err != nil {
		return w, err
	}
	for _, c := range t.inPool() {
		one, due, err := t.work(c)
		if err != nil {
			return w, err
		}
		if due != nil {
			w.Due = earlier(w.Due, *due)
		}
		if one.Action != Nothing {
			w.Codes = append(w.Codes, one)
		}
	}
	w.ReadNeeded = t.d.ReadNeeded &&
		(len(w.Codes) > 0 || len(t.inPool()) == 0) // without a pool only its presence is checked
	return w, nil
}

// RecordPresent records that an unmanaged device is still in its account. seq is that of the work that checked
// it.
func (s *Service) RecordPresent(ctx context.Context, h domain.Fence, device uuid.UUID, seq int64) error {
	err := s.onDevice(ctx, h, device, "record that it is there", func(t *deviceTx) error {
		if t.d.IsManaged || t.d.RemovedAt != nil { // changed since
			return nil
		}
		return t.tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{
			DeviceID:   device,
			WakeSeq:    seq,
			RereadAt:   t.d.RereadAt,
			EmptySince: t.d.EmptySince,
		})
	})
	if store.IsNoRows(err) { // erased with its workspace
		return nil
	}
	return err
}

// recordPool is RecordRead for an unmanaged device: it finds out which codes of the pool are off the device.
func (r *reading) recordPool(ctx context.Context, seq int64, found []Found) error {
	if len(r.inPool()) == 0 {
		return nil
	}
	for _, f := range found {
		if c := r.owner(f); c != nil && c.InPool {
			if err := r.match(ctx, f); err != nil {
				return err
			}
		}
	}
	doubted := r.emptySince(found)
	for _, c := range r.inPool() {
		if !r.seen[c.AccessCodeID] && doubted == nil {
			if err := r.onMissing(ctx, c); err != nil {
				return err
			}
		}
	}
	return r.tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{
		DeviceID:   r.d.DeviceID,
		WakeSeq:    seq,
		RereadAt:   r.again,
		EmptySince: doubted,
	})
}
