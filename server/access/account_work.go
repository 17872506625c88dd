package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Resync says that anything about an account and its devices may have changed.
func (s *Service) Resync(ctx context.Context, account uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.LockAccount(ctx, account); err != nil { // before its devices, as everybody does
			return err
		}
		return s.wakeWhole(ctx, tx, account)
	})
	if store.IsNoRows(err) { // it was erased
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at account %s anew: %w", account, err)
	}
	return nil
}

// wakeWhole has an account and all its devices looked at. It is for those who hold the account's lock.
func (s *Service) wakeWhole(ctx context.Context, tx store.Tx, account uuid.UUID) error {
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
	if err := s.waker.WakeEach(ctx, tx, DeviceLane, there); err != nil {
		return err
	}
	if err := tx.WakeAccount(ctx, account); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, AccountLane, account)
}

// Hint says that something about an account or one of its devices may have changed; an empty ref means
// the account as a whole. An unknown device makes the account be looked at.
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
		return s.waker.Wake(ctx, tx, AccountLane, account)
	})
	if err != nil {
		return fmt.Errorf("take a hint about account %s: %w", account, err)
	}
	return nil
}

// HintDevices says that something about devices of an account may have changed. It tells whether there are others among
// them than those that are looked after: of these the account's list tells.
func (s *Service) HintDevices(ctx context.Context, account uuid.UUID, refs []string) (others bool, err error) {
	possible := slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return ref != storable(ref) })
	known, err := s.db.DevicesToHint(ctx, dbsqlc.DevicesToHintParams{ConnectedAccountID: account, VendorRefs: possible})
	if err == nil && len(known) > 0 {
		err = s.db.InTx(ctx, func(tx store.Tx) error {
			for _, id := range known {
				if err := s.wakeDevice(ctx, tx, id, true); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return false, fmt.Errorf("take hints about devices of account %s: %w", account, err)
	}
	return len(known) < len(refs), nil
}

// ScheduleAccount says after how long an account is to be looked at again; what has woken it since seq makes it due at once.
func (s *Service) ScheduleAccount(ctx context.Context, account uuid.UUID, seq int64, after time.Duration) error {
	return s.db.ScheduleAccount(ctx, dbsqlc.ScheduleAccountParams{ConnectedAccountID: account, WakeSeq: seq, After: after})
}

// AccountDue says whether it is time to look at the account.
func (s *Service) AccountDue(ctx context.Context, account uuid.UUID) (bool, error) {
	due, err := s.db.AccountDue(ctx, account)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// DueAccounts lists accounts that it is time to look at and nobody looks at.
func (s *Service) DueAccounts(ctx context.Context, limit int32, but worker.Crowds) ([]uuid.UUID, error) {
	return s.db.DueAccounts(ctx, dbsqlc.DueAccountsParams{MaxRows: limit, ExcludeWorkspaces: but.Wide, ExcludeCreators: but.Makers})
}

// AccountOwners are the workspaces of accounts, and who has made these.
func (s *Service) AccountOwners(ctx context.Context, accounts []uuid.UUID) (map[uuid.UUID]worker.Owners, error) {
	rows, err := s.db.AccountOwners(ctx, accounts)
	owners := map[uuid.UUID]worker.Owners{}
	for _, r := range rows {
		owners[r.ConnectedAccountID] = worker.Owners{Wide: r.WorkspaceID, Maker: r.CreatedBy}
	}
	return owners, err
}
