package acs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// deletedExternally is the error code of a user that was deleted at the system.
const deletedExternally = "deleted_externally"

// FoundSystem is a system as its vendor lists it.
type FoundSystem struct {
	Ref, Name, TimeZone string
	Online              bool
}

// RecordSystems records the complete list of an account's systems and requests a look at each of
// them. It also requests a look at missing systems: removing one loses its desired state, so a list
// alone is not enough evidence.
func (s *Service) RecordSystems(ctx context.Context, h store.Fence, accountID uuid.UUID, found []FoundSystem) error {
	ctx = device.WithInventoryLimit(ctx)
	err := s.accounts.OnAnswer(ctx, h, accountID, func(tx store.Tx, a dbsqlc.ConnectedAccount) error {
		rows, err := tx.ListAcsSystemsOfAccount(ctx, accountID)
		if err != nil {
			return err
		}
		known := map[string]dbsqlc.AcsSystem{}
		for _, r := range rows {
			known[r.VendorRef] = r
		}
		seen, fresh := map[string]bool{}, 0
		found := slices.DeleteFunc(slices.Clone(found), func(f FoundSystem) bool {
			_, ok := known[f.Ref]
			if seen[f.Ref] || !isStorableRef(f.Ref) ||
				!ok && !slices.Contains(a.AcceptedCapabilities, account.AccessControl) {
				return true
			}
			if seen[f.Ref] = true; !ok {
				fresh++
			}
			return false
		})
		room := s.accounts.RoomForSystems(accountID, len(rows), fresh)
		for _, f := range found {
			r, ok := known[f.Ref]
			delete(known, f.Ref)
			if !ok {
				if room == 0 {
					continue
				}
				room--
			}
			if r, err = s.recordSystem(ctx, tx, a, f, r, ok); err != nil {
				return err
			}
			if err := s.waker.Wake(ctx, tx, SystemLane, r.AcsSystemID); err != nil {
				return err
			}
		}
		for _, r := range rows {
			if _, missing := known[r.VendorRef]; missing && r.RemovedAt == nil {
				if err := s.markUnlisted(ctx, tx, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record the access systems of account %s: %w", accountID, err)
	}
	return nil
}

func (s *Service) recordSystem(
	ctx context.Context,
	tx store.Tx,
	a dbsqlc.ConnectedAccount,
	f FoundSystem,
	r dbsqlc.AcsSystem,
	known bool,
) (_ dbsqlc.AcsSystem, err error) {
	name, zone := domain.CleanName(f.Name), nonEmpty(domain.Storable(f.TimeZone))
	if known {
		err = tx.UpdateAcsSystem(ctx,
			dbsqlc.UpdateAcsSystemParams{AcsSystemID: r.AcsSystemID, Name: name, TimeZone: zone})
	} else {
		r, err = tx.InsertAcsSystem(ctx, dbsqlc.InsertAcsSystemParams{
			AcsSystemID:        domain.NewID(),
			WorkspaceID:        a.WorkspaceID,
			ConnectedAccountID: a.ConnectedAccountID,
			VendorRef:          f.Ref,
			Name:               name,
			TimeZone:           zone,
		})
	}
	if err != nil {
		return r, err
	}
	if known && r.RemovedAt == nil {
		return r, nil
	}
	if err := s.emitSystem(ctx, tx, "acs_system.added", r); err != nil || !f.Online {
		return r, err
	}
	return r, s.emitSystem(ctx, tx, "acs_system.connected", r)
}

// emitDisconnected emits that a system is unreachable, with the error message. The message is empty
// for a removed system.
func (s *Service) emitDisconnected(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem, message string) error {
	errors := []any{}
	if message != "" {
		errors = append(
			errors,
			map[string]any{
				"error_code": systemDisconnected,
				"message":    message,
				"created_at": s.devices.Now().UTC(),
			},
		)
	}
	return s.events.EmitFields(
		ctx,
		tx,
		"acs_system.disconnected",
		r.WorkspaceID,
		r.ConnectedAccountID,
		map[string]any{
			"acs_system_id":     r.AcsSystemID,
			"acs_system_errors": errors, "acs_system_warnings": []any{},
			"connected_account_errors": []any{}, "connected_account_warnings": []any{},
		},
	)
}

func (s *Service) emitSystem(ctx context.Context, tx store.Tx, event string, r dbsqlc.AcsSystem) error {
	return s.events.EmitFields(ctx, tx, event, r.WorkspaceID, r.ConnectedAccountID,
		map[string]any{"acs_system_id": r.AcsSystemID})
}

// endSystem removes a system and its content. The caller must hold the system's lock.
func (s *Service) endSystem(ctx context.Context, tx store.Tx, r dbsqlc.AcsSystem) error {
	users, err := tx.LockAcsUsersOfSystem(ctx, r.AcsSystemID)
	if err != nil {
		return err
	}
	if err := recordUnmanaged(ctx, tx, users, nil); err != nil {
		return err
	}
	for _, u := range users {
		if u.IsManaged {
			// The system may come back with a user whose deletion was pending.
			if u.DeletingAt != nil {
				now := s.devices.Now()
				if err := s.writeTombstone(ctx, tx, u, now, now.Add(tombstoneTTL)); err != nil {
					return err
				}
			}
			if err := s.dropUser(ctx, tx, r, u); err != nil {
				return err
			}
		}
	}
	if err := s.recordGroupsAndEntrances(ctx, tx, r, nil, nil); err != nil {
		return err
	}
	if err := s.endUnlocks(ctx, tx, r); err != nil {
		return err
	}
	if err := tx.RemoveAcsSystem(ctx, r.AcsSystemID); err != nil {
		return err
	}
	return s.emitDisconnected(ctx, tx, r, "")
}

// EndAccount removes the systems of a deleted account in the transaction tx. It changes nothing on
// the systems: their users keep their access.
func (s *Service) EndAccount(ctx context.Context, tx store.Tx, _, account uuid.UUID) error {
	rows, err := tx.ListAcsSystemsOfAccount(ctx, account)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.RemovedAt == nil {
			if err := s.endSystem(ctx, tx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// FoundGroup is an access group as observed on its system.
type FoundGroup struct {
	Ref, Name string
	Entrances []string
}

// FoundEntrance is an entrance as observed on its system.
type FoundEntrance struct{ Ref, Name string }

// recordGroupsAndEntrances records the groups and entrances of a system.
func (s *Service) recordGroupsAndEntrances(
	ctx context.Context,
	tx store.Tx,
	r dbsqlc.AcsSystem,
	groups []FoundGroup,
	entrances []FoundEntrance,
) error {
	if err := s.recordEntrances(ctx, tx, r, entrances); err != nil {
		return err
	}
	refs := []string{}
	var puts []dbsqlc.PutAcsAccessGroupParams
	for _, g := range groups {
		if isStorableRef(g.Ref) {
			refs = append(refs, g.Ref)
			puts = append(puts, dbsqlc.PutAcsAccessGroupParams{
				AcsAccessGroupID: domain.NewID(),
				WorkspaceID:      r.WorkspaceID,
				AcsSystemID:      r.AcsSystemID,
				VendorRef:        g.Ref,
				Name:             domain.CleanName(g.Name),
				EntranceRefs:     refsOf(g.Entrances),
			})
		}
	}
	err := store.Each(ctx, tx, puts,
		func(tx store.Tx, put dbsqlc.PutAcsAccessGroupParams) error { return tx.PutAcsAccessGroup(ctx, put) })
	if err != nil {
		return err
	}
	gone, err := tx.DeleteOtherAcsAccessGroups(ctx,
		dbsqlc.DeleteOtherAcsAccessGroupsParams{AcsSystemID: r.AcsSystemID, Refs: refs})
	if err != nil {
		return err
	}
	return s.emitParts(ctx, tx, "acs_access_group.deleted", r, "acs_access_group_id", gone)
}

func (s *Service) recordEntrances(
	ctx context.Context,
	tx store.Tx,
	r dbsqlc.AcsSystem,
	entrances []FoundEntrance,
) error {
	refs := []string{}
	var puts []dbsqlc.PutAcsEntranceParams
	for _, e := range entrances {
		if isStorableRef(e.Ref) {
			refs = append(refs, e.Ref)
			puts = append(puts, dbsqlc.PutAcsEntranceParams{
				AcsEntranceID: domain.NewID(),
				WorkspaceID:   r.WorkspaceID,
				AcsSystemID:   r.AcsSystemID,
				VendorRef:     e.Ref,
				Name:          domain.CleanName(e.Name),
			})
		}
	}
	var added []uuid.UUID
	err := store.Each(ctx, tx, puts, func(tx store.Tx, put dbsqlc.PutAcsEntranceParams) error {
		kept, err := tx.PutAcsEntrance(ctx, put)
		if err == nil && kept == put.AcsEntranceID {
			added = append(added, kept)
		}
		if store.IsNoRows(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := s.emitParts(ctx, tx, "acs_entrance.added", r, "acs_entrance_id", added); err != nil {
		return err
	}
	gone, err := tx.DeleteOtherAcsEntrances(ctx,
		dbsqlc.DeleteOtherAcsEntrancesParams{AcsSystemID: r.AcsSystemID, Refs: refs})
	if err != nil {
		return err
	}
	return s.emitParts(ctx, tx, "acs_entrance.removed", r, "acs_entrance_id", gone)
}

func (s *Service) emitParts(
	ctx context.Context,
	tx store.Tx,
	event string,
	r dbsqlc.AcsSystem,
	field string,
	ids []uuid.UUID,
) error {
	return s.events.EmitEach(
		ctx,
		tx,
		event,
		r.WorkspaceID,
		r.ConnectedAccountID,
		len(ids),
		func(i int) map[string]any {
			return map[string]any{"acs_system_id": r.AcsSystemID, field: ids[i]}
		},
	)
}

// isStorableRef reports whether a vendor's reference can be stored unchanged. Objects with other
// references are skipped.
func isStorableRef(ref string) bool { return ref != "" && ref == domain.Storable(ref) }

// refs is a set of vendor references.
type refs map[string]bool

func refsIn(all []string) refs {
	in := make(refs, len(all))
	for _, ref := range all {
		in[ref] = true
	}
	return in
}

// lack reports whether one of the references is not in the set.
func (r refs) lack(all []string) bool {
	return slices.ContainsFunc(all, func(ref string) bool { return !r[ref] })
}

// among returns the references that are in the set.
func (r refs) among(all []string) []string {
	return slices.DeleteFunc(append([]string{}, all...), func(ref string) bool { return !r[ref] })
}

// refsOf returns the storable references, deduplicated and sorted.
func refsOf(all []string) []string {
	kept := slices.DeleteFunc(slices.Sorted(slices.Values(all)), func(ref string) bool { return !isStorableRef(ref) })
	return append([]string{}, slices.Compact(kept)...)
}

// dropUser deletes the record of a managed user that is neither on the system nor wanted there.
func (s *Service) dropUser(ctx context.Context, tx store.Tx, system dbsqlc.AcsSystem, u dbsqlc.AcsUser) error {
	if err := tx.DeleteAcsUser(ctx, u.AcsUserID); err != nil {
		return err
	}
	return s.emitUser(ctx, tx, "acs_user.deleted", system, u)
}

// ReconcileState is the state of a system that its reconciler needs.
type ReconcileState struct {
	ID, AccountID uuid.UUID
	Ref           string
	Removed       bool
	Seq           int64
}

// ReconcileStateOf reads a system for its reconciler, in any workspace.
func (s *Service) ReconcileStateOf(ctx context.Context, id uuid.UUID) (ReconcileState, error) {
	r, err := s.db.ReadAcsSystem(ctx, id)
	// A reset of its workspace deleted it.
	if store.IsNoRows(err) {
		return ReconcileState{ID: id, Removed: true}, nil
	}
	if err != nil {
		return ReconcileState{}, fmt.Errorf("read the access system %s: %w", id, err)
	}
	return ReconcileState{
		ID:        id,
		AccountID: r.ConnectedAccountID,
		Ref:       r.VendorRef,
		Removed:   r.RemovedAt != nil,
		Seq:       r.WakeSeq,
	}, nil
}

// UsersOnSystem returns the number of users that are on a system or should be.
func (s *Service) UsersOnSystem(ctx context.Context, id uuid.UUID) (int, error) {
	n, err := s.db.CountAcsUsersOfSystem(ctx, id)
	return int(n), err
}

// ScheduleSystem sets the delay until the next look at a system. A wake-up since seq makes the
// system due immediately.
func (s *Service) ScheduleSystem(ctx context.Context, id uuid.UUID, seq int64, after time.Duration) error {
	return s.db.ScheduleAcsSystem(ctx, dbsqlc.ScheduleAcsSystemParams{AcsSystemID: id, WakeSeq: seq, After: after})
}

// SystemDue reports whether the system is due.
func (s *Service) SystemDue(ctx context.Context, id uuid.UUID) (bool, error) {
	due, err := s.db.AcsSystemDue(ctx, id)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// DueSystems lists due systems that no instance has leased.
func (s *Service) DueSystems(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	return s.db.DueAcsSystems(ctx, dbsqlc.DueAcsSystemsParams{
		MaxRows:           limit,
		ExcludeAccounts:   but.Accounts,
		ExcludeWorkspaces: but.Workspaces,
		ExcludeCreators:   but.Creators,
	})
}

// SystemOwners returns the accounts, workspaces, and workspace creators of systems.
func (s *Service) SystemOwners(ctx context.Context, systems []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	rows, err := s.db.AcsSystemOwners(ctx, systems)
	owners := map[uuid.UUID]worker.Owners{}
	for _, r := range rows {
		owners[r.AcsSystemID] = worker.Owners{
			Account:   r.ConnectedAccountID,
			Workspace: r.WorkspaceID,
			Creator:   r.CreatedBy,
		}
	}
	return owners, err
}

// WakeSystems makes all systems of an account due.
func (s *Service) WakeSystems(ctx context.Context, h store.Fence, account uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.ListAcsSystemsOfAccount(ctx, account)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.RemovedAt == nil {
				if err := s.wake(ctx, tx, r.AcsSystemID); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wake the access systems of account %s: %w", account, err)
	}
	return nil
}

// onSystem runs f on a locked system on behalf of the lease holder. It skips a removed system.
func (s *Service) onSystem(
	ctx context.Context,
	h store.Fence,
	id uuid.UUID,
	what string,
	f func(store.Tx, dbsqlc.AcsSystem) error,
) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		r, err := tx.LockAcsSystem(ctx, id)
		if store.IsNoRows(err) || err == nil && r.RemovedAt != nil {
			return nil
		}
		if err != nil {
			return err
		}
		return f(tx, r)
	})
	if err != nil {
		return fmt.Errorf("%s of access system %s: %w", what, id, err)
	}
	return nil
}
