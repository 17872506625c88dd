package storetest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Standby is a copy of a cluster that replays its log.
type Standby struct {
	t       testing.TB
	primary *cluster
	server  *pglocal.Cluster
	name    string // of the test's database
}

// NewWithStandby is NewOnCluster with a standby.
func NewWithStandby(t testing.TB) (dsn string, _ *Standby) {
	t.Helper()
	c, name := newOnCluster(t, map[string]string{"wal_level": "replica", "max_wal_senders": "3"})
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(startTimeout))
	defer cancel()
	server, err := c.startStandby(ctx)
	if err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	return c.server.DSN(name), &Standby{t, c, server, name}
}

// startStandby copies the running cluster, and starts the copy as its standby.
func (c *cluster) startStandby(ctx context.Context) (_ *pglocal.Cluster, err error) {
	from, err := pglocal.Open(ctx, c.opt)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close(ctx)) }()
	backup, err := from.BaseBackup(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, backup.Close(ctx)) }()
	opt := c.opt
	opt.Dir = filepath.Join(c.run.path, "standby")
	to, err := pglocal.NewRebuild(ctx, opt, backup.Major, pglocal.Owner{})
	if err != nil {
		return nil, err
	}
	if err := backup.Copy(ctx, io.Discard, to.Put); err != nil {
		return nil, err
	}
	signal := &tar.Header{Typeflag: tar.TypeReg, Name: "standby.signal"}
	if err := to.Put(signal, bytes.NewReader(nil)); err != nil {
		return nil, err
	}
	const password = "password" // a standby cannot get one of its own
	text, err := os.ReadFile(filepath.Join(c.opt.Dir, password))
	if err == nil {
		err = os.WriteFile(filepath.Join(opt.Dir, password), text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	primary, err := url.Parse(c.server.DSN("postgres"))
	if err != nil {
		return nil, errors.New("the URL of the cluster is malformed") // the error quotes the password
	}
	secret, _ := primary.User.Password()
	opt.Settings = maps.Clone(opt.Settings)
	opt.Settings["primary_conninfo"] = fmt.Sprintf("host=%s port=%s user=%s password=%s",
		primary.Query().Get("host"), primary.Query().Get("port"), primary.User.Username(), secret)
	server, err := pglocal.Start(ctx, opt)
	if err != nil {
		return nil, err
	}
	c.standbys = append(c.standbys, server)
	return server, nil
}

// Promote makes the standby a primary when it has replayed what the former primary has written, and returns the URL of
// the test's database there. The former primary keeps running.
func (s *Standby) Promote() (dsn string) {
	s.t.Helper()
	var written string
	s.scan(s.primary.server, &written, "select pg_current_wal_insert_lsn()::text")
	testenv.Until(s.t, "the standby has replayed the log", func() (replayed bool) {
		s.scan(s.server, &replayed, "select pg_last_wal_replay_lsn() >= '"+written+"'")
		return replayed
	})
	var promoted bool
	s.scan(s.server, &promoted, "select pg_promote()")
	if !promoted {
		s.t.Fatal("the standby is not promoted")
	}
	return s.server.DSN(s.name)
}

// scan reads one value from a cluster.
func (s *Standby) scan(from *pglocal.Cluster, to any, query string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), from.DSN("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(s.t.Context())) //nolint:errcheck // read only
	if err := conn.QueryRow(s.t.Context(), query).Scan(to); err != nil {
		s.t.Fatal(err)
	}
}
