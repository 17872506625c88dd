package acs

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// match assigns the users on a system to the known users. others are the users that match none.
func match(
	ctx context.Context,
	tx store.Tx,
	rows []dbsqlc.AcsUser,
	users []FoundUser,
) (there map[uuid.UUID]FoundUser, others []FoundUser, err error) {
	byRef, ours := map[string]dbsqlc.AcsUser{}, map[uuid.UUID]dbsqlc.AcsUser{}
	for _, u := range rows {
		if u.VendorRef != nil {
			byRef[*u.VendorRef] = u
		}
		if u.IsManaged {
			ours[u.AcsUserID] = u
		}
	}
	users, listed, made := deduplicate(users)
	there = map[uuid.UUID]FoundUser{}
	var strange []FoundUser
	for _, f := range users {
		u, known := byRef[f.Ref]
		owner, owned := ours[f.ownerID()]
		// The reference of u, which left the system, now belongs to owner if owner has no other
		// entry. The exception is a system that took owner for u.
		given := known && owned && owner.AcsUserID != u.AcsUserID && made[owner.AcsUserID] == 1 &&
			!listed[text(owner.VendorRef)] &&
			!takenFor(owner, u)
		switch {
		case known && !given && (u.Applied != nil || f.ownerID() == u.AcsUserID || desired(u).sameInformation(f.Profile)):
			there[u.AcsUserID] = f
		// The user left and its reference now belongs to another one.
		case known:
			if err := tx.ForgetAcsUserRef(ctx, u.AcsUserID); err != nil {
				return nil, nil, err
			}
			strange = append(strange, f)
		default:
			strange = append(strange, f)
		}
	}
	for _, f := range strange {
		id := f.ownerID()
		_, managed := ours[id]
		// The vendor created the user, but the confirmation was lost.
		if _, twice := there[id]; managed && !twice {
			there[id] = f
			continue
		}
		others = append(others, f)
	}
	return there, others, nil
}

// takenFor reports whether refused is blocked because its system takes it for other, which should
// stay there.
func takenFor(refused, other dbsqlc.AcsUser) bool {
	return refused.BlockedBy != nil && *refused.BlockedBy == other.AcsUserID &&
		refused.BlockedGen == refused.DesiredGen &&
		other.DeletingAt == nil
}

// deduplicate returns the users on a system without duplicates, their references, and how many
// entries each owner has.
func deduplicate(found []FoundUser) (users []FoundUser, listed refs, made map[uuid.UUID]int) {
	listed, made = refs{}, map[uuid.UUID]int{}
	for _, f := range found {
		if !listed[f.Ref] {
			listed[f.Ref] = true
			f.normalize()
			made[f.ownerID()]++
			users = append(users, f)
		}
	}
	return users, listed, made
}

// unblock allows retries for users whose blocking user left the system, and for users that are on
// it by now.
func unblock(ctx context.Context, tx store.Tx, rows []dbsqlc.AcsUser, there map[uuid.UUID]FoundUser) error {
	var free []uuid.UUID
	for i := range rows {
		u := &rows[i]
		// Servers of an older version leave BlockedBy unchanged.
		if u.BlockedBy == nil || u.BlockedGen != u.DesiredGen || text(u.ErrorCode) == deletedExternally {
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
