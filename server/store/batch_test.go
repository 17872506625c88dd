package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// A transaction that waits for a device reads the codes from after the wait.
func TestCodesAreReadOnceTheDeviceIsLocked(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	workspace, device, code := uuid.New(), uuid.New(), uuid.New()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(testenv.WaitTimeout))
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
			_, err := tx.InsertAccessCode(ctx, dbsqlc.InsertAccessCodeParams{
				AccessCodeID: code,
				WorkspaceID:  workspace,
				DeviceID:     device,
				IsManaged:    true,
				Status:       "setting",
				DesiredAt:    time.Now(),
			})
			return err
		})
	}()
	go func() { // the other one waits for the lock
		<-locked
		for waiting := 0; waiting == 0 && ctx.Err() == nil; {
			_ = db.Pool.QueryRow(ctx, "select count(*) from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0").
				Scan(&waiting)
		}
		close(asked)
	}()
	<-locked
	err = db.InTx(ctx, func(tx store.Tx) error {
		l, err := tx.LockDeviceWithCodes(ctx, device)
		if err != nil {
			return err
		}
		if l.Device.DeviceID != device || l.Device.Name != "d" || len(l.Codes) != 1 ||
			l.Codes[0].AccessCodeID != code ||
			len(l.Pending) != 0 {
			t.Errorf("the device %+v has %d codes and %d attempts", l.Device, len(l.Codes), len(l.Pending))
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
		_, err := tx.LockDeviceWithCodes(ctx, uuid.New())
		return err
	})
	if !store.IsNoRows(err) {
		t.Errorf("a device that is not there: %v", err)
	}
}

// Changes in a batch are audited like single changes, and each query gets its own result.
func TestChangesThatAreMadeTogetherAreAudited(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	workspace, first, second := uuid.New(), uuid.New(), uuid.New()
	ctx := store.WithAct(t.Context(), &store.Act{ActorKind: "command_line", Operation: "test", WorkspaceID: workspace})
	if _, err := db.Pool.Exec(
		ctx,
		"insert into workspaces (workspace_id, name, is_sandbox) values ($1, 'w', true)",
		workspace,
	); err != nil {
		t.Fatal(err)
	}
	attempt := func(id uuid.UUID, status string) dbsqlc.InsertActionAttemptParams {
		return dbsqlc.InsertActionAttemptParams{
			ActionAttemptID: id,
			WorkspaceID:     workspace,
			ActionType:      "LOCK_DOOR",
			Status:          status,
			Options:         []byte("{}"),
		}
	}
	var one, other dbsqlc.ActionAttempt
	err := db.InTx(ctx, func(tx store.Tx) error {
		return tx.Batch(ctx,
			func(tx store.Tx) (err error) {
				one, err = tx.InsertActionAttempt(ctx, attempt(first, "pending"))
				return err
			},
			func(tx store.Tx) (err error) {
				other, err = tx.InsertActionAttempt(ctx, attempt(second, "success"))
				return err
			})
	})
	if err != nil || one.ActionAttemptID != first || other.ActionAttemptID != second || other.FinishedAt == nil ||
		one.FinishedAt != nil {
		t.Fatalf("%v: %+v and %+v", err, one, other)
	}
	var subjects []uuid.UUID
	if err := db.Pool.QueryRow(ctx, "select subject_ids from audit_log where workspace_id = $1", workspace).
		Scan(&subjects); err != nil {
		t.Fatal(err)
	}
	if len(subjects) != 2 || subjects[0] != first || subjects[1] != second {
		t.Errorf("the audit log names %v, want %s and %s", subjects, first, second)
	}
	err = db.InTx(ctx, func(tx store.Tx) error {
		return tx.Batch(ctx,
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

// A transaction that begins with its first statement is rolled back when that finds nothing, fails, or is all there
// is, and leaves a connection that others can use.
func TestATransactionBeginsWithItsFirstStatement(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.New(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	id := uuid.New()
	named := func(name string) dbsqlc.InsertWorkspaceParams {
		return dbsqlc.InsertWorkspaceParams{WorkspaceID: id, Name: name}
	}
	refused := errors.New("something else is wrong")
	for what, c := range map[string]struct {
		do   func(tx store.Tx) error
		says func(error) bool
	}{
		"nothing is done":         {func(store.Tx) error { return nil }, func(err error) bool { return err == nil }},
		"a row that is not there": {func(tx store.Tx) error { _, err := tx.LockDevice(t.Context(), id); return err }, store.IsNoRows},
		"rows that are not there": {func(tx store.Tx) error {
			codes, err := tx.AllCodesOfDevice(t.Context(), id)
			if len(codes) > 0 {
				t.Errorf("%d codes", len(codes))
			}
			return err
		}, func(err error) bool { return err == nil }},
		"a change that fails": {func(tx store.Tx) error {
			return tx.InsertWorkspace(t.Context(), dbsqlc.InsertWorkspaceParams{Name: "\x00"})
		}, func(err error) bool {
			_, ok := errors.AsType[*pgconn.PgError](err)
			return ok
		}},
		"rows that are not read": {func(tx store.Tx) error {
			_, err := tx.ListDataKeys(t.Context())
			return errors.Join(err, refused)
		}, func(err error) bool { return errors.Is(err, refused) }},
		"a change that is given up": {func(tx store.Tx) error {
			return errors.Join(tx.InsertWorkspace(t.Context(), named("given up")), refused)
		}, func(err error) bool { return errors.Is(err, refused) }},
		"together with what fails": {func(tx store.Tx) error {
			return tx.Batch(t.Context(),
				func(tx store.Tx) error { return tx.InsertWorkspace(t.Context(), named("one")) },
				func(tx store.Tx) error { return tx.InsertWorkspace(t.Context(), named("the same")) })
		}, func(err error) bool { return store.Violates(err, "workspaces_pkey") }},
	} {
		if err := db.InTx(t.Context(), c.do); !c.says(err) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := db.GetWorkspace(t.Context(), id); !store.IsNoRows(err) { // on the same connection
			t.Errorf("after %s: %v", what, err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_ = db.InTx(t.Context(), func(tx store.Tx) error {
			_ = tx.InsertWorkspace(t.Context(), named("panic"))
			panic("in the middle of it")
		})
	}()
	if _, err := db.GetWorkspace(t.Context(), id); !store.IsNoRows(err) {
		t.Errorf("after a panic: %v", err)
	}
	if err := db.InTx(
		t.Context(),
		func(tx store.Tx) error { return tx.InsertWorkspace(t.Context(), named("kept")) },
	); err != nil {
		t.Error(err)
	}
	if w, err := db.GetWorkspace(t.Context(), id); err != nil || w.Workspace.Name != "kept" {
		t.Errorf("what is committed: %+v, %v", w, err)
	}
	if n := db.Pool.Stat().NewConnsCount(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

// The last that is done in a transaction is there once it has been answered, with its entry in the audit log, or
// nothing of the transaction is; as a part of another one it waits for the end of that.
func TestTheEndOfATransactionGoesWithTheLastOfIt(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	of := func(workspace uuid.UUID) context.Context {
		return store.WithAct(
			t.Context(),
			&store.Act{ActorKind: "command_line", Operation: "test", WorkspaceID: workspace},
		)
	}
	there := func(workspace uuid.UUID) (attempts, audited int) {
		if err := db.Pool.QueryRow(t.Context(), `select (select count(*) from action_attempts where workspace_id = $1),
			(select coalesce(sum(cardinality(subject_ids)), 0) from audit_log where workspace_id = $1)`, workspace).Scan(&attempts, &audited); err != nil {
			t.Fatal(err)
		}
		return attempts, audited
	}
	insert := func(ctx context.Context, workspace, id uuid.UUID) func(store.Tx) error {
		return func(tx store.Tx) error {
			a, err := tx.InsertActionAttempt(
				ctx,
				dbsqlc.InsertActionAttemptParams{
					ActionAttemptID: id,
					WorkspaceID:     workspace,
					ActionType:      "LOCK_DOOR",
					Status:          "pending",
					Options:         []byte("{}"),
				},
			)
			if err == nil && a.CreatedAt.IsZero() != (a.ActionAttemptID == uuid.Nil) {
				t.Errorf("half of an answer: %+v", a)
			}
			return err
		}
	}
	t.Run("it is there", func(t *testing.T) {
		workspace, told := uuid.New(), 0
		ctx := of(workspace)
		err := db.InTx(ctx, func(tx store.Tx) error {
			tx.AfterCommit(func() { told++ })
			if err := insert(ctx, workspace, uuid.New())(tx); err != nil {
				return err
			}
			err := tx.BatchLast(ctx, insert(ctx, workspace, uuid.New()), insert(ctx, workspace, uuid.New()))
			if attempts, audited := there(workspace); attempts != 3 || audited != 3 {
				t.Errorf("others see %d attempts and %d of them audited", attempts, audited)
			}
			return err
		})
		if err != nil || told != 1 {
			t.Errorf("%v, and who waits was told %d times", err, told)
		}
	})
	t.Run("without an act", func(t *testing.T) {
		workspace := uuid.New()
		err := db.InTx(
			t.Context(),
			func(tx store.Tx) error { return tx.BatchLast(t.Context(), insert(t.Context(), workspace, uuid.New())) },
		)
		if attempts, audited := there(workspace); err != nil || attempts != 1 || audited != 0 {
			t.Errorf("%v, with %d attempts and %d of them audited", err, attempts, audited)
		}
	})
	t.Run("nothing of it is there", func(t *testing.T) {
		workspace, same, told := uuid.New(), uuid.New(), 0
		ctx := of(workspace)
		err := db.InTx(ctx, func(tx store.Tx) error {
			tx.AfterCommit(func() { told++ })
			if err := insert(ctx, workspace, uuid.New())(tx); err != nil {
				return err
			}
			return tx.BatchLast(ctx, insert(ctx, workspace, same), insert(ctx, workspace, same))
		})
		if attempts, audited := there(
			workspace,
		); !store.Violates(err, "action_attempts_pkey") || attempts != 0 || audited != 0 ||
			told != 0 {
			t.Errorf(
				"%v, with %d attempts and %d of them audited, and who waits was told %d times",
				err,
				attempts,
				audited,
				told,
			)
		}
	})
	t.Run("an error was passed over", func(t *testing.T) {
		workspace, same := uuid.New(), uuid.New()
		ctx := of(workspace)
		err := db.InTx(ctx, func(tx store.Tx) error {
			_ = tx.Batch(ctx, insert(ctx, workspace, same), insert(ctx, workspace, same))
			return nil
		})
		if attempts, audited := there(workspace); err == nil || attempts != 0 || audited != 0 {
			t.Errorf("%v, with %d attempts and %d of them audited", err, attempts, audited)
		}
	})
	t.Run("it is a part", func(t *testing.T) {
		workspace, refused := uuid.New(), errors.New("what follows is refused")
		err := db.WithAmbientTx(of(workspace), func(ctx context.Context) error {
			err := db.InTx(
				ctx,
				func(tx store.Tx) error { return tx.BatchLast(ctx, insert(ctx, workspace, uuid.New())) },
			)
			return errors.Join(err, refused)
		})
		if attempts, audited := there(workspace); !errors.Is(err, refused) || attempts != 0 || audited != 0 {
			t.Errorf("%v, with %d attempts and %d of them audited", err, attempts, audited)
		}
	})
}

// A query for each of many is made once for each, in their order, and ends with the first that fails.
func TestQueryForEachOfMany(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	var ids []uuid.UUID
	for range 250 {
		ids = append(ids, uuid.New())
	}
	put := func(all []uuid.UUID) error {
		return db.InTx(t.Context(), func(tx store.Tx) error {
			return store.Each(t.Context(), tx, all, func(tx store.Tx, id uuid.UUID) error {
				return tx.InsertWorkspace(
					t.Context(),
					dbsqlc.InsertWorkspaceParams{WorkspaceID: id, Name: "w", IsSandbox: true},
				)
			})
		})
	}
	count := func() (n int) {
		t.Helper()
		if err := db.Pool.QueryRow(t.Context(), "select count(*) from workspaces where workspace_id = any($1)", ids).
			Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var failed *pgconn.PgError
	if err := put(
		append(slices.Clone(ids), ids[0]),
	); !errors.As(err, &failed) || failed.Code != "23505" ||
		count() != 0 {
		t.Errorf("one twice: %v, and %d are there", err, count())
	}
	if err := put(ids); err != nil || count() != len(ids) {
		t.Errorf("each once: %v, and %d are there", err, count())
	}
	if err := put(nil); err != nil {
		t.Errorf("none: %v", err)
	}
}

// The queries of a batch are one transaction: the first one has no effect if the second one fails.
func TestBatch_IsOneTransactionInOneRoundTrip(t *testing.T) {
	t.Parallel()
	trips := &storetest.Trips{}
	db, err := store.Open(t.Context(), storetest.New(t), 4, func(c *pgxpool.Config) { c.ConnConfig.Tracer = trips })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ctx := t.Context()
	take := func(key string) func(store.Tx) error {
		return func(tx store.Tx) error {
			_, err := tx.TakeLease(ctx, dbsqlc.TakeLeaseParams{Key: key, Holder: uuid.New(), Ttl: time.Minute})
			return err
		}
	}
	before := trips.Load()
	if err := db.Batch(ctx, take("a"), take("b")); err != nil {
		t.Fatal(err)
	}
	if n := trips.Load() - before; n != 1 {
		t.Errorf("%d round trips, want 1", n)
	}
	err = db.Batch(ctx, take("c"), func(tx store.Tx) error {
		return tx.DescribeDevice(ctx, dbsqlc.DescribeDeviceParams{CustomMetadata: []byte("no JSON")})
	})
	if err == nil {
		t.Error("a statement that fails has succeeded")
	}
	if err := db.Batch(ctx, take("a")); !store.IsNoRows(err) {
		t.Errorf("a lease that is held: %v", err)
	}
	if err := db.Batch(ctx, take("c")); err != nil {
		t.Errorf("a query before one that failed had an effect: %v", err)
	}
	if err := db.Batch(ctx); err != nil {
		t.Errorf("no queries: %v", err)
	}
}
