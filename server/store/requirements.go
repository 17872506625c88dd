package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// MinPostgres is the oldest major version of PostgreSQL that the schema works on.
const MinPostgres = 14

// ErrTransactionPooling means that a pooler gives each transaction another connection to the database. The server needs
// its own: for settings, prepared statements, notifications, and locks of a session.
var ErrTransactionPooling = errors.New(
	"a pooler between the server and the database shares connections between clients: set it to session mode " +
		"(pool_mode = session in PgBouncer), or name the address of PostgreSQL in the URL",
)

// Explain adds what to do to an error of a database that misses requirements which CheckRequirements cannot see. It returns
// nil for other errors.
func Explain(err error) error {
	switch {
	case hasCode(err, duplicateStatement, undefinedStatement):
		return fmt.Errorf("%w (%w)", ErrTransactionPooling, err)
	case hasCode(err, insufficientPrivilege):
		return fmt.Errorf("%w: connect as the owner of the schema and its tables, or make the user their owner", err)
	case hasCode(err, tooManyConnections):
		return fmt.Errorf(
			"%w: raise the connection limit of the role, the database, or the server, or lower --database-connections of the "+
				"servers that use it",
			err,
		)
	}
	return nil
}

// connectPlain connects without prepared statements, which do not work through every pooler.
func connectPlain(ctx context.Context, dsn string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, notConnected(err)
	}
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, connectTimeout)
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, notConnected(err)
	}
	return conn, nil
}

// CheckRequirements returns an error that says what to do if the server cannot work on the database: the version, the
// encoding, a read-only database, missing privileges, or a pooler.
func CheckRequirements(ctx context.Context, dsn string) error {
	conn, err := connectPlain(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	var f facts
	err = conn.QueryRow(ctx, `select current_setting('server_version_num')::int4 / 10000, current_setting('server_encoding'),
		pg_is_in_recovery(), current_setting('transaction_read_only')::boolean, quote_ident(current_user), quote_ident(current_database()),
		coalesce(quote_ident(current_schema()), ''), coalesce(has_schema_privilege(current_schema()::text, 'create'), false)`).
		Scan(&f.version, &f.encoding, &f.isStandby, &f.isReadOnly, &f.user, &f.database, &f.schema, &f.mayCreate)
	if err != nil {
		return notConnected(err)
	}
	if err := f.check(); err != nil {
		return err
	}
	return checkPooling(ctx, dsn, conn)
}

// facts are what CheckRequirements reads. Names are quoted.
type facts struct {
	version                int
	encoding               string
	isStandby, isReadOnly  bool
	user, database, schema string // schema is empty if the search path names none
	mayCreate              bool
}

func (f facts) check() error {
	switch {
	case f.version < MinPostgres:
		return fmt.Errorf("the database is PostgreSQL %d; version %d or newer is needed", f.version, MinPostgres)
	case f.encoding != "UTF8":
		return fmt.Errorf(
			"the encoding of the database %s is %s, and the server needs UTF8: create another database for it "+
				"(create database deviceaccess encoding 'UTF8' template template0) and name it in the URL",
			f.database, f.encoding,
		)
	case f.isStandby:
		return errors.New(
			"the database is a standby, which takes no writes: name the primary in the URL, or all hosts and " +
				"target_session_attrs=read-write, as in postgres://a,b/name?target_session_attrs=read-write",
		)
	case f.isReadOnly:
		return fmt.Errorf(
			"the database %s is read-only (default_transaction_read_only): name the primary in the URL, or allow writes "+
				"(alter database %[1]s reset default_transaction_read_only, or the same for the role or the system)",
			f.database,
		)
	case f.schema == "":
		return fmt.Errorf(
			"the user %s may use no schema of the search_path: create one (create schema deviceaccess authorization %[1]s) "+
				"and add search_path=deviceaccess to the URL",
			f.user,
		)
	case !f.mayCreate:
		return fmt.Errorf(
			"the user %s may not create tables in the schema %s of the database %s: grant it (grant create on schema %[2]s "+
				"to %[1]s), or create a schema of its own (create schema deviceaccess authorization %[1]s) and add "+
				"search_path=deviceaccess to the URL",
			f.user,
			f.schema,
			f.database,
		)
	}
	return nil
}

// checkPooling returns ErrTransactionPooling if another connection meets the session of conn in the database.
func checkPooling(ctx context.Context, dsn string, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	mark := uuid.NewString()
	if _, err := conn.Exec(ctx, "select set_config('deviceaccess.session', $1, false)", mark); err != nil {
		return notConnected(err)
	}
	other, err := connectPlain(ctx, dsn)
	if err != nil {
		return err
	}
	defer other.Close(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	tx, err := other.Begin(ctx)
	if err != nil {
		return notConnected(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	const marked = "select coalesce(current_setting('deviceaccess.session', true), '') = $1"
	var theirs, ours bool
	// The transaction of the other holds its connection to the database while conn asks again.
	if err := tx.QueryRow(ctx, marked, mark).Scan(&theirs); err != nil {
		return notConnected(err)
	}
	if err := conn.QueryRow(ctx, marked, mark).Scan(&ours); err != nil {
		return notConnected(err)
	}
	if theirs || !ours {
		return ErrTransactionPooling
	}
	return nil
}

// ConnLimit is how many connections the database accepts.
type ConnLimit struct {
	// Connections is the number of connections for all clients together.
	Connections int
	// Of names what limits them, and the statement that changes it.
	Of string
}

// ReadConnLimit returns the lowest of the limits for the user of dsn: of the server, the database, and the role.
func ReadConnLimit(ctx context.Context, dsn string) (l ConnLimit, err error) {
	conn, err := connectPlain(ctx, dsn)
	if err != nil {
		return l, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	role, database, isSuper := -1, -1, false
	var user, name string
	err = conn.QueryRow(ctx, `select current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4
			- coalesce(current_setting('reserved_connections', true)::int4, 0),
			r.rolconnlimit, d.datconnlimit, r.rolsuper, quote_ident(r.rolname), quote_ident(d.datname)
		from pg_roles r, pg_database d where r.rolname = current_user and d.datname = current_database()`).
		Scan(&l.Connections, &role, &database, &isSuper, &user, &name)
	if err != nil {
		return l, fmt.Errorf("read the connection limits of the database: %w", err)
	}
	l.Of = "the server (max_connections)"
	if isSuper {
		return l, nil
	}
	for _, other := range []ConnLimit{
		{database, fmt.Sprintf("the database (alter database %s connection limit …)", name)},
		{role, fmt.Sprintf("the role (alter role %s connection limit …)", user)},
	} {
		if other.Connections >= 0 && other.Connections < l.Connections {
			l = other
		}
	}
	return l, nil
}
