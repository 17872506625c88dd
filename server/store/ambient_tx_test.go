package store_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// insert writes a workspace within whatever its context has it join.
func insert(ctx context.Context, db *store.DB, name string, then func()) error {
	return db.InTx(ctx, func(tx store.Tx) error {
		tx.AfterCommit(then)
		return tx.InsertWorkspace(ctx, dbsqlc.InsertWorkspaceParams{WorkspaceID: uuid.New(), Name: name})
	})
}

func names(t *testing.T, ctx context.Context, db *store.DB) (all []string) {
	t.Helper()
	rows, err := db.ListAllWorkspaces(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		all = append(all, r.Workspace.Name)
	}
	return all
}

// All that is done within is there at once, or not at all, and is seen from within only.
func TestWhatJoinsIsCommittedTogether(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	broken := errors.New("broken")
	told := 0
	for _, result := range []error{broken, nil} {
		err := db.WithAmbientTx(t.Context(), func(ctx context.Context) error {
			for _, name := range []string{"a", "b"} {
				if err := insert(ctx, db, name, func() { told++ }); err != nil {
					return err
				}
			}
			err := db.InTx(ctx, func(tx store.Tx) error { // a part that is undone alone
				tx.AfterCommit(func() { t.Error("Then was called without a commit") })
				if err := tx.InsertWorkspace(
					ctx,
					dbsqlc.InsertWorkspaceParams{WorkspaceID: uuid.New(), Name: "c"},
				); err != nil {
					return err
				}
				return broken
			})
			if !errors.Is(err, broken) {
				t.Errorf("the part: %v", err)
			}
			if within, apart := names(
				t,
				ctx,
				db,
			), names(
				t,
				store.DetachTx(ctx),
				db,
			); len(within) != 2 || len(apart) != 0 ||
				told != 0 {
				t.Errorf("within there are %v, apart from it %v, %d told", within, apart, told)
			}
			return result
		})
		if !errors.Is(err, result) {
			t.Errorf("%v, want %v", err, result)
		}
	}
	if all := names(t, t.Context(), db); len(all) != 2 || told != 2 {
		t.Errorf("in the end there are %v, %d told", all, told)
	}
}

// What comes after an early end stands for itself, whatever becomes of the rest.
func TestTransactionThatIsEndedEarlyStands(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	broken := errors.New("broken")
	told, runs := 0, 0
	err := db.WithAmbientTx(t.Context(), func(ctx context.Context) error {
		runs++
		if err := insert(ctx, db, "a", func() { told++ }); err != nil {
			return err
		}
		if err := db.CommitAmbient(ctx); err != nil || told != 1 {
			t.Errorf("%v, %d told", err, told)
		}
		if seen := names(t, store.DetachTx(ctx), db); len(seen) != 1 {
			t.Errorf("%v", seen)
		}
		return errors.Join(insert(ctx, db, "b", func() {}), broken)
	})
	if all := names(t, t.Context(), db); !errors.Is(err, broken) || len(all) != 2 || runs != 1 {
		t.Errorf("%v, %v, %d runs", err, all, runs)
	}
}

// The database undoes a part of it when two wait for each other; what was before the part is done again, too.
func TestJoinedDeadlockIsTriedAgainAsAWhole(t *testing.T) {
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
	rename := func(ctx context.Context, id uuid.UUID) error {
		return db.InTx(ctx, func(tx store.Tx) error {
			return execIn(ctx, tx, "update workspaces set name = name || '+' where workspace_id = $1", id)
		})
	}
	var holding, done sync.WaitGroup
	holding.Add(2)
	var runs atomic.Int32
	for i := range rows {
		first := true
		done.Go(func() {
			err := db.WithAmbientTx(t.Context(), func(ctx context.Context) error {
				runs.Add(1)
				if err := rename(ctx, rows[i]); err != nil {
					return err
				}
				if first {
					first = false
					holding.Done()
					holding.Wait() // now each has what the other wants
				}
				return rename(ctx, rows[1-i])
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
	if runs.Load() < 3 {
		t.Errorf("%d runs", runs.Load())
	}
}
