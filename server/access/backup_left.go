package access

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Nobody is told of the codes of a pool, and they open at any time. So none stays on a device that is given up as long
// as there is a way to the device, nor once there is one again.

// dropPool takes the whole pool off the device.
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

// lookForPool is LookAtDevice for a device that is not managed: what is left to do there is to take its pool off.
func (t *deviceTx) lookForPool(ctx context.Context) (w DeviceWork, err error) {
	for _, c := range t.inPool() {
		if err := t.tickCode(ctx, c); err != nil {
			return w, err
		}
	}
	w = DeviceWork{Device: toDevice(told(t.d)), Seq: t.d.WakeSeq, Failures: int(t.d.Failures)}
	if w.Due, err = t.s.tell(ctx, t.tx, &t.d); err != nil {
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
	w.ReadNeeded = t.d.ReadNeeded && (len(w.Codes) > 0 || len(t.inPool()) == 0) // without a pool it is only asked whether it is there still
	return w, nil
}

// RecordThere notes that a device that is not managed is still in its account; seq is that of the work it was asked for.
func (s *Service) RecordThere(ctx context.Context, h Holder, device uuid.UUID, seq int64) error {
	err := s.onDevice(ctx, h, device, "record that it is there", func(t *deviceTx) error {
		if t.d.IsManaged || t.d.RemovedAt != nil { // meanwhile
			return nil
		}
		return t.tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{DeviceID: device, WakeSeq: seq, RereadAt: t.d.RereadAt, EmptySince: t.d.EmptySince})
	})
	if store.IsNoRows(err) { // erased with its workspace
		return nil
	}
	return err
}

// poolOnly is RecordRead for a device that is not managed: it finds out which codes of its pool have left it.
func (r *reading) poolOnly(ctx context.Context, seq int64, found []Found) error {
	if len(r.inPool()) == 0 {
		return nil
	}
	for _, f := range found {
		if c := r.owner(f); c != nil && c.InPool {
			if err := r.take(ctx, f); err != nil {
				return err
			}
		}
	}
	doubted := r.doubted(found)
	for _, c := range r.inPool() {
		if !r.seen[c.AccessCodeID] && doubted == nil {
			if err := r.missing(ctx, c); err != nil {
				return err
			}
		}
	}
	return r.tx.SetDeviceRead(ctx, dbsqlc.SetDeviceReadParams{DeviceID: r.d.DeviceID, WakeSeq: seq, RereadAt: r.again, EmptySince: doubted})
}
