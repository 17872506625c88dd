package apptest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Gate stops whoever writes certain rows, in the middle of his transaction, so that others come in between.
type Gate struct {
	t    testing.TB
	conn *pgx.Conn
}

const gateLock = "4711"

// Gate shuts a gate: when is that of a trigger, such as "before insert", and condition one about the row new.
func (s *Server) Gate(t testing.TB, when, table, condition string) *Gate {
	t.Helper()
	g := &Gate{t: t, conn: s.connect(t)} // whose end opens the gate, if nothing has
	g.exec("create function stop_here() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(" + gateLock + "); return new; end $$")
	g.exec("create trigger stop_here " + when + " on " + table + " for each row when (" + condition + ") execute function stop_here()")
	g.exec("select pg_advisory_lock(" + gateLock + ")")
	return g
}

func (g *Gate) exec(sql string) {
	g.t.Helper()
	if _, err := g.conn.Exec(g.t.Context(), sql); err != nil {
		g.t.Fatal(err)
	}
}

// Await waits until as many wait for others in statements like this, at the gate or behind who waits there.
func (g *Gate) Await(many int, like string) {
	g.t.Helper()
	Until(g.t, "somebody waits: "+like, func() bool { return g.Waiting(like) >= many })
}

// Waiting is how many wait for others in statements like this.
func (g *Gate) Waiting(like string) (n int) {
	g.t.Helper()
	err := g.conn.QueryRow(g.t.Context(), "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query ilike $1", "%"+like+"%").Scan(&n)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// Open lets all go on, now and from now on.
func (g *Gate) Open() {
	g.t.Helper()
	g.exec("select pg_advisory_unlock(" + gateLock + ")")
}

// Shut keeps everybody from a table, readers too, until open is called.
func (s *Server) Shut(t testing.TB, table string) (open func()) {
	t.Helper()
	g := &Gate{t: t, conn: s.connect(t)}
	g.exec("begin")
	g.exec("lock table " + pgx.Identifier{table}.Sanitize() + " in access exclusive mode")
	return func() { g.exec("rollback") }
}

// Exec changes in the server's database what only time does.
func (s *Server) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := s.connect(t).Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// connect is a connection of the test's own to the server's database.
func (s *Server) connect(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.config.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) }) //nolint:errcheck // nothing is lost
	return conn
}
