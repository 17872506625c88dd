package apptest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Gate blocks transactions that write certain rows, so that a test can run something in between.
type Gate struct {
	t    testing.TB
	conn *pgx.Conn
}

const gateLock = "4711"

// Gate creates a closed gate. when is the time of a trigger, such as "before insert"; condition is an SQL condition on
// the row new.
func (s *Server) Gate(t testing.TB, when, table, condition string) *Gate {
	t.Helper()
	g := &Gate{t: t, conn: s.connect(t)} // closing the connection opens the gate
	g.exec(
		"create function stop_here() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(" + gateLock + "); return new; end $$",
	)
	g.exec(
		"create trigger stop_here " + when + " on " + table + " for each row when (" + condition + ") execute function " +
			"stop_here()",
	)
	g.exec("select pg_advisory_lock(" + gateLock + ")")
	return g
}

func (g *Gate) exec(sql string) {
	g.t.Helper()
	if _, err := g.conn.Exec(g.t.Context(), sql); err != nil {
		g.t.Fatal(err)
	}
}

// Await waits until many connections wait for a lock in statements that match like.
func (g *Gate) Await(many int, like string) {
	g.t.Helper()
	Until(g.t, "connections wait: "+like, func() bool { return g.Waiting(like) >= many })
}

// Waiting returns how many connections wait for a lock in statements that match like.
func (g *Gate) Waiting(like string) (n int) {
	g.t.Helper()
	err := g.conn.QueryRow(g.t.Context(), "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and "+
		"datname = current_database() and query ilike $1", "%"+like+"%").
		Scan(&n)
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// Open opens the gate permanently.
func (g *Gate) Open() {
	g.t.Helper()
	g.exec("select pg_advisory_unlock(" + gateLock + ")")
}

// LockTable locks a table against all access, including reads, until open is called.
func (s *Server) LockTable(t testing.TB, table string) (open func()) {
	t.Helper()
	g := &Gate{t: t, conn: s.connect(t)}
	g.exec("begin")
	g.exec("lock table " + pgx.Identifier{table}.Sanitize() + " in access exclusive mode")
	return func() { g.exec("rollback") }
}

// Exec changes the server's database in ways that otherwise only time does.
func (s *Server) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := s.connect(t).Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// connect opens a connection to the server's database for the test.
func (s *Server) connect(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.config.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) }) //nolint:errcheck // the test is over
	return conn
}
