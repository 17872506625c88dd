package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// other has a code of somebody else's be kept as an unmanaged one; so is one that was made for a code that was deleted since, and is taken
// off.
func (r *reading) other(ctx context.Context, f Found) error {
	if left, err := r.leftInPool(ctx, f); err != nil || left {
		return err
	}
	c := &dbsqlc.AccessCode{AccessCodeID: newID(), WorkspaceID: r.d.WorkspaceID, DeviceID: r.d.DeviceID, Name: nonEmpty(f.Name), StartsAt: f.StartsAt, EndsAt: f.EndsAt,
		Status: string(StatusSet), PreferNativeScheduling: true, VendorRef: &f.Ref, DesiredAt: r.now}
	r.s.setPIN(c, f.PIN)
	r.disabled(c, f.Disabled)
	deleted, err := r.ofDeleted(ctx, f)
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

// add has a code that was seen be among those of the device.
func (r *reading) add(c *dbsqlc.AccessCode) {
	r.codes, r.byRef[text(c.VendorRef)], r.seen[c.AccessCodeID] = append(r.codes, c), c, true
}

// keepOthers writes down what other has found: where nobody has read the device yet that is all there is.
func (r *reading) keepOthers(ctx context.Context) error {
	if room := r.admit(len(r.others)); room < len(r.others) {
		later := map[*dbsqlc.AccessCode]bool{}
		for _, c := range r.others[room:] {
			later[c] = true
		}
		r.codes = slices.DeleteFunc(slices.Clone(r.codes), func(c *dbsqlc.AccessCode) bool { return later[c] })
		r.others, r.rest = r.others[:room], r.rest+len(later)
	}
	err := store.Each(ctx, r.tx, r.others, func(tx store.Tx, c *dbsqlc.AccessCode) error {
		row, err := tx.InsertAccessCode(ctx, dbsqlc.InsertAccessCodeParams{AccessCodeID: c.AccessCodeID, WorkspaceID: c.WorkspaceID, DeviceID: c.DeviceID, Name: c.Name,
			PinSealed: c.PinSealed, PinMac: c.PinMac, StartsAt: c.StartsAt, EndsAt: c.EndsAt, Status: c.Status, PreferNativeScheduling: true, VendorRef: c.VendorRef, DesiredAt: c.DesiredAt})
		if row.AccessCodeID != c.AccessCodeID { // not yet
			return err
		}
		r.before[row.AccessCodeID] = row
		row.ErrorCode, row.ErrorMessage, row.ErrorAt, row.RemovingSince = c.ErrorCode, c.ErrorMessage, c.ErrorAt, c.RemovingSince
		*c = row
		return err
	})
	if err != nil {
		return fmt.Errorf("write down codes of others: %w", err)
	}
	var told []happening
	for _, c := range r.others {
		told = append(told, happening{"access_code.unmanaged.created", aboutCode(r.d, *c)})
	}
	return r.s.emitAll(ctx, r.tx, told)
}

// othersLeft deals with those codes of somebody else's that the device did not show, but for what anybody waits for:
// missing does with those.
func (r *reading) othersLeft(ctx context.Context) error {
	awaited := map[uuid.UUID]bool{}
	for _, a := range r.pending {
		awaited[idOf(a.AccessCodeID)] = true
	}
	for _, c := range r.codes {
		awaited[idOf(c.PulledBackupCodeID)] = true
		if c.RemovingSince != nil { // also where nobody waits any more: others do, until it has left
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
	r.changed = r.changed || count > 0 // there is room on it, whatever may be told
	room := r.admit(count)
	r.rest += count - room
	var gone []uuid.UUID
	var told []happening
	r.codes = slices.DeleteFunc(slices.Clone(r.codes), func(c *dbsqlc.AccessCode) bool {
		switch {
		case !departed(c):
			return false
		case room == 0:
			r.seen[c.AccessCodeID] = true // as far as anybody is to know
			return false
		}
		room--
		gone, told = append(gone, c.AccessCodeID), append(told, happening{"access_code.unmanaged.removed", aboutCode(r.d, *c)})
		return true
	})
	if gone == nil {
		return nil
	}
	if err := r.tx.DeleteAccessCodes(ctx, gone); err != nil {
		return fmt.Errorf("delete codes that have left: %w", err)
	}
	return r.s.emitAll(ctx, r.tx, told)
}

// admit is how many of so many codes of others may come or leave now.
func (r *reading) admit(n int) int { return r.s.news.take(r.d.ConnectedAccountID, r.s.opt.Now(), n) }

// restLater has the device be read again for what there was no room for. Codes of ours do not wait for that.
func (r *reading) restLater() {
	if r.rest == 0 {
		return
	}
	now, account := r.s.opt.Now(), r.d.ConnectedAccountID
	if again := r.d.RereadAt; again != nil && again.After(now) { // that is its turn
		r.again = earlier(r.again, *again)
		return
	}
	r.again = earlier(r.again, now.Add(r.s.news.later(account, now, r.rest, func() {
		r.s.opt.Log.Warn("there is more coming and going on an account's locks than is told of at once; the rest of their unmanaged codes is taken in later", "account", account)
	})))
}

// leftInPool takes a code off the device that was in the pool of a device that was given up: of this one, before it has
// come back as another. It is known by its identifier, where its vendor keeps that, else by its reference, name and PIN.
func (r *reading) leftInPool(ctx context.Context, f Found) (left bool, err error) {
	key, err := uuid.Parse(f.Key)
	if err != nil && f.PIN == "" {
		return false, nil
	}
	rows, err := r.leftPools(ctx)
	if err != nil {
		return false, fmt.Errorf("look for a pool that was left: %w", err)
	}
	for i, was := range rows {
		if was.AccessCodeID != key && (text(was.VendorRef) != f.Ref || was.Name == nil || *was.Name != f.Name) {
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
		row := dbsqlc.AccessCode{AccessCodeID: newID(), DeviceID: r.d.DeviceID}
		r.s.setPIN(&row, pin)
		c, err := r.tx.InsertAccessCode(ctx, dbsqlc.InsertAccessCodeParams{AccessCodeID: row.AccessCodeID, WorkspaceID: r.d.WorkspaceID, DeviceID: r.d.DeviceID,
			IsManaged: true, Name: was.Name, PinSealed: row.PinSealed, PinMac: row.PinMac, Status: string(StatusSet), PreferNativeScheduling: true,
			VendorRef: &f.Ref, DesiredAt: r.now, IsBackup: true, InPool: true})
		if err != nil {
			return false, fmt.Errorf("write down a code of a pool that was left: %w", err)
		}
		r.before[c.AccessCodeID] = c
		r.add(&c)
		r.managed = append(r.managed, &c)
		return true, r.expire(ctx, &c)
	}
	return false, nil
}

// leftPools are those codes of pools that were left which may be among what was found.
func (r *reading) leftPools(ctx context.Context) ([]dbsqlc.AccessCode, error) {
	if r.left == nil {
		arg := dbsqlc.LeftInPoolParams{WorkspaceID: r.d.WorkspaceID, Keys: []uuid.UUID{}, VendorRefs: []string{}}
		for _, f := range r.found {
			arg.VendorRefs = append(arg.VendorRefs, f.Ref)
			if key, err := uuid.Parse(f.Key); err == nil {
				arg.Keys = append(arg.Keys, key)
			}
		}
		rows, err := r.tx.LeftInPool(ctx, arg)
		if err != nil {
			return nil, err
		}
		r.left = &rows
	}
	return *r.left, nil
}
