package acs

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// match finds out which of the users on a system are those that are known, and which are others.
func match(ctx context.Context, tx store.Tx, rows []dbsqlc.AcsUser, users []FoundUser) (there map[uuid.UUID]FoundUser, others []FoundUser, err error) {
	byRef, ours := map[string]dbsqlc.AcsUser{}, map[uuid.UUID]dbsqlc.AcsUser{}
	for _, u := range rows {
		if u.VendorRef != nil {
			byRef[*u.VendorRef] = u
		}
		if u.IsManaged {
			ours[u.AcsUserID] = u
		}
	}
	users, listed, made := tidied(users)
	there = map[uuid.UUID]FoundUser{}
	var strange []FoundUser
	for _, f := range users {
		u, known := byRef[f.Ref]
		owner, owned := ours[f.madeFor()]
		// The owner has no other place there: the reference of u, who is gone, was given to it. Not so where the system took it for u.
		given := known && owned && owner.AcsUserID != u.AcsUserID && made[owner.AcsUserID] == 1 && !listed[text(owner.VendorRef)] && !takenFor(owner, u)
		switch {
		case known && !given && (u.Applied != nil || f.madeFor() == u.AcsUserID || desired(u).sameInformation(f.Profile)):
			there[u.AcsUserID] = f
		case known: // it was not there any more: its place was given to somebody else
			if err := tx.ForgetAcsUserRef(ctx, u.AcsUserID); err != nil {
				return nil, nil, err
			}
			strange = append(strange, f)
		default:
			strange = append(strange, f)
		}
	}
	for _, f := range strange {
		id := f.madeFor()
		_, managed := ours[id]
		if _, twice := there[id]; managed && !twice { // it was made, but nobody heard of it
			there[id] = f
			continue
		}
		others = append(others, f)
	}
	return there, others, nil
}

// takenFor says whether a user was refused because its system takes it for another one, who is to be there.
func takenFor(refused, other dbsqlc.AcsUser) bool {
	return refused.BlockedBy != nil && *refused.BlockedBy == other.AcsUserID && refused.BlockedGen == refused.DesiredGen && other.DeletingAt == nil
}

// tidied are the users on a system, each once, with the references that they have, and how many were made for whom.
func tidied(found []FoundUser) (users []FoundUser, listed refs, made map[uuid.UUID]int) {
	listed, made = refs{}, map[uuid.UUID]int{}
	for _, f := range found {
		if !listed[f.Ref] {
			listed[f.Ref] = true
			f.tidy()
			made[f.madeFor()]++
			users = append(users, f)
		}
	}
	return users, listed, made
}

// unblock has those be tried again that the system took for somebody who is gone, or that are there by now.
func unblock(ctx context.Context, tx store.Tx, rows []dbsqlc.AcsUser, there map[uuid.UUID]FoundUser) error {
	var free []uuid.UUID
	for i := range rows {
		u := &rows[i]
		if u.BlockedBy == nil || u.BlockedGen != u.DesiredGen || text(u.ErrorCode) == deletedExternally { // an older server leaves BlockedBy as it was
			continue
		}
		_, itself := there[u.AcsUserID]
		if _, other := there[*u.BlockedBy]; itself && u.Applied == nil || !other {
			u.BlockedGen, u.BlockedBy, u.NextAttemptAt = 0, nil, nil
			free = append(free, u.AcsUserID)
		}
	}
	if free == nil {
		return nil
	}
	return tx.UnblockAcsUsers(ctx, free)
}
