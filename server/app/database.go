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
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Database says where the data is.
type Database struct {
	DatabaseURL  string // empty: a private PostgreSQL in DataDir
	URLGiven     string // how DatabaseURL was given, for people: a flag, or a variable
	DataDir      string
	MasterKey    string    // base64, before earlier ones with a comma between; empty: in the file master.key of DataDir, made when there is none
	MaxConns     int32     // all that a server has; 0: the driver's default for its pool
	Progress     io.Writer // for what takes a while, such as fetching PostgreSQL; may be nil
	FastAndLoose bool      // tests only: a private PostgreSQL that does not survive a power cut

	traced bool   // statements are told of in traces
	proven func() // tests only: called by a restore before it puts anything in its place
}

// DefaultDataDir is where data is kept unless told otherwise: for root a directory that the user which runs
// PostgreSQL can reach, else below the user's own state; empty where the user has no home.
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

// openDatabase is a connection to the data, with the cluster behind it where that is private.
type openDatabase struct {
	store *store.DB
	keys  *encryption.Keys
	stale func() // ends what keeps the keys fresh; nil: nothing does
	waker *worker.Waker
	own   *pglocal.Cluster // run by this process for as long as it lives
	lent  *pglocal.Handle  // for a command
}

// BesidePool is how many connections a server has beside its pool: the one that keys and health are read on, and one on which each of
// its two job queues listens.
const BesidePool = 3

// right is what somebody who opens a database may do to it.
type right int

const (
	mayUse     right = iota // it has to be there, with a schema that is not older than this program's
	mayBegin                // use it, and make it where there is nothing
	mayMigrate              // make it, and bring up its schema
)

// openDB opens the database, with a schema of at least this program's. A server runs the private cluster itself; a command joins
// the one that runs, or starts one for the moment.
func openDB(ctx context.Context, c Database, serve bool, may right, log *slog.Logger) (_ *openDatabase, err error) {
	db := &openDatabase{}
	defer func() {
		if err != nil {
			err = errors.Join(c.unreached(err), db.close(ctx))
		}
	}()
	if err := c.sound(); err != nil {
		return nil, err
	}
	dsn := c.DatabaseURL
	if dsn != "" && may == mayMigrate {
		host, name, err := store.Place(dsn)
		if err != nil {
			return nil, err
		}
		log.Info("database", "host", host, "database", name, "given", c.URLGiven)
	}
	if dsn == "" {
		if err := c.notRestoring(); err != nil {
			return nil, err
		}
		opt := c.cluster(log)
		if serve {
			if db.own, err = c.startOwn(ctx, opt); err != nil {
				return nil, err
			}
			dsn = db.own.DSN("postgres")
		} else {
			if db.lent, err = pglocal.Open(ctx, opt); err != nil {
				return nil, err
			}
			dsn = db.lent.DSN("postgres")
		}
	}
	if db.keys, err = c.prepare(ctx, dsn, may); err != nil {
		return nil, err
	}
	var options []store.Option
	if c.traced {
		options = append(options, store.Traced)
	}
	pool := c.MaxConns
	if serve && pool > 0 {
		pool = max(1, pool-BesidePool)
	}
	if db.store, err = store.Open(ctx, dsn, pool, options...); err != nil {
		return nil, err
	}
	if err := access.FollowKeys(ctx, db.store, db.keys, may != mayUse); err != nil {
		return nil, err
	}
	db.stale = beside(db.keys.KeepFresh)
	if db.waker, err = worker.NewWaker(db.store); err != nil {
		return nil, err
	}
	return db, nil
}

// sound fails where the master key that is given, or kept, is none: that is better told of before a database is made.
func (c Database) sound() error {
	_, err := c.readKeys()
	if c.MasterKey == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) { // it is made, or whoever opens the database is told whose it is
		return nil
	}
	return err
}

// unreached adds to an error what to look at, where there is no way to a database that others run.
func (c Database) unreached(err error) error {
	if c.DatabaseURL == "" || !errors.Is(err, store.ErrNotConnected) {
		return err
	}
	return fmt.Errorf("%w; see whether PostgreSQL runs there and takes this user, and what %s says of host, port, user, password and database", err, cmp.Or(c.URLGiven, "the database URL"))
}

// commandWithin is how long a server waits for a command that has started the private cluster.
const commandWithin = 30 * time.Second

// startOwn starts the private cluster. Where a command has done so it waits for that to end, for a while.
func (c Database) startOwn(ctx context.Context, opt pglocal.Options) (*pglocal.Cluster, error) {
	end, told := time.Now().Add(commandWithin), false
	for {
		own, err := pglocal.Start(ctx, opt)
		if !errors.Is(err, pglocal.ErrInUse) {
			return own, err
		}
		command, unknown := pglocal.ByCommand(ctx, opt.Dir)
		switch late := time.Now().After(end); {
		case unknown == nil && !command:
			return nil, fmt.Errorf("a server is running on the data directory %s already: stop it, or choose another with --data-dir: %w", c.DataDir, err)
		case late && unknown == nil:
			return nil, fmt.Errorf("a command uses the data directory %s: start the server when that has ended: %w", c.DataDir, err)
		case late:
			return nil, fmt.Errorf("another process uses the data directory %s: stop it, or choose another with --data-dir: %w", c.DataDir, errors.Join(err, unknown))
		case command && !told:
			opt.Log.Info("a command uses the data directory: waiting until that has ended", "for", commandWithin)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the data directory %s: %w", c.DataDir, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// services are the rooms of the domain, put together.
func (db *openDatabase) services(opt access.Options) (*access.Service, *acs.Service) {
	a := access.New(db.store, db.keys, db.waker, opt)
	s := acs.New(db.store, a, db.waker)
	a.AtEndOfAccount(s.EndAccount)
	return a, s
}

// failed carries why the server cannot go on: its listener has ended, or its private database has.
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

// beside runs f until what it returns is called, which waits for its end.
func beside(f func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

const stopDatabaseWithin = 15 * time.Second

// close ends the way to the data, and stops the private cluster if it was started for that: at the end of ctx also where commands
// use it that have come later.
func (db *openDatabase) close(ctx context.Context) error {
	if db.stale != nil {
		db.stale()
	}
	if db.store != nil {
		db.store.Close()
	}
	switch {
	case db.own != nil:
		return closeWithin(ctx, db.own.Stop)
	case db.lent != nil:
		return db.lent.Close(ctx)
	}
	return nil
}

// Admin is what a command works with, whether the server runs or not.
type Admin struct {
	Access  *access.Service
	Entered Connecting // where gateways may be that somebody has entered on a page
	db      *openDatabase
}

// OpenAdmin opens the data for a command. It makes none where there is none, as the directory or the database is the wrong one,
// and migrates none, as servers of the version before may be running.
func OpenAdmin(ctx context.Context, c Database, log *slog.Logger) (*Admin, error) {
	if err := c.wanted(); err != nil {
		return nil, err
	}
	return openAdmin(ctx, c, mayUse, log)
}

// BeginAdmin opens the data for a command that one can begin with: it makes what is not there, and migrates nothing that is.
func BeginAdmin(ctx context.Context, c Database, log *slog.Logger) (*Admin, error) {
	return openAdmin(ctx, c, mayBegin, log)
}

func openAdmin(ctx context.Context, c Database, may right, log *slog.Logger) (*Admin, error) {
	db, err := openDB(ctx, c, false, may, log)
	if err != nil {
		return nil, err
	}
	a, _ := db.services(access.Options{Log: log})
	return &Admin{Access: a, db: db}, nil
}

// wanted fails where there is no database, or no master key.
func (c Database) wanted() error {
	if err := c.wantedDatabase(); err != nil || c.MasterKey != "" {
		return err
	}
	path := filepath.Join(c.DataDir, keyName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no master key in %s: name the directory that serve uses with --data-dir, or give the key with DEVICEACCESS_MASTER_KEY", path)
	}
	return nil
}

// wantedDatabase fails where there is no private database that should be there.
func (c Database) wantedDatabase() error {
	if c.DatabaseURL != "" {
		return nil
	}
	there, err := pglocal.HasData(filepath.Join(c.DataDir, postgresName))
	if errors.Is(err, fs.ErrPermission) { // whoever opens it is told whose it is
		return nil
	}
	if err == nil && !there {
		err = fmt.Errorf("there is no database in %s: name the directory that serve uses with --data-dir", c.DataDir)
	}
	return err
}

// Close ends the command's way to the data.
func (a *Admin) Close(ctx context.Context) error { return a.db.close(ctx) }

// Migrate brings the database up to this program, and ends.
func Migrate(ctx context.Context, c Database, log *slog.Logger) error {
	db, err := openDB(ctx, c, false, mayMigrate, log)
	if err != nil {
		return err
	}
	return db.close(ctx)
}
