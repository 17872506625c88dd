package access

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// goneMemory is how long it is remembered of a code that was deleted that its creation may yet arrive.
const goneMemory = 30 * 24 * time.Hour

// remember keeps that a code was deleted although it may have been sent, and has not shown: its vendor may be slower than all that is
// waited for. One on a device that has left its account is on that still, and is nobody's once it is back.
func (s *Service) remember(ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) error {
	sent := c.WriteGen > 0 || len(c.WritePinMac) > 0
	if !c.IsManaged || offline(c) || c.VendorRef != nil || !sent || d.RemovedAt != nil {
		return nil
	}
	now := s.opt.Now().UTC()
	if err := tx.ForgetAccessCodesGone(ctx, dbsqlc.ForgetAccessCodesGoneParams{DeviceID: d.DeviceID, Before: now.Add(-goneMemory)}); err != nil {
		return err
	}
	return tx.AccessCodeGone(ctx, dbsqlc.AccessCodeGoneParams{AccessCodeID: c.AccessCodeID, DeviceID: d.DeviceID, DeletedAt: now})
}

// ofDeleted says whether a code on the device was made for one of ours that was deleted since.
func (r *reading) ofDeleted(ctx context.Context, f Found) (bool, error) {
	key := parseIDs(&[]string{f.Key})
	if len(key) == 0 || key[0].String() != f.Key || f.KeyGuessed {
		return false, nil
	}
	if r.deleted == nil {
		r.deleted = map[uuid.UUID]bool{}
		ids := []uuid.UUID{}
		for _, f := range r.found {
			if id, err := uuid.Parse(f.Key); err == nil {
				ids = append(ids, id)
			}
		}
		gone, err := r.tx.ListAccessCodesGone(ctx, dbsqlc.ListAccessCodesGoneParams{DeviceID: r.d.DeviceID, Ids: ids, Since: r.now.Add(-goneMemory)})
		if err != nil {
			return false, fmt.Errorf("look for codes that were deleted: %w", err)
		}
		for _, id := range gone {
			r.deleted[id] = true
		}
	}
	return r.deleted[key[0]], nil
}
