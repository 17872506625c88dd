package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

func open(t *testing.T, dsn string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// execIn runs a statement that is none of the package's own.
func execIn(ctx context.Context, tx store.Tx, sql string, args ...any) error {
	own, err := tx.Start(ctx)
	if err == nil {
		_, err = own.Exec(ctx, sql, args...)
	}
	return err
}

func TestAnyNumberOfProgramsMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	db := open(t, dsn)
	if _, err := db.Pool.Exec(t.Context(), "drop schema public cascade; create schema public"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := store.Migrate(t.Context(), dsn); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := open(t, dsn).ListAllWorkspaces(t.Context()); err != nil {
		t.Fatalf("after the migration: %v", err)
	}
}

// Two transactions that wait for each other: the database ends one, which is then run again.
func TestDeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	rows := []uuid.UUID{uuid.New(), uuid.New()}
	for _, id := range rows {
		if err := db.InsertWorkspace(
			t.Context(),
			dbsqlc.InsertWorkspaceParams{WorkspaceID: id, Name: "w"},
		); err != nil {
			t.Fatal(err)
		}
	}
	const rename = "update workspaces set name = name || '+' where workspace_id = $1"
	var holding, done sync.WaitGroup
	holding.Add(2)
	var runs, told atomic.Int32
	for i := range rows {
		first := true
		done.Go(func() {
			err := db.InTx(t.Context(), func(tx store.Tx) error {
				runs.Add(1)
				tx.AfterCommit(func() { told.Add(1) })
				if err := execIn(t.Context(), tx, rename, rows[i]); err != nil {
					return err
				}
				if first {
					first = false
					holding.Done()
					holding.Wait() // now each has what the other wants
				}
				return execIn(t.Context(), tx, rename, rows[1-i])
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	for _, id := range rows {
		if w, err := db.GetWorkspace(t.Context(), id); err != nil || w.Workspace.Name != "w++" {
			t.Errorf("%q %v", w.Workspace.Name, err)
		}
	}
	if runs.Load() < 3 || told.Load() != 2 {
		t.Errorf("%d runs, %d told as committed", runs.Load(), told.Load())
	}
}

func TestFailedTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	broken := errors.New("broken")
	err := db.InTx(t.Context(), func(tx store.Tx) error {
		tx.AfterCommit(func() { t.Error("Then was called without a commit") })
		if err := tx.InsertWorkspace(
			t.Context(),
			dbsqlc.InsertWorkspaceParams{WorkspaceID: uuid.New(), Name: "w"},
		); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("the cause is lost: %v", err)
	}
	if ws, err := db.ListAllWorkspaces(t.Context()); err != nil || len(ws) != 0 {
		t.Errorf("%d workspaces, %v", len(ws), err)
	}
}

// A transaction stands still for no longer than it may wait twice for a lock, so that who waits for it gives up first.
func TestLimitsOfASession(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	var still, waits time.Duration
	err := db.Pool.QueryRow(t.Context(), `select current_setting('idle_in_transaction_session_timeout')::interval,
		current_setting('lock_timeout')::interval`).Scan(&still, &waits)
	if err != nil || still != 15*time.Second || waits != 5*time.Second {
		t.Errorf("a transaction may stand still for %s and wait for %s, want 15 s and 5 s; %v", still, waits, err)
	}
}

// What a frozen server has locked is free for others once its transaction has ended although more of its transactions wait for it:
// these have given up, and hold nothing. Others who wait, in transactions or not, get it.
func TestTransactionsThatStandStillAreEndedTogether(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	// Who waits gives up five times before it fails. All that comes until then takes much less than that.
	db := open(t, fmt.Sprintf("%s&lock_timeout=%d", dsn, testenv.Timeout(3*time.Second).Milliseconds()))
	frozen := open(t, dsn+"&lock_timeout=1000")
	id := uuid.New()
	if err := db.InsertWorkspace(t.Context(), dbsqlc.InsertWorkspaceParams{WorkspaceID: id, Name: "w"}); err != nil {
		t.Fatal(err)
	}
	fence, err := db.TakeLease(t.Context(), dbsqlc.TakeLeaseParams{Key: "x", Holder: uuid.New(), Ttl: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	const lock = "select from workspaces for update"
	stands := func() pgx.Tx {
		tx, err := frozen.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return tx
	}
	first := stands()
	if _, err := first.Exec(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	since := time.Time{}
	waiting := func() (n int) {
		err := db.Pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database()
			and wait_event_type = 'Lock' and query_start > $1`, since).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var held sync.WaitGroup
	for range 3 { // each has checked the lease
		tx := stands()
		if held, err := dbsqlc.New(tx).
			CheckLease(t.Context(), dbsqlc.CheckLeaseParams{Key: "x", Fence: fence}); err != nil ||
			!held {
			t.Fatalf("%t, %v", held, err)
		}
		held.Go(func() {
			if _, err := tx.Exec(t.Context(), lock); !store.IsLockTimeout(err) {
				t.Errorf("one that waits behind another of its server: %v", err)
			}
		})
	}
	others := map[string]func() error{
		"transaction": func() error {
			return db.InTx(t.Context(), func(tx store.Tx) error { return execIn(t.Context(), tx, lock) })
		},
		"part": func() error {
			return db.WithAmbientTx(t.Context(), func(ctx context.Context) error {
				return db.InTx(ctx, func(tx store.Tx) error { return execIn(ctx, tx, lock) })
			})
		},
		"statement": func() error {
			return db.ScheduleRetention(t.Context(), dbsqlc.ScheduleRetentionParams{WorkspaceID: id, Pause: time.Hour})
		},
		"statement that is audited": func() error {
			ctx := store.WithAct(t.Context(), &store.Act{ActorKind: "command_line", Operation: "test", WorkspaceID: id})
			return db.ScheduleRetention(ctx, dbsqlc.ScheduleRetentionParams{WorkspaceID: id, Pause: time.Hour})
		},
	}
	var all sync.WaitGroup
	defer all.Wait()
	for what, get := range others {
		all.Go(func() {
			if err := get(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	held.Wait()
	// Hung servers do not keep the lease.
	if _, err := db.Pool.Exec(t.Context(), "update leases set held_until = now()"); err != nil {
		t.Errorf("the lease ends: %v", err)
	}
	if _, err := db.TakeLease(
		t.Context(),
		dbsqlc.TakeLeaseParams{Key: "x", Holder: uuid.New(), Ttl: time.Hour},
	); err != nil {
		t.Errorf("another one takes the lease: %v", err)
	}
	testenv.Until(t, "all others wait", func() bool { return waiting() == len(others) })
	if err := db.Pool.QueryRow(t.Context(), "select clock_timestamp()").Scan(&since); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "all others have given up once, and wait again", func() bool { return waiting() == len(others) })
	if _, err := first.Exec(t.Context(), "set local idle_in_transaction_session_timeout = 1"); err != nil {
		t.Fatal(err)
	}
}

// What has waited for long is tried again, but not without an end; how long may be said with the address.
func TestWhatHasWaitedForLongIsTriedAgain(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	holder, db := open(t, dsn), open(t, dsn+"&lock_timeout=20")
	tx, err := holder.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), "lock table workspaces"); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = db.InTx(t.Context(), func(tx store.Tx) error {
		runs++
		return tx.InsertWorkspace(t.Context(), dbsqlc.InsertWorkspaceParams{WorkspaceID: uuid.New(), Name: "w"})
	})
	if !store.IsLockTimeout(err) || runs != 5 {
		t.Errorf("%v after %d runs", err, runs)
	}
	runs = 0
	err = db.InTxOnce(t.Context(), func(tx store.Tx) error {
		runs++
		return tx.InsertWorkspace(t.Context(), dbsqlc.InsertWorkspaceParams{WorkspaceID: uuid.New(), Name: "w"})
	})
	if !store.IsLockTimeout(err) || runs != 1 {
		t.Errorf("one that is not to be run again: %v after %d runs", err, runs)
	}
}

// A request with an Idempotency-Key stands still for no longer than another, and waits no longer for anything but its key.
func TestAClaimedKeyLeavesTheLimitsOfItsTransaction(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	limits := func(ctx context.Context) (out [2]string) {
		err := db.InTx(ctx, func(tx store.Tx) error {
			own, err := tx.Start(ctx)
			if err != nil {
				return err
			}
			return own.QueryRow(ctx, "select current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout')").
				Scan(&out[0], &out[1])
		})
		if err != nil {
			t.Error(err)
		}
		return out
	}
	want := limits(t.Context())
	err := db.WithAmbientTx(t.Context(), func(ctx context.Context) error {
		_, err := db.ClaimIdempotencyKey(ctx, dbsqlc.ClaimIdempotencyKeyParams{
			IdempotencyKeyID: uuid.New(),
			WorkspaceID:      uuid.New(),
			CredentialID:     uuid.New(),
			Operation:        "x",
			KeyMac:           []byte("k"),
			RequestMac:       []byte("r"),
			Retention:        time.Hour,
			WaitTimeout:      "100",
		})
		if got := limits(ctx); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWhatComesAfterATransactionFindsItCommitted(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	seen := -1
	err := db.InTx(t.Context(), func(tx store.Tx) error {
		tx.AfterCommit(func() {
			ws, err := db.ListAllWorkspaces(t.Context())
			if seen = len(ws); err != nil {
				t.Error(err)
			}
		})
		return tx.InsertWorkspace(t.Context(), dbsqlc.InsertWorkspaceParams{WorkspaceID: uuid.New(), Name: "w"})
	})
	if err != nil || seen != 1 {
		t.Errorf("%d workspaces, %v", seen, err)
	}
}

func TestWrongAddressIsToldWithoutThePassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"postgres://user:hunter2@127.0.0.1:1/none", "host=127.0.0.1 port=1 password=hunter2", "postgres://user:hunter2@[bad"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := store.Open(ctx, dsn, 1)
		cancel()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}

// withRows fills a database with three workspaces of 3,000 rows of each kind, and names one of each.
func withRows(t *testing.T, db *store.DB) (workspace, device, account uuid.UUID) {
	t.Helper()
	ctx := t.Context()
	partition(t, db, 0)
	if _, err := db.Pool.Exec(ctx, `
		insert into workspaces (workspace_id, name, is_sandbox) select gen_random_uuid(), 'w' || i, true from generate_series(1, 3) i;
		insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
			select gen_random_uuid(), workspace_id, 'sandbox', '', '', '' from workspaces;
		insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online, capabilities, flags, created_at)
			select gen_random_uuid(), a.workspace_id, a.connected_account_id, i::text, '', '', '', '', '', '', true, '{}', '{}', now() + i * interval '1 s'
			from connected_accounts a, generate_series(1, 3000) i;
		insert into access_codes (access_code_id, workspace_id, device_id, is_managed, status, created_at)
			select gen_random_uuid(), d.workspace_id, d.device_id, true, 'set', d.created_at from devices d;
		insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed, customer_key)
			select gen_random_uuid(), workspace_id, 'sandbox', '', '', '', i::text from workspaces, generate_series(1, 500) i;
		insert into client_sessions (client_session_id, workspace_id, token_hash, token_sealed, customer_key, expires_at)
			select gen_random_uuid(), (select workspace_id from workspaces limit 1), ('hash ' || i)::bytea, '', i::text, now() + interval '1 h' from generate_series(1, 500) i;
		insert into connect_webviews (connect_webview_id, workspace_id, manage_new_devices, wait_for_devices, customer_key, connected_account_id, expires_at)
			select gen_random_uuid(), workspace_id, true, false, customer_key, connected_account_id, now() from connected_accounts;
		update client_sessions set user_identity_id = gen_random_uuid();
		insert into client_session_webviews (client_session_id, connect_webview_id)
			select s.client_session_id, v.connect_webview_id from client_sessions s join connect_webviews v using (workspace_id, customer_key);
		insert into client_session_accounts (client_session_id, connected_account_id)
			select s.client_session_id, a.connected_account_id from client_sessions s, lateral (select connected_account_id from connected_accounts limit 3) a;
		insert into events (event_id, workspace_id, event_type, payload, connected_account_id, created_at) select `+madeAt("created_at")+`, workspace_id, 'x', '{}', connected_account_id, created_at from devices;
		insert into action_attempts (action_attempt_id, workspace_id, device_id, access_code_id, action_type, status, created_at, deadline_at)
			select gen_random_uuid(), workspace_id, device_id, device_id, 'x', 'success', created_at, now() from devices;
		analyze`); err != nil {
		t.Fatal(err)
	}
	if err := db.Pool.QueryRow(ctx, "select workspace_id, device_id, connected_account_id from devices limit 1").
		Scan(&workspace, &device, &account); err != nil {
		t.Fatal(err)
	}
	return workspace, device, account
}

// The plans of lists must be flat in the size of the table: an index gives the order, nothing is sorted, and
// the page's beginning is found in the index.
func TestListsWalkAnIndex(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	ctx := t.Context()
	workspace, device, account := withRows(t, db)
	for name, list := range map[string]func(q *dbsqlc.Queries) error{
		"devices": func(q *dbsqlc.Queries) error {
			_, err := q.ListDevices(ctx, dbsqlc.ListDevicesParams{WorkspaceID: workspace, MaxRows: 100})
			return err
		},
		"devices, planned for each call": func(q *dbsqlc.Queries) error {
			_, err := q.FindDevices(ctx, dbsqlc.FindDevicesParams{WorkspaceID: workspace, DeviceTypes: []string{""}, MaxRows: 100})
			return err
		},
		"devices of a client session, planned for each call": func(q *dbsqlc.Queries) error {
			_, err := q.FindDevices(ctx, dbsqlc.FindDevicesParams{
				WorkspaceID: workspace,
				IsManaged:   true,
				Scope:       []uuid.UUID{account},
				MaxRows:     100,
			})
			return err
		},
		"events of a client session, planned for each call": func(q *dbsqlc.Queries) error {
			_, err := q.ListEvents(ctx, dbsqlc.ListEventsParams{
				WorkspaceID: workspace,
				Until:       time.Now().Add(time.Hour),
				UntilID:     uuid.Max,
				Scope:       []uuid.UUID{account},
				MaxRows:     100,
			})
			return err
		},
		"what a client session reaches": func(q *dbsqlc.Queries) error {
			_, err := q.AuthenticateClientSession(ctx, []byte("hash 1"))
			return err
		},
		"access codes of a device": func(q *dbsqlc.Queries) error {
			_, err := q.ListAccessCodesOfDevice(ctx, dbsqlc.ListAccessCodesOfDeviceParams{
				WorkspaceID: workspace,
				DeviceID:    device,
				IsManaged:   true,
				MaxRows:     100,
			})
			return err
		},
		"access codes of a customer, planned for each call": func(q *dbsqlc.Queries) error {
			_, err := q.ListAccessCodesOfAccounts(ctx, dbsqlc.ListAccessCodesOfAccountsParams{WorkspaceID: workspace, AccountIds: []uuid.UUID{account}, MaxRows: 100})
			return err
		},
		"access codes of a customer with a few, planned for each call": func(q *dbsqlc.Queries) error {
			_, err := q.ListAccessCodesOfAccounts(ctx, dbsqlc.ListAccessCodesOfAccountsParams{WorkspaceID: workspace, AccountIds: []uuid.UUID{uuid.New()}, MaxRows: 100})
			return err
		},
		"access codes by identifier": func(q *dbsqlc.Queries) error {
			_, err := q.ListAccessCodes(ctx, dbsqlc.ListAccessCodesParams{WorkspaceID: workspace, AccessCodeIds: []uuid.UUID{device}, MaxRows: 100})
			return err
		},
		"events, planned for each call": func(q *dbsqlc.Queries) error {
			_, err := q.ListEvents(ctx, dbsqlc.ListEventsParams{
				WorkspaceID: workspace,
				Until:       time.Now().Add(time.Hour),
				UntilID:     uuid.Max,
				MaxRows:     100,
			})
			return err
		},
		"action attempts of a device": func(q *dbsqlc.Queries) error {
			_, err := q.ListActionAttemptsOfDevice(ctx, dbsqlc.ListActionAttemptsOfDeviceParams{WorkspaceID: workspace, DeviceID: device, MaxRows: 100})
			return err
		},
		"action attempts by identifier": func(q *dbsqlc.Queries) error {
			_, err := q.ListActionAttempts(ctx, dbsqlc.ListActionAttemptsParams{WorkspaceID: workspace, ActionAttemptIds: []uuid.UUID{device}, MaxRows: 100})
			return err
		},
	} {
		plan := explain(t, db, strings.HasSuffix(name, "planned for each call"), list)
		for _, slow := range []string{
			"Seq Scan on devices", "Seq Scan on access_codes", "Seq Scan on events", "Seq Scan on action_attempts",
			"Seq Scan on client_session", "Seq Scan on connect",
		} {
			if strings.Contains(plan, slow) {
				t.Errorf("%s: the plan reads a whole table:\n%s", name, plan)
			}
		}
		if strings.Contains(plan, "Sort  (") && !strings.Contains(name, "identifier") &&
			!strings.Contains(name, "client session") &&
			!strings.Contains(name, "a few") { // a few rows are found by identifier, then sorted
			t.Errorf("%s: the plan sorts:\n%s", name, plan)
		}
	}
}

func TestEverySealedColumnCanBeSealedAnew(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	rows, err := db.Pool.Query(t.Context(), `select table_name || '.' || column_name from information_schema.columns
		where table_schema = 'public' and data_type = 'bytea' and (column_name like '%sealed' or column_name like '%mac' and column_name not in
			('key_mac', 'address_mac', 'gateway_mac')) -- these are looked up, and the key of their hashes stays
		and not (select relispartition from pg_class where oid = table_name::regclass)`)
	if err != nil {
		t.Fatal(err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, c := range store.SealedColumns() {
		known = append(known, c.String())
		if n, err := db.CountSealedByOthers(t.Context(), c, 1); err != nil || n != 0 {
			t.Errorf("%s: %d rows, %v", c, n, err)
		}
		if parts, err := db.Parts(t.Context(), c); err != nil || len(parts) == 0 {
			t.Errorf("%s is in %v, %v", c, parts, err)
		}
		if _, _, err := db.SealedByOthers(t.Context(), c, 1, 0); err != nil {
			t.Errorf("%s: %v", c, err)
		}
		if err := db.Reseal(t.Context(), c, nil, nil); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	slices.Sort(there)
	slices.Sort(known)
	if !slices.Equal(there, known) {
		t.Errorf("the columns are %v, and known are %v", there, known)
	}
}
