package acs

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	// tombstoneTTL is how long a tombstone remembers a deleted user.
	tombstoneTTL = 30 * 24 * time.Hour
	// tombstoneRefTTL is how long it remembers the vendor's reference. Later, an administrator may have
	// created the user again.
	tombstoneRefTTL = time.Hour
)

// writeTombstone remembers that a user was deleted. A late create may arrive after every timeout,
// and the list that omits the user may be incomplete. A user that was adopted is recognized by its
// reference until the time until.
func (s *Service) writeTombstone(ctx context.Context, tx store.Tx, u dbsqlc.AcsUser, now, until time.Time) error {
	err := tx.DeleteOldAcsUserTombstones(ctx,
		dbsqlc.DeleteOldAcsUserTombstonesParams{AcsSystemID: u.AcsSystemID, Before: now.Add(-tombstoneTTL)})
	if err != nil {
		return err
	}
	arg := dbsqlc.InsertAcsUserTombstoneParams{AcsUserID: u.AcsUserID, AcsSystemID: u.AcsSystemID, DeletedAt: now}
	if has := applied(u); has != nil && u.VendorRef != nil {
		arg.VendorRef, arg.PersonHash, arg.RefValidUntil = u.VendorRef, has.digest(), &until
	}
	return tx.InsertAcsUserTombstone(ctx, arg)
}

// digest returns a hash of the personal data.
func (p Profile) digest() []byte {
	sum := sha256.Sum256(mustJSON([]string{p.FullName, p.Email, p.Phone}))
	return sum[:]
}

// findUnwanted finds unmatched users on a system that must not be there: late arrivals of deleted
// users, duplicates of existing users, and users with a tombstone. It maps their vendor references
// to the user they belong to.
func findUnwanted(
	ctx context.Context,
	tx store.Tx,
	r dbsqlc.AcsSystem,
	rows []dbsqlc.AcsUser,
	others []FoundUser,
	now time.Time,
) (map[string]uuid.UUID, error) {
	if len(others) == 0 {
		return nil, nil
	}
	arg := dbsqlc.ListAcsUserTombstonesParams{AcsSystemID: r.AcsSystemID, Ids: []uuid.UUID{}, Moment: now}
	for _, f := range others {
		arg.Refs = append(arg.Refs, f.Ref)
		if key := f.ownerID(); key != uuid.Nil {
			arg.Ids = append(arg.Ids, key)
		}
	}
	gone, err := tx.ListAcsUserTombstones(ctx, arg)
	if err != nil {
		return nil, err
	}
	keys, refs := map[uuid.UUID]bool{}, map[string]dbsqlc.ListAcsUserTombstonesRow{}
	for _, g := range gone {
		keys[g.AcsUserID] = true
		if g.VendorRef != nil {
			refs[*g.VendorRef] = g
		}
	}
	for _, u := range rows {
		keys[u.AcsUserID] = keys[u.AcsUserID] || u.IsManaged
	}
	out := map[string]uuid.UUID{}
	for _, f := range others {
		if key := f.ownerID(); keys[key] {
			out[f.Ref] = key
		} else if g, ok := refs[f.Ref]; ok && key == uuid.Nil && slices.Equal(g.PersonHash, f.digest()) {
			out[f.Ref] = g.AcsUserID
		}
	}
	return out, nil
}
