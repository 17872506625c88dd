package device

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// tombstoneTTL is how long a tombstone recognizes the late arrival of a deleted code.
const tombstoneTTL = 30 * 24 * time.Hour

// addTombstone records a tombstone for a deleted code that was sent but never observed, because its vendor may deliver
// it after every timeout. A code on a removed device gets none: it counts as unmanaged when the device returns.
func (s *Service) addTombstone(ctx context.Context, tx store.Tx, d dbsqlc.Device, c dbsqlc.AccessCode) error {
	sent := c.WriteGen > 0 || len(c.WritePinMac) > 0
	if !c.IsManaged || offline(c) || c.VendorRef != nil || !sent || d.RemovedAt != nil {
		return nil
	}
	now := s.opt.Now().UTC()
	if err := tx.DeleteOldAccessCodeTombstones(ctx, dbsqlc.DeleteOldAccessCodeTombstonesParams{
		DeviceID: d.DeviceID,
		Before:   now.Add(-tombstoneTTL),
	}); err != nil {
		return err
	}
	return tx.InsertAccessCodeTombstone(ctx, dbsqlc.InsertAccessCodeTombstoneParams{
		AccessCodeID: c.AccessCodeID,
		DeviceID:     d.DeviceID,
		DeletedAt:    now,
	})
}

// wasDeleted reports whether an observed code was created for a managed code that has a tombstone.
func (r *reading) wasDeleted(ctx context.Context, f Found) (bool, error) {
	key := domain.ParseIDs(&[]string{f.Key})
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
		gone, err := r.tx.ListAccessCodeTombstones(ctx, dbsqlc.ListAccessCodeTombstonesParams{
			DeviceID: r.d.DeviceID,
			Ids:      ids,
			Since:    r.now.Add(-tombstoneTTL),
		})
		if err != nil {
			return false, fmt.Errorf("list the tombstones of codes: %w", err)
		}
		for _, id := range gone {
			r.deleted[id] = true
		}
	}
	return r.deleted[key[0]], nil
}
