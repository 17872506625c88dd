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
	goneMemory = 30 * 24 * time.Hour // of who was deleted
	refMemory  = time.Hour           // of how the system named them: later on somebody may have put them there again
)

// remember keeps that a user was deleted: what was sent to make it may be slower than all that is waited for, and the
// list that does not show it may not be complete. One that was taken over is known by its reference, until then.
func (s *Service) remember(ctx context.Context, tx store.Tx, u dbsqlc.AcsUser, now, until time.Time) error {
	err := tx.ForgetAcsUsersGone(ctx, dbsqlc.ForgetAcsUsersGoneParams{AcsSystemID: u.AcsSystemID, Before: now.Add(-goneMemory)})
	if err != nil {
		return err
	}
	arg := dbsqlc.AcsUserGoneParams{AcsUserID: u.AcsUserID, AcsSystemID: u.AcsSystemID, DeletedAt: now}
	if has := applied(u); has != nil && u.VendorRef != nil {
		arg.VendorRef, arg.PersonHash, arg.RefValidUntil = u.VendorRef, has.who(), &until
	}
	return tx.AcsUserGone(ctx, arg)
}

// who is a hash of whom the information is about.
func (p Profile) who() []byte {
	sum := sha256.Sum256(mustJSON([]string{p.FullName, p.Email, p.Phone}))
	return sum[:]
}

// nobodyWants are those of the others that were made for a user who has been deleted since, or who is there already, and
// those that are such a user, by what they are called there; by that, with the user.
func nobodyWants(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem, rows []dbsqlc.AcsUser, others []FoundUser, now time.Time) (map[string]uuid.UUID, error) {
	if len(others) == 0 {
		return nil, nil
	}
	arg := dbsqlc.ListAcsUsersGoneParams{AcsSystemID: r.AcsSystemID, Ids: []uuid.UUID{}, Moment: now}
	for _, f := range others {
		arg.Refs = append(arg.Refs, f.Ref)
		if key := f.madeFor(); key != uuid.Nil {
			arg.Ids = append(arg.Ids, key)
		}
	}
	gone, err := tx.ListAcsUsersGone(ctx, arg)
	if err != nil {
		return nil, err
	}
	keys, refs := map[uuid.UUID]bool{}, map[string]dbsqlc.ListAcsUsersGoneRow{}
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
		if key := f.madeFor(); keys[key] {
			out[f.Ref] = key
		} else if g, ok := refs[f.Ref]; ok && key == uuid.Nil && slices.Equal(g.PersonHash, f.who()) {
			out[f.Ref] = g.AcsUserID
		}
	}
	return out, nil
}
