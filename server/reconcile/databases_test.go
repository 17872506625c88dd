package reconcile_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// idle lists databases that no test uses. A test takes one and empties it at its end. A new
// database per test would cost most of the tests' processor time for its creation, connections, and
// statement plans.
var idle struct {
	sync.Mutex
	databases []*store.DB
}

// untilExit is a testing.TB whose cleanups do not run. The end of the process ends the cluster with
// its databases.
type untilExit struct{ testing.TB }

func (untilExit) Cleanup(func()) {}

// database returns an empty database for t alone. A test that changes the schema uses ownDatabase.
func database(t *testing.T) (db *store.DB) {
	t.Helper()
	idle.Lock()
	if n := len(idle.databases); n > 0 {
		db, idle.databases = idle.databases[n-1], idle.databases[:n-1]
	}
	idle.Unlock()
	if db == nil {
		db = open(t, untilExit{t})
	}
	t.Cleanup(func() {
		if err := empty(db); err != nil {
			t.Errorf("empty the test's database: %v", err)
			return
		}
		idle.Lock()
		defer idle.Unlock()
		idle.databases = append(idle.databases, db)
	})
	return db
}

// ownDatabase returns a database that is dropped when t ends.
func ownDatabase(t *testing.T) *store.DB {
	t.Helper()
	db := open(t, t)
	t.Cleanup(db.Close)
	return db
}

func open(t *testing.T, owner testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), storetest.New(owner), 20)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// deleteAll deletes all rows except those of the migrations. It disables triggers, including those
// of foreign keys.
const deleteAll = `do $$ declare t text; begin
	set local session_replication_role = replica;
	for t in select relname from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace
		and relname not in ('goose_db_version', 'river_migration')
	loop execute format('delete from %I', t); end loop;
end $$`

func empty(db *store.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
	defer cancel()
	_, err := db.Pool.Exec(ctx, deleteAll)
	return err
}
