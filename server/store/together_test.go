package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Whoever waits for a device reads the codes that it has when it is his, not those it had when he asked.
func TestCodesAreReadOnceTheDeviceIsLocked(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	workspace, device, code := uuid.New(), uuid.New(), uuid.New()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := db.Pool.Exec(ctx, `
		with w as (insert into workspaces (workspace_id, name, is_sandbox) values ($1, 'w', true)),
		a as (insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed) values ($1, $1, 'devicecloud', '', 'a', ''))
		insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online, capabilities, flags)
		values ($2, $1, $1, 'ref', 'lock', '', '', '', '', 'd', true, '{}', '{}')`, workspace, device)
	if err != nil {
		t.Fatal(err)
	}
	locked, asked := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- db.InTx(ctx, func(tx store.Tx) error {
			if _, err := tx.LockDevice(ctx, device); err != nil {
				return err
			}
			close(locked)
			select {
			case <-asked:
			case <-ctx.Done():
				return ctx.Err()
			}
			_, err := tx.InsertAccessCode(ctx, store.InsertAccessCodeParams{AccessCodeID: code, WorkspaceID: workspace, DeviceID: device, IsManaged: true, Status: "setting", WantedAt: time.Now()})
			return err
		})
	}()
	go func() { // the other one waits for the lock
		<-locked
		for waiting := 0; waiting == 0 && ctx.Err() == nil; {
			_ = db.Pool.QueryRow(ctx, "select count(*) from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0").Scan(&waiting)
		}
		close(asked)
	}()
	<-locked
	err = db.InTx(ctx, func(tx store.Tx) error {
		d, codes, pending, err := tx.LockDeviceWithCodes(ctx, device)
		if err != nil {
			return err
		}
		if d.DeviceID != device || d.Name != "d" || len(codes) != 1 || codes[0].AccessCodeID != code || len(pending) != 0 {
			t.Errorf("the device %+v has %d codes and %d attempts", d, len(codes), len(pending))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
	err = db.InTx(ctx, func(tx store.Tx) error {
		_, _, _, err := tx.LockDeviceWithCodes(ctx, uuid.New())
		return err
	})
	if !store.IsNoRows(err) {
		t.Errorf("a device that is not there: %v", err)
	}
}

// What is changed together with other things is told of in the audit log like what is changed alone, and an answer is that
// of its own query.
func TestChangesThatAreMadeTogetherAreAudited(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	workspace, first, second := uuid.New(), uuid.New(), uuid.New()
	ctx := store.Acting(t.Context(), &store.Act{ActorKind: "command_line", Operation: "test", WorkspaceID: workspace})
	if _, err := db.Pool.Exec(ctx, "insert into workspaces (workspace_id, name, is_sandbox) values ($1, 'w', true)", workspace); err != nil {
		t.Fatal(err)
	}
	attempt := func(id uuid.UUID, status string) store.InsertActionAttemptParams {
		return store.InsertActionAttemptParams{ActionAttemptID: id, WorkspaceID: workspace, ActionType: "LOCK_DOOR", Status: status, Options: []byte("{}")}
	}
	var one, other store.ActionAttempt
	err := db.InTx(ctx, func(tx store.Tx) error {
		return tx.Together(ctx,
			func(tx store.Tx) (err error) {
				one, err = tx.InsertActionAttempt(ctx, attempt(first, "pending"))
				return err
			},
			func(tx store.Tx) (err error) {
				other, err = tx.InsertActionAttempt(ctx, attempt(second, "success"))
				return err
			})
	})
	if err != nil || one.ActionAttemptID != first || other.ActionAttemptID != second || other.FinishedAt == nil || one.FinishedAt != nil {
		t.Fatalf("%v: %+v and %+v", err, one, other)
	}
	var subjects []uuid.UUID
	if err := db.Pool.QueryRow(ctx, "select subject_ids from audit_log where workspace_id = $1", workspace).Scan(&subjects); err != nil {
		t.Fatal(err)
	}
	if len(subjects) != 2 || subjects[0] != first || subjects[1] != second {
		t.Errorf("the audit log names %v, want %s and %s", subjects, first, second)
	}
	err = db.InTx(ctx, func(tx store.Tx) error {
		return tx.Together(ctx,
			func(tx store.Tx) error {
				_, err := tx.InsertActionAttempt(ctx, attempt(uuid.New(), "pending"))
				return err
			},
			func(tx store.Tx) error { _, err := tx.InsertActionAttempt(ctx, attempt(second, "pending")); return err })
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.ConstraintName != "action_attempts_pkey" {
		t.Errorf("an attempt that is there already: %v", err)
	}
}
