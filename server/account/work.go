package account

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Resync wakes an account and all its devices, because anything about them may have changed.
func (s *Service) Resync(ctx context.Context, account uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.LockAccount(ctx, account); err != nil { // lock order: before its devices
			return err
		}
		return s.wakeAccountAndDevices(ctx, tx, account)
	})
	if store.IsNoRows(err) { // it was erased
		return nil
	}
	if err != nil {
		return fmt.Errorf("resync account %s: %w", account, err)
	}
	return nil
}

// wakeAccountAndDevices wakes an account and all its devices. The caller must hold the account's lock.
func (s *Service) wakeAccountAndDevices(ctx context.Context, tx store.Tx, account uuid.UUID) error {
	devices, err := tx.LockDevicesOfAccount(ctx, account)
	if err != nil {
		return err
	}
	var there []uuid.UUID
	for _, d := range devices {
		if !d.Gone {
			there = append(there, d.DeviceID)
		}
	}
	if err := tx.WakeToRead(ctx, there); err != nil {
		return err
	}
	if err := s.waker.WakeEach(ctx, tx, domain.DeviceLane, there); err != nil {
		return err
	}
	if err := tx.WakeAccount(ctx, account); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, domain.AccountLane, account)
}

// Hint wakes the device of that reference, because it may have changed. An empty or unknown ref wakes the
// account.
func (s *Service) Hint(ctx context.Context, account uuid.UUID, ref string) error {
	if ref != "" {
		if others, err := s.HintDevices(ctx, account, []string{ref}); err != nil || !others {
			return err
		}
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.WakeAccount(ctx, account); err != nil {
			return err
		}
		return s.waker.Wake(ctx, tx, domain.AccountLane, account)
	})
	if err != nil {
		return fmt.Errorf("record a hint about account %s: %w", account, err)
	}
	return nil
}

// HintDevices wakes devices of an account that may have changed. others reports whether some of the references
// are not of known devices. The list of the account shows those.
func (s *Service) HintDevices(ctx context.Context, account uuid.UUID, refs []string) (others bool, err error) {
	possible := slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return ref != domain.Storable(ref) })
	known := 0
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		ids, err := tx.WakeDevicesByRef(
			ctx,
			dbsqlc.WakeDevicesByRefParams{ConnectedAccountID: account, VendorRefs: possible},
		)
		if err != nil {
			return err
		}
		known = len(ids)
		return s.waker.WakeEach(ctx, tx, domain.DeviceLane, ids)
	})
	if err != nil {
		return false, fmt.Errorf("record hints about devices of account %s: %w", account, err)
	}
	return known < len(refs), nil
}

// ScheduleAccount schedules the next work on an account after a delay. An account that was woken after seq is
// due immediately.
func (s *Service) ScheduleAccount(ctx context.Context, account uuid.UUID, seq int64, after time.Duration) error {
	return s.db.ScheduleAccount(
		ctx,
		dbsqlc.ScheduleAccountParams{ConnectedAccountID: account, WakeSeq: seq, After: after},
	)
}

// AccountDue reports whether the account is due.
func (s *Service) AccountDue(ctx context.Context, account uuid.UUID) (bool, error) {
	due, err := s.db.AccountDue(ctx, account)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// DueAccounts lists accounts that are due and not leased.
func (s *Service) DueAccounts(ctx context.Context, limit int32, but worker.Saturated) ([]uuid.UUID, error) {
	return s.db.DueAccounts(
		ctx,
		dbsqlc.DueAccountsParams{MaxRows: limit, ExcludeWorkspaces: but.Workspaces, ExcludeCreators: but.Creators},
	)
}

// AccountOwners returns the workspaces of accounts and the creators of these workspaces.
func (s *Service) AccountOwners(ctx context.Context, accounts []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	rows, err := s.db.AccountOwners(ctx, accounts)
	owners := map[uuid.UUID]worker.Owners{}
	for _, r := range rows {
		owners[r.ConnectedAccountID] = worker.Owners{Workspace: r.WorkspaceID, Creator: r.CreatedBy}
	}
	return owners, err
}

// WakeDevice makes the device due when tx commits; read says that its codes may have changed.
func (s *Service) WakeDevice(ctx context.Context, tx store.Tx, id uuid.UUID, read bool) error {
	if err := tx.WakeDevice(ctx, dbsqlc.WakeDeviceParams{DeviceID: id, ReadNeeded: read}); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, domain.DeviceLane, id)
}

// AccountsOfPush returns the accounts of an adapter that a push to the operator's application concerns: the one at the
// address, or those with the device if the address is empty.
func (s *Service) AccountsOfPush(ctx context.Context, adapter, address, ref string) ([]uuid.UUID, error) {
	if address == "" {
		if ref == "" || ref != domain.Storable(ref) {
			return nil, nil
		}
		ids, err := s.db.AccountsWithDevice(ctx, dbsqlc.AccountsWithDeviceParams{Adapter: adapter, VendorRef: ref})
		if err != nil {
			return nil, fmt.Errorf("look for the accounts with a device: %w", err)
		}
		return ids, nil
	}
	a, err := s.db.GetAccountByAddress(
		ctx,
		dbsqlc.GetAccountByAddressParams{Adapter: adapter, AddressMac: s.addressMAC(adapter, address)},
	)
	if store.IsNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the account of a push: %w", err)
	}
	return []uuid.UUID{a.ConnectedAccountID}, nil
}
