package device

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// adoptUnmanaged adds an unknown code as an unmanaged one. A late arrival of a deleted code is added, too, and removed.
func (r *reading) adoptUnmanaged(ctx context.Context, f Found) error {
	if left, err := r.reclaimPoolCode(ctx, f); err != nil || left {
		return err
	}
	c := &dbsqlc.AccessCode{
		AccessCodeID:           domain.NewID(),
		WorkspaceID:            r.d.WorkspaceID,
		DeviceID:               r.d.DeviceID,
		Name:                   domain.NonEmpty(f.Name),
		StartsAt:               f.StartsAt,
		EndsAt:                 f.EndsAt,
		Status:                 string(StatusSet),
		PreferNativeScheduling: true,
		VendorRef:              &f.Ref,
		DesiredAt:              r.now,
	}
	r.s.setPIN(c, f.PIN)
	r.disabled(c, f.Disabled)
	deleted, err := r.wasDeleted(ctx, f)
	if err != nil {
		return err
	}
	if deleted {
		c.RemovingSince, c.Status = &r.now, string(StatusRemoving)
	}
	r.add(c)
	r.others = append(r.others, c)
	return nil
}

// add adds an observed code to those of the device.
func (r *reading) add(c *dbsqlc.AccessCode) {
	r.codes, r.byRef[domain.Value(c.VendorRef)], r.seen[c.AccessCodeID] = append(r.codes, c), c, true
}

// insertUnmanaged inserts the codes that adoptUnmanaged added, up to the inventory rate limit of the account.
func (r *reading) insertUnmanaged(ctx context.Context) error {
	if room := r.admit(len(r.others)); room < len(r.others) {
		later := map[*dbsqlc.AccessCode]bool{}
		for _, c := range r.others[room:] {
			later[c] = true
		}
		r.codes = slices.DeleteFunc(slices.Clone(r.codes), func(c *dbsqlc.AccessCode) bool { return later[c] })
		r.others, r.rest = r.others[:room], r.rest+len(later)
	}
	err := store.Each(ctx, r.tx, r.others, func(tx store.Tx, c *dbsqlc.AccessCode) error {
		row, err := tx.InsertAccessCode(ctx, dbsqlc.InsertAccessCodeParams{
			AccessCodeID:           c.AccessCodeID,
			WorkspaceID:            c.WorkspaceID,
			DeviceID:               c.DeviceID,
			Name:                   c.Name,
			PinSealed:              c.PinSealed,
			PinMac:                 c.PinMac,
			StartsAt:               c.StartsAt,
			EndsAt:                 c.EndsAt,
			Status:                 c.Status,
			PreferNativeScheduling: true,
			VendorRef:              c.VendorRef,
			DesiredAt:              c.DesiredAt,
		})
		// The batch has not run yet.
		if row.AccessCodeID != c.AccessCodeID {
			return err
		}
		r.before[row.AccessCodeID] = row
		row.ErrorCode, row.ErrorMessage, row.ErrorAt = c.ErrorCode, c.ErrorMessage, c.ErrorAt
		row.RemovingSince = c.RemovingSince
		*c = row
		return err
	})
	if err != nil {
		return fmt.Errorf("insert unmanaged codes: %w", err)
	}
	var told []event.Occurrence
	for _, c := range r.others {
		told = append(told, event.Occurrence{Type: "access_code.unmanaged.created", About: event.AboutCode(r.d, *c)})
	}
	return r.s.events.EmitAll(ctx, r.tx, told)
}

// removeUnmanaged deletes the unmanaged codes that the device did not show. onMissing handles those that an attempt, a
// managed code, or a removal waits for.
func (r *reading) removeUnmanaged(ctx context.Context) error {
	awaited := map[uuid.UUID]bool{}
	for _, a := range r.pending {
		awaited[domain.Value(a.AccessCodeID)] = true
	}
	for _, c := range r.codes {
		awaited[domain.Value(c.PulledBackupCodeID)] = true
		// Other codes wait for a removal even after its attempt has ended.
		if c.RemovingSince != nil {
			awaited[c.AccessCodeID] = true
		}
	}
	departed := func(c *dbsqlc.AccessCode) bool {
		return !c.IsManaged && !c.IsBackup && !offline(*c) && !r.seen[c.AccessCodeID] && !awaited[c.AccessCodeID]
	}
	count := 0
	for _, c := range r.codes {
		if departed(c) {
			count++
		}
	}
	// The device has room, whatever the rate limit lets through.
	r.deviceChanged = r.deviceChanged || count > 0
	room := r.admit(count)
	r.rest += count - room
	var gone []uuid.UUID
	var told []event.Occurrence
	r.codes = slices.DeleteFunc(slices.Clone(r.codes), func(c *dbsqlc.AccessCode) bool {
		switch {
		case !departed(c):
			return false
		case room == 0:
			r.seen[c.AccessCodeID] = true // counts as present until there is budget
			return false
		}
		room--
		gone, told = append(gone, c.AccessCodeID), append(told, event.Occurrence{
			Type:  "access_code.unmanaged.removed",
			About: event.AboutCode(r.d, *c),
		})
		return true
	})
	if gone == nil {
		return nil
	}
	if err := r.tx.DeleteAccessCodes(ctx, gone); err != nil {
		return fmt.Errorf("delete removed codes: %w", err)
	}
	return r.s.events.EmitAll(ctx, r.tx, told)
}

// admit returns how many of n additions or removals of unmanaged codes the inventory rate limit allows now.
func (r *reading) admit(n int) int {
	return r.s.inventoryLimit.acquire(r.d.ConnectedAccountID, r.s.opt.Now(), n)
}

// scheduleReread schedules a read for the changes that exceeded the inventory rate limit. Managed codes do not wait for it.
func (r *reading) scheduleReread() {
	if r.rest == 0 {
		return
	}
	now, account := r.s.opt.Now(), r.d.ConnectedAccountID
	// A read is already scheduled.
	if again := r.d.RereadAt; again != nil && again.After(now) {
		r.again = earlier(r.again, *again)
		return
	}
	r.again = earlier(r.again, now.Add(r.s.inventoryLimit.rereadDelay(account, now, r.rest, func() {
		r.s.opt.Log.Warn("the unmanaged codes of an account change faster than the inventory rate limit allows; "+
			"the server records the rest later", "connected_account_id", account)
	})))
}

// reclaimPoolCode removes a code that was in the backup pool of a deleted device: of this one, before it came back as a
// new device. It recognizes the code by its identifier if the vendor keeps that, else by its reference, name, and PIN.
func (r *reading) reclaimPoolCode(ctx context.Context, f Found) (left bool, err error) {
	key, err := uuid.Parse(f.Key)
	if err != nil && f.PIN == "" {
		return false, nil
	}
	rows, err := r.leftPools(ctx)
	if err != nil {
		return false, fmt.Errorf("list the codes of abandoned pools: %w", err)
	}
	for i, was := range rows {
		if was.AccessCodeID != key &&
			(domain.Value(was.VendorRef) != f.Ref || domain.Value(cmp.Or(was.VendorName, was.Name)) != f.Name) {
			continue
		}
		pin, err := r.s.pinOf(was)
		if err != nil {
			return false, err
		}
		if was.AccessCodeID != key && pin != f.PIN {
			continue
		}
		*r.left = slices.Delete(rows, i, i+1)
		if err := r.tx.DeleteAccessCode(ctx, was.AccessCodeID); err != nil {
			return false, err
		}
		row := dbsqlc.AccessCode{AccessCodeID: domain.NewID(), DeviceID: r.d.DeviceID}
		r.s.setPIN(&row, pin)
		c, err := r.tx.InsertAccessCode(ctx, dbsqlc.InsertAccessCodeParams{
			AccessCodeID:           row.AccessCodeID,
			WorkspaceID:            r.d.WorkspaceID,
			DeviceID:               r.d.DeviceID,
			IsManaged:              true,
			Name:                   was.Name,
			PinSealed:              row.PinSealed,
			PinMac:                 row.PinMac,
			Status:                 string(StatusSet),
			PreferNativeScheduling: true,
			VendorRef:              &f.Ref,
			DesiredAt:              r.now,
			IsBackup:               true,
			InPool:                 true,
		})
		if err != nil {
			return false, fmt.Errorf("insert a code of an abandoned pool: %w", err)
		}
		r.before[c.AccessCodeID] = c
		r.add(&c)
		r.managed = append(r.managed, &c)
		return true, r.expire(ctx, &c)
	}
	return false, nil
}

// leftPools lists the codes of abandoned pools that may be among the observed codes.
func (r *reading) leftPools(ctx context.Context) ([]dbsqlc.AccessCode, error) {
	if r.left == nil {
		arg := dbsqlc.ListOrphanedPoolCodesParams{
			WorkspaceID: r.d.WorkspaceID,
			Keys:        []uuid.UUID{},
			VendorRefs:  []string{},
		}
		for _, f := range r.found {
			arg.VendorRefs = append(arg.VendorRefs, f.Ref)
			if key, err := uuid.Parse(f.Key); err == nil {
				arg.Keys = append(arg.Keys, key)
			}
		}
		rows, err := r.tx.ListOrphanedPoolCodes(ctx, arg)
		if err != nil {
			return nil, err
		}
		r.left = &rows
	}
	return *r.left, nil
}
