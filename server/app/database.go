package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Database says where the data is.
type Database struct {
	// DatabaseURL is a PostgreSQL URL or connection string. If empty, the server runs a private PostgreSQL in DataDir.
	DatabaseURL string
	// URLSource is the flag or variable that DatabaseURL comes from, for messages.
	URLSource string
	// DataDir is the directory of the private PostgreSQL, the master key, and the simulated locks.
	DataDir string
	// MasterKey is the master key in base64, optionally followed by earlier keys, separated by commas. If empty, the key
	// is in the file master.key in DataDir, which the first start creates.
	MasterKey string
	// MaxConns is the maximum number of connections of a server. The default is that of the driver's pool.
	MaxConns int32
	// Progress, if not nil, receives the progress of long steps, such as downloading PostgreSQL.
	Progress io.Writer
	// NoSync is for tests: the private PostgreSQL does not sync to disk and does not survive a power failure.
	NoSync bool

	// traced adds statements to traces.
	traced bool
	// verified is for tests: restore calls it before it moves files to their place.
	verified func()
}

// DefaultDataDir returns the default data directory. For root, it is a directory that the user that runs PostgreSQL can
// reach; else it is below the user's state directory. It is empty if the user has no home directory.
func DefaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/deviceaccess"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "deviceaccess")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "deviceaccess")
}

// openDatabase is an open database, with its cluster if that is private.
type openDatabase struct {
	store          *store.DB
	keys           *encryption.Keys
	stopKeyRefresh func() // stops refreshing the keys; may be nil
	waker          *worker.Waker
	own            *pglocal.Cluster // a server's, for the life of the process
	joined         *pglocal.Handle  // a command's
}

// ConnsOutsidePool is the number of connections of a server outside its pool: one for keys and health, and one listener for
// each of its two job queues.
const ConnsOutsidePool = 3

// MinConns is the minimum number of connections of a server.
const MinConns = 4 + ConnsOutsidePool

// connsOfCommand is the number of connections that a server leaves for a command.
const connsOfCommand = 3

// poolSize returns the size of a server's pool: as large as MaxConns allows, and smaller if the database accepts fewer
// connections. 0 is the default of the driver.
func (c Database) poolSize(ctx context.Context, dsn string, log *slog.Logger) (int32, error) {
	if c.MaxConns == 0 {
		return 0, nil
	}
	limit, err := store.ReadConnLimit(ctx, dsn)
	if err != nil {
		return 0, err
	}
	least := min(MinConns, c.MaxConns)
	if limit.Connections < int(least) {
		return 0, fmt.Errorf(
			"the database accepts %d connections, and a server needs at least %d: raise the limit of %s",
			limit.Connections, least, limit.Of,
		)
	}
	fits := max(least, int32(min(limit.Connections-connsOfCommand, int(c.MaxConns)))) //nolint:gosec // at most MaxConns
	if fits < c.MaxConns {
		log.Warn(
			"using fewer database connections than --database-connections because the database does not accept as many and "+
				"some for commands; raise its limit, or lower --database-connections",
			"connections",
			fits,
			"max_connections",
			c.MaxConns,
			"limit",
			limit.Connections,
			"limited_by",
			limit.Of,
		)
	}
	return max(1, fits-ConnsOutsidePool), nil
}

// openMode is what opening a database may change in it.
type openMode int

const (
	openExisting   openMode = iota // the database must exist, with a schema at least as new as this program's
	openOrCreate                   // create the database if there is none
	openAndMigrate                 // create the database and migrate its schema
)

// keyedCredentials is the version of the schema whose migration adds keyed hashes to credentials.
const keyedCredentials = 6

// openDB opens a database whose schema is at least as new as this program's. A server starts the private cluster. A
// command uses the running cluster, or starts one temporarily.
func openDB(ctx context.Context, c Database, serve bool, may openMode, log *slog.Logger) (_ *openDatabase, err error) {
	db := &openDatabase{}
	defer func() {
		if err != nil {
			err = errors.Join(c.explainUnusable(err), db.close(ctx))
		}
	}()
	if err := c.checkMasterKey(); err != nil {
		return nil, err
	}
	dsn := c.DatabaseURL
	if dsn != "" && may == openAndMigrate {
		host, name, err := store.Location(dsn)
		if err != nil {
			return nil, err
		}
		log.Info("using an external database", "host", host, "database", name, "source", c.URLSource)
	}
	if dsn == "" {
		if err := c.checkNoRestore(); err != nil {
			return nil, err
		}
		opt := c.cluster(log)
		if serve {
			if db.own, err = c.startOwn(ctx, opt); err != nil {
				return nil, err
			}
			dsn = db.own.DSN("postgres")
		} else {
			if db.joined, err = pglocal.Open(ctx, opt); err != nil {
				return nil, err
			}
			dsn = db.joined.DSN("postgres")
		}
	}
	version, err := store.SchemaVersion(ctx, dsn)
	if err != nil && !errors.Is(err, store.ErrNoSchema) {
		return nil, err
	}
	if db.keys, err = c.prepare(ctx, dsn, may); err != nil {
		return nil, err
	}
	var options []store.Option
	if c.traced {
		options = append(options, store.WithTracing)
	}
	pool := c.MaxConns
	if serve {
		if pool, err = c.poolSize(ctx, dsn, log); err != nil {
			return nil, err
		}
	}
	if db.store, err = store.Open(ctx, dsn, pool, options...); err != nil {
		return nil, err
	}
	if err := keyrotation.FollowKeys(ctx, db.store, db.keys, may != openExisting); err != nil {
		return nil, err
	}
	if version > 0 && version < keyedCredentials && may == openAndMigrate {
		if err := auth.BindCredentials(ctx, db.store, db.keys); err != nil {
			return nil, err
		}
	}
	db.stopKeyRefresh = runInBackground(db.keys.RefreshLoop)
	if db.waker, err = worker.NewWaker(db.store); err != nil {
		return nil, err
	}
	return db, nil
}

// checkMasterKey returns an error if the master key is malformed, before anything creates a database.
func (c Database) checkMasterKey() error {
	_, err := c.readKeys()
	if c.MasterKey == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return nil // the key is created, or opening the database reports the owner of the directory
	}
	return err
}

// explainUnusable adds the next step to the error of a database of --database-url that cannot be used.
func (c Database) explainUnusable(err error) error {
	if c.DatabaseURL == "" {
		return err
	}
	if explained := store.Explain(err); explained != nil {
		return explained
	}
	if !errors.Is(err, store.ErrNotConnected) {
		return err
	}
	return fmt.Errorf(
		"%w; check that PostgreSQL runs there and accepts this user, and check host, port, user, password, and database "+
			"in %s",
		err,
		cmp.Or(c.URLSource, "the database URL"),
	)
}

// commandTimeout is how long a server waits for a command that runs the private cluster.
const commandTimeout = 30 * time.Second

// startOwn starts the private cluster. If a command runs it, startOwn first waits for the command to end.
func (c Database) startOwn(ctx context.Context, opt pglocal.Options) (*pglocal.Cluster, error) {
	end, logged := time.Now().Add(commandTimeout), false
	for {
		own, err := pglocal.Start(ctx, opt)
		if !errors.Is(err, pglocal.ErrInUse) {
			return own, err
		}
		command, unknown := pglocal.StartedByCommand(ctx, opt.Dir)
		switch late := time.Now().After(end); {
		case unknown == nil && !command:
			return nil, fmt.Errorf(
				"a server is running on the data directory %s: stop it or choose another directory with --data-dir: %w",
				c.DataDir,
				err,
			)
		case late && unknown == nil:
			return nil, fmt.Errorf(
				"a command uses the data directory %s: start the server when it has ended: %w",
				c.DataDir,
				err,
			)
		case late:
			return nil, fmt.Errorf(
				"another process uses the data directory %s: stop it or choose another directory with --data-dir: %w",
				c.DataDir,
				errors.Join(err, unknown),
			)
		case command && !logged:
			opt.Log.Info("waiting until a command that uses the data directory has ended", "timeout", commandTimeout)
			logged = true
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the data directory %s: %w", c.DataDir, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// services returns the services of the domain.
func (db *openDatabase) services(opt access.Options) (*access.Services, *acs.Service) {
	a := access.New(db.store, db.keys, db.waker, opt)
	s := acs.New(db.store, acs.Services{
		Accounts: a.Accounts,
		Devices:  a.Devices,
		Events:   a.Events,
		Auth:     a.Auth,
		Phones:   a.Phones,
	}, db.waker)
	a.Accounts.OnDisconnect(s.EndAccount)
	return a, s
}

// failed returns a channel that receives the error of the listener or of the private database when one of them stops.
func (db *openDatabase) failed(served <-chan error) <-chan error {
	out := make(chan error, 1)
	var gone <-chan struct{}
	if db.own != nil {
		gone = db.own.Done()
	}
	go func() {
		select {
		case err := <-served:
			out <- err
		case <-gone:
			out <- fmt.Errorf("the private database has stopped: %w", db.own.Err())
		}
	}()
	return out
}

// runInBackground runs f in the background. The returned function cancels f and waits for it.
func runInBackground(f func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// stopDatabaseTimeout limits stopping the private cluster.
const stopDatabaseTimeout = 15 * time.Second

// close closes the database, and stops the private cluster if openDB started it. When ctx is done, it stops the cluster
// even if later commands use it.
func (db *openDatabase) close(ctx context.Context) error {
	if db.stopKeyRefresh != nil {
		db.stopKeyRefresh()
	}
	if db.store != nil {
		db.store.Close()
	}
	switch {
	case db.own != nil:
		return closeWithin(ctx, db.own.Stop)
	case db.joined != nil:
		return db.joined.Close(ctx)
	}
	return nil
}

// Admin is the open data of a command, whether a server runs or not.
type Admin struct {
	// Access is the domain of devices, codes, and webhooks.
	Access *access.Services
	// Connecting says in which networks gateways from connect pages may be.
	Connecting Connecting
	// AllowWrites manages the new devices of accounts that Connect creates, whatever their adapter was tested with.
	AllowWrites bool
	db          *openDatabase
}

// OpenAdmin opens existing data for a command. It creates none, since a missing database means a wrong directory or
// URL. It migrates none, since servers of an older version may run.
func OpenAdmin(ctx context.Context, c Database, log *slog.Logger) (*Admin, error) {
	if err := c.checkData(); err != nil {
		return nil, err
	}
	return openAdmin(ctx, c, openExisting, log)
}

// OpenOrCreateAdmin opens the data for a command that may come first. It creates missing data but migrates none.
func OpenOrCreateAdmin(ctx context.Context, c Database, log *slog.Logger) (*Admin, error) {
	return openAdmin(ctx, c, openOrCreate, log)
}

func openAdmin(ctx context.Context, c Database, may openMode, log *slog.Logger) (*Admin, error) {
	db, err := openDB(ctx, c, false, may, log)
	if err != nil {
		return nil, err
	}
	a, _ := db.services(access.Options{Log: log})
	return &Admin{Access: a, db: db}, nil
}

// checkData returns an error if the database or the master key does not exist.
func (c Database) checkData() error {
	if err := c.checkDatabase(); err != nil || c.MasterKey != "" {
		return err
	}
	path := filepath.Join(c.DataDir, keyName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(
			"there is no master key in %s: set --data-dir to the directory of serve, or set DEVICEACCESS_MASTER_KEY",
			path,
		)
	}
	return nil
}

// checkDatabase returns an error if a private database is configured and does not exist.
func (c Database) checkDatabase() error {
	if c.DatabaseURL != "" {
		return nil
	}
	there, err := pglocal.HasData(filepath.Join(c.DataDir, postgresName))
	if errors.Is(err, fs.ErrPermission) { // opening the database reports the owner
		return nil
	}
	if err == nil && !there {
		err = fmt.Errorf("there is no database in %s: set --data-dir to the directory of serve", c.DataDir)
	}
	return err
}

// Close closes the data.
func (a *Admin) Close(ctx context.Context) error { return a.db.close(ctx) }

// Migrate creates the database if there is none and migrates its schema to this program's.
func Migrate(ctx context.Context, c Database, log *slog.Logger) error {
	db, err := openDB(ctx, c, false, openAndMigrate, log)
	if err != nil {
		return err
	}
	return db.close(ctx)
}
