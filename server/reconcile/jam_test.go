package reconcile_test

import (
	"errors"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Accounts are locked before their devices. A transaction that waits for an account because of a
// jam holds no lock on a device. Otherwise, it could deadlock with the account's holder.
func TestJam_LocksAccountBeforeDevice(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	told := make(chan error, 1)
	errEnough := errors.New("enough was seen")
	err := b.db.InTx(t.Context(), func(tx store.Tx) error {
		if _, err := tx.LockAccount(t.Context(), b.account); err != nil {
			return err
		}
		go func() {
			_, err := b.access.RecordOperation(t.Context(), b.account, b.lock,
				access.Operation{Kind: access.BoltJammed, ID: "e1"})
			told <- err
		}()
		b.until("the transaction waits for the account", func() bool {
			waiting := 0
			b.must(
				b.db.Pool.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0").
					Scan(&waiting),
			)
			return waiting > 0
		})
		own, err := tx.Begun(t.Context())
		if err != nil {
			return err
		}
		if _, err := own.Exec(t.Context(), "select from devices where device_id = $1 for no key update nowait", b.id()); err != nil {
			t.Errorf("the device is locked: %v", err)
			return errEnough
		}
		return nil
	})
	b.must(<-told)
	if errors.Is(err, errEnough) {
		return
	}
	b.must(err)
	var due bool
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select due_at <= now() from connected_accounts where connected_account_id = $1", b.account).
			Scan(&due),
	)
	if !due {
		t.Error("the account is not listed to learn the lock state")
	}
}
