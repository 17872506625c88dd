package acs

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// FoundUser is a user as observed on its system.
type FoundUser struct {
	// Key is the identifier of the user that it was created for. The vendor may return any text.
	Ref, Key string
	Profile
}

// ownerID returns the user that f was created for, or uuid.Nil if it is not one of ours. Vendors
// may change the case.
func (f *FoundUser) ownerID() uuid.UUID {
	id, err := uuid.Parse(f.Key)
	if err != nil {
		return uuid.Nil
	}
	return id
}

func (f *FoundUser) normalize() {
	f.FullName = domain.CleanName(f.FullName)
	for _, t := range []*string{&f.Email, &f.Phone} {
		*t = domain.Storable(*t)
	}
	f.StartsAt, f.EndsAt = domain.OnCalendar(f.StartsAt), domain.OnCalendar(f.EndsAt)
	f.Groups, f.Entrances = refsOf(f.Groups), refsOf(f.Entrances)
}

// accessRefs are the references of the groups and entrances of a system.
type accessRefs struct{ groups, entrances refs }

func accessOn(groups []FoundGroup, entrances []FoundEntrance) accessRefs {
	on := accessRefs{refs{}, refs{}}
	for _, g := range groups {
		on.groups[g.Ref] = true
	}
	for _, e := range entrances {
		on.entrances[e.Ref] = true
	}
	return on
}

// RecordContent records the complete observed content of a system. It returns the writes to run in
// this order, and the delay until more are due; 0 means that none are planned.
func (s *Service) RecordContent(
	ctx context.Context,
	h store.Fence,
	id uuid.UUID,
	users []FoundUser,
	groups []FoundGroup,
	entrances []FoundEntrance,
) (todo []Write, later time.Duration, err error) {
	err = s.onSystem(ctx, h, id, "record the content", func(tx store.Tx, r dbsqlc.AcsSystem) error {
		todo, later = nil, 0
		// A user without a usable reference cannot be addressed.
		users := slices.DeleteFunc(slices.Clone(users), func(f FoundUser) bool { return !isStorableRef(f.Ref) })
		groups := slices.DeleteFunc(slices.Clone(groups), func(g FoundGroup) bool { return !isStorableRef(g.Ref) })
		rows, err := tx.LockAcsUsersOfSystem(ctx, id)
		if err != nil {
			return err
		}
		access := accessOn(groups, entrances)
		if later, err = s.emptyGraceLeft(ctx, tx, r, rows, users, access); err != nil || later > 0 {
			return err
		}
		if err := s.recordGroupsAndEntrances(device.WithInventoryLimit(ctx), tx, r, groups, entrances); err != nil {
			return err
		}
		there, others, err := match(ctx, tx, rows, users)
		if err != nil {
			return err
		}
		now := s.devices.Now()
		strays, wait, err := s.recordUnmatched(ctx, tx, r, rows, others, now)
		if err != nil {
			return err
		}
		later = wait
		if err := recordUnmanaged(ctx, tx, rows, there); err != nil {
			return err
		}
		if err := unblock(ctx, tx, rows, there); err != nil {
			return err
		}
		// The system exists, whatever the account's list says. The next absence starts a new grace
		// period.
		if r.UnlistedAt != nil {
			if err := tx.SetAcsSystemUnlisted(ctx, dbsqlc.SetAcsSystemUnlistedParams{AcsSystemID: id}); err != nil {
				return err
			}
		}
		for _, u := range rows {
			if !u.IsManaged {
				continue
			}
			f, found := there[u.AcsUserID]
			w, wait, err := s.compare(ctx, tx, r, u, f, found, access, now)
			if err != nil {
				return err
			}
			if w != nil {
				todo = append(todo, *w)
			}
			later = minDelay(later, wait)
		}
		todo = append(todo, strays...)
		slices.SortStableFunc(todo, func(a, b Write) int { return a.priority() - b.priority() })
		// Only a successful write ends this error.
		if r.WriteRefused && (len(todo) > 0 || later > 0) {
			return nil
		}
		return s.markReachable(ctx, tx, r)
	})
	return todo, later, err
}

// minDelay returns the shorter of two delays, where 0 means none.
func minDelay(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// recordUnmatched stores users that other programs or administrators created. It returns the
// deletions of unwanted users, and the delay until more are due.
func (s *Service) recordUnmatched(
	ctx context.Context,
	tx store.Tx,
	r dbsqlc.AcsSystem,
	rows []dbsqlc.AcsUser,
	others []FoundUser,
	now time.Time,
) (strays []Write, later time.Duration, err error) {
	unwanted, err := findUnwanted(ctx, tx, r, rows, others, now)
	if err != nil {
		return nil, 0, err
	}
	var fresh []FoundUser
	for _, f := range others {
		user, ok := unwanted[f.Ref]
		if !ok {
			fresh = append(fresh, f)
		} else if wait := s.strays.wait(strayKey{r.AcsSystemID, f.Ref}, now); wait > 0 {
			later = minDelay(later, wait)
		} else {
			strays = append(strays, Write{
				UserID: user,
				Ref:    f.Ref,
				Delete: true,
				Stray:  true,
			})
		}
	}
	return strays, later, store.Each(ctx, tx, fresh,
		func(tx store.Tx, f FoundUser) error { return insertFound(ctx, tx, r, f) })
}

// recordUnmanaged records changes to unmanaged users. Their removal causes no event.
func recordUnmanaged(ctx context.Context, tx store.Tx, rows []dbsqlc.AcsUser, there map[uuid.UUID]FoundUser) error {
	var gone []uuid.UUID
	var changed []dbsqlc.UnmanagedAcsUserFoundParams
	for _, u := range rows {
		f, found := there[u.AcsUserID]
		switch has := applied(u); {
		case u.IsManaged:
		case !found:
			gone = append(gone, u.AcsUserID)
		case has == nil || !has.equal(f.Profile) || !same(u.VendorRef, &f.Ref):
			changed = append(changed, dbsqlc.UnmanagedAcsUserFoundParams{
				AcsUserID:    u.AcsUserID,
				FullName:     f.FullName,
				EmailAddress: nonEmpty(f.Email),
				PhoneNumber:  nonEmpty(f.Phone),
				StartsAt:     f.StartsAt,
				EndsAt:       f.EndsAt,
				IsSuspended:  f.Suspended,
				GroupRefs:    append([]string{}, f.Groups...),
				EntranceRefs: append([]string{}, f.Entrances...),
				Applied:      mustJSON(f.Profile),
				VendorRef:    &f.Ref,
			})
		}
	}
	if gone != nil {
		if err := tx.DeleteAcsUsers(ctx, gone); err != nil {
			return err
		}
	}
	return store.Each(ctx, tx, changed, func(tx store.Tx, arg dbsqlc.UnmanagedAcsUserFoundParams) error {
		return tx.UnmanagedAcsUserFound(ctx, arg)
	})
}

func insertFound(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem, f FoundUser) error {
	_, err := tx.InsertAcsUser(ctx, dbsqlc.InsertAcsUserParams{
		AcsUserID:    domain.NewID(),
		WorkspaceID:  r.WorkspaceID,
		AcsSystemID:  r.AcsSystemID,
		FullName:     f.FullName,
		EmailAddress: nonEmpty(f.Email),
		PhoneNumber:  nonEmpty(f.Phone),
		StartsAt:     f.StartsAt,
		EndsAt:       f.EndsAt,
		IsSuspended:  f.Suspended,
		GroupRefs:    append([]string{}, f.Groups...),
		EntranceRefs: append([]string{}, f.Entrances...),
		VendorRef:    &f.Ref,
		Applied:      mustJSON(f.Profile),
	})
	return err
}
