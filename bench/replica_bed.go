package main

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

const (
	replicaConnections = 16 // of the pool to each database: all that write and read at once, and who looks
	replicaSlot        = "bench_replica"
)

// place is a device that codes can be made on, and a code that is on it.
type place struct{ workspace, device, code uuid.UUID }

// node is a database, with what the server would do on it.
type node struct {
	db     *store.DB
	access *access.Service
}

// replicaBed is a database with rows, a copy that follows it, and no server that works on either.
type replicaBed struct {
	*listBed
	workspace        uuid.UUID // the largest
	places           []place
	replicaCluster   *cluster
	primary, replica node
	keys             *encryption.Keys
}

func newReplicaBed(ctx context.Context, size float64) (_ *replicaBed, err error) {
	bed, err := newBed(ctx, 1)
	if err != nil {
		return nil, err
	}
	b := &replicaBed{listBed: &listBed{bed: bed}}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if err := b.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare the rows that are copied: %w", err)
	}
	if err := b.fillGrowth(ctx, size); err != nil {
		return nil, err
	}
	b.workspace = b.app.Sandbox.WorkspaceID
	stopped := b.app.Stop(ctx) // it would try to reach the copies of devices, which are nowhere
	if b.app = nil; stopped != nil {
		return nil, fmt.Errorf("stop the server: %w", stopped)
	}
	master, err := encryption.File(filepath.Join(b.config.DataDir, "master.key"))
	if err != nil {
		return nil, err
	}
	if b.keys, err = encryption.New(master...); err != nil {
		return nil, err
	}
	if b.primary, err = b.open(ctx, b.cluster); err != nil {
		return nil, err
	}
	if err := access.FollowKeys(ctx, b.primary.db, b.keys, false); err != nil {
		return nil, err
	}
	if b.places, err = b.allPlaces(ctx); err != nil {
		return nil, err
	}
	return b, b.startReplica(ctx)
}

func (b *replicaBed) open(ctx context.Context, c *cluster) (n node, err error) {
	if n.db, err = store.Open(ctx, c.DSN("postgres"), replicaConnections); err != nil {
		return n, err
	}
	waker, err := worker.NewWaker(n.db)
	if err != nil {
		return n, err
	}
	n.access = access.New(n.db, b.keys, waker, access.Options{})
	return n, nil
}

// startReplica copies the database, has the copy follow, and says what that took.
func (b *replicaBed) startReplica(ctx context.Context) (err error) {
	if _, err := b.pool.Exec(ctx, "select pg_create_physical_replication_slot($1, true)", replicaSlot); err != nil {
		return err
	}
	began := time.Now()
	c, size, err := b.cluster.copied(ctx)
	if b.replicaCluster = c; err != nil {
		return err
	}
	took := time.Since(began)
	if c.Cluster, err = pglocal.Start(ctx, pglocal.Options{Dir: c.postgres(), Settings: map[string]string{
		"primary_conninfo": b.cluster.DSN("postgres"), "primary_slot_name": replicaSlot}}); err != nil {
		return err
	}
	answers := time.Since(began)
	if b.replica, err = b.open(ctx, c); err != nil {
		return err
	}
	if err := b.caughtUp(ctx); err != nil {
		return err
	}
	fmt.Printf("a base backup of %.0f MB took %.1f s; the replica answers %.1f s later, and has what was written meanwhile after %.1f s in all\n",
		float64(size)/1e6, took.Seconds(), (answers - took).Seconds(), time.Since(began).Seconds())
	return nil
}

// copied is a copy of a running cluster, of so many bytes, that is to be started as its standby. It is taken as
// `deviceaccess-server backup` takes it, so that nothing but the server of PostgreSQL has to be installed.
func (c *cluster) copied(ctx context.Context) (to *cluster, size int64, err error) {
	to = &cluster{}
	if to.dir, err = tempDir(); err != nil {
		return to, 0, err
	}
	h, err := pglocal.Open(ctx, pglocal.Options{Dir: c.postgres()})
	if err != nil {
		return to, 0, err
	}
	defer h.Close(ctx) //nolint:errcheck // it was not opened by this
	base, err := h.BaseBackup(ctx)
	if err != nil {
		return to, 0, err
	}
	defer base.Close(ctx) //nolint:errcheck // it is complete, or failed
	files, err := pglocal.NewRebuild(ctx, pglocal.Options{Dir: to.postgres()}, base.Major, pglocal.Owner{})
	if err != nil {
		return to, 0, err
	}
	if err := base.Copy(ctx, io.Discard, func(h *tar.Header, content io.Reader) error {
		size += h.Size
		return files.Put(h, content)
	}); err != nil {
		return to, 0, err
	}
	return to, size, files.Put(&tar.Header{Typeflag: tar.TypeReg, Name: "standby.signal"}, strings.NewReader(""))
}

// caughtUp waits until the replica has all that was written before.
func (b *replicaBed) caughtUp(ctx context.Context) error {
	lsn, err := b.written(ctx)
	if err != nil {
		return err
	}
	return b.replayed(ctx, lsn)
}

// written is up to where the primary's log is on its disk.
func (b *replicaBed) written(ctx context.Context) (lsn string, err error) {
	err = b.primary.db.Pool.QueryRow(ctx, "select pg_current_wal_flush_lsn()::text").Scan(&lsn)
	return lsn, err
}

// replayed waits until the replica has the log up to there.
func (b *replicaBed) replayed(ctx context.Context, lsn string) error {
	for deadline := time.Now().Add(patience); ; {
		var there bool
		if err := b.replica.db.Pool.QueryRow(ctx, "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", lsn).Scan(&there); err != nil || there {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the replica has not come to %s in %s", lsn, patience)
		}
		if err := again(ctx); err != nil {
			return err
		}
	}
}

// again lets some time go by before something is asked once more.
func again(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(200 * time.Microsecond):
		return nil
	}
}

func (b *replicaBed) close() {
	for _, n := range []node{b.primary, b.replica} {
		if n.db != nil {
			n.db.Close()
		}
	}
	if b.replicaCluster != nil {
		b.replicaCluster.close()
	}
	b.listBed.close()
}
