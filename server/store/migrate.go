package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// A migration that does not get its locks is retried every migrateInterval, for migrateTimeout.
const (
	migrateTimeout  = 5 * time.Minute
	migrateInterval = time.Second
)

// Migrate upgrades the schema of the database to this program's. Any number of programs may call it concurrently: an
// advisory lock lets one of them work while the others wait. It fails, and changes nothing, if the database holds
// tables of another application.
func Migrate(ctx context.Context, dsn string) error { return migrate(ctx, dsn, migrations) }

func migrate(ctx context.Context, dsn string, files fs.FS) error {
	if err := CheckRequirements(ctx, dsn); err != nil {
		return err
	}
	pool, err := migrationPool(ctx, dsn)
	if err != nil {
		return notConnected(err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close() //nolint:errcheck // nothing is pending
	if err := refuseForeignTables(ctx, db); err != nil {
		return err
	}
	dir, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	err = retryMigration(ctx, func() error {
		_, err := p.Up(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	if err := retryMigration(ctx, func() error { return migrateRiver(ctx, pool) }); err != nil {
		return err
	}
	return firstPartitions(ctx, dsn)
}

// migrationPool returns a pool for migrations, which may run long, and set their own lock_timeout.
func migrationPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, connectTimeout)
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, ownSettings+"; set statement_timeout = 0")
		return err
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

// retryMigration retries a migration that times out waiting for a lock or deadlocks, for example because of a dump.
// Running servers continue between the attempts.
func retryMigration(ctx context.Context, migrate func() error) error {
	for begun := time.Now(); ; {
		err := migrate()
		if !IsLockTimeout(err) && !isDeadlock(err) || time.Since(begun) > migrateTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(migrateInterval):
		}
	}
}

// firstPartitions creates the partitions for events until a server, which knows the retention, maintains them. If a
// lock is held for long, for example by a dump, the server creates them later; until then events go to the default
// partition.
func firstPartitions(ctx context.Context, dsn string) error {
	db, err := Open(ctx, dsn, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	now, err := db.Now(ctx)
	if err != nil {
		return err
	}
	there, err := db.Partitions(ctx)
	if err != nil ||
		slices.ContainsFunc(there, func(p Partition) bool { return !now.Before(p.From) && now.Before(p.To) }) {
		return err
	}
	if _, err = db.MakePartitions(ctx, now, 7*Day); IsLockTimeout(err) {
		return nil
	}
	return err
}

// migrateRiver migrates the tables of the job queue, which River defines.
func migrateRiver(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return notConnected(err)
	}
	defer conn.Release()
	const key = 0x6465766163636573 // its migrator takes no lock of its own
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(key)); err != nil {
		return fmt.Errorf("lock the migration of the job queue: %w", err)
	}
	defer conn.Exec( //nolint:errcheck // ends with the connection
		context.WithoutCancel(ctx),
		"select pg_advisory_unlock($1)",
		int64(key),
	)
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	return nil
}

// Errors of CheckSchema.
var (
	ErrNoSchema    = errors.New("there is nothing in the database yet")
	ErrOlderSchema = errors.New("the schema of the database is older than this program")
)

// CheckSchema returns ErrNoSchema or ErrOlderSchema if Migrate has work to do.
func CheckSchema(ctx context.Context, dsn string) error {
	version, err := SchemaVersion(ctx, dsn)
	if err != nil {
		return err
	}
	if newest := NewestSchema(); version < newest {
		return fmt.Errorf("%w (it has version %d, and %d is needed)", ErrOlderSchema, version, newest)
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return notConnected(err)
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	queue, err := m.Validate(ctx, nil)
	if err != nil {
		return fmt.Errorf("read the version of the job queue: %w", err)
	}
	if !queue.OK {
		return fmt.Errorf("%w (the tables of the job queue are)", ErrOlderSchema)
	}
	return nil
}

// SchemaVersion returns the newest migration of a database. It fails with ErrNoSchema.
func SchemaVersion(ctx context.Context, dsn string) (version int64, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, notConnected(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	err = conn.QueryRow(ctx, "select coalesce(max(version_id), 0) from goose_db_version where is_applied").
		Scan(&version)
	if isNoTable(err) || err == nil && version == 0 {
		return 0, ErrNoSchema
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the schema: %w", err)
	}
	return version, nil
}

// RecordBackup records that a backup of a database has ended now. On a schema without a place for that, it does
// nothing.
func RecordBackup(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return notConnected(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the statement is committed
	_, err = conn.Exec(ctx, `insert into last_backup (finished_at) values (now())
		on conflict (is_only) do update set finished_at = excluded.finished_at`)
	if err != nil && !isNoTable(err) {
		return fmt.Errorf("record the backup: %w", err)
	}
	return nil
}

// NewestSchema returns the version that Migrate upgrades to.
func NewestSchema() (newest int64) {
	names, _ := fs.Glob(migrations, "migrations/*.sql") // embedded: it cannot fail
	for _, name := range names {
		if v, err := goose.NumericComponent(name); err == nil {
			newest = max(newest, v)
		}
	}
	return newest
}

// MigrationsVersion returns a hash of the migrations.
func MigrationsVersion() string {
	h := sha256.New()
	names, _ := fs.Glob(migrations, "migrations/*.sql") // embedded: both calls cannot fail
	for _, name := range names {
		b, _ := migrations.ReadFile(name)
		h.Write([]byte(name))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
