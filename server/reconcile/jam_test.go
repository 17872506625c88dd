package reconcile_test

import (
	"errors"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Accounts are locked before their devices. Whoever waits for an account because a bolt is jammed holds no device of it: those who
// have the account could be waiting for that.
func TestNobodyHoldsADeviceAndWaitsForItsAccountAtAJam(t *testing.T) {
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
		b.until("the account is waited for", func() bool {
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
			t.Errorf("its device is held: %v", err)
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
		t.Error("the account's list, which shows the bolt, is not looked at")
	}
}
