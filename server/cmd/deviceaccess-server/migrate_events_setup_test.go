package main

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // for goose
	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const (
	// beforePartitionIndexes is the last schema version before the migration that indexes each partition and joins the
	// indexes.
	beforePartitionIndexes = 42
	week                   = 7 * store.Day
	// theirs is the workspace of the initial events.
	theirs = "10000000-0000-0000-0000-000000000000"
	// writersWait is the lock timeout of writers, after which the test fails.
	writersWait = "1min"
)

// crowded is a database of that schema with many events in several partitions and with concurrent writers.
type crowded struct {
	*program
	db      *pgx.Conn
	writers []*writer
	stop    context.CancelFunc
	writing sync.WaitGroup
}

// writer inserts events and marks them as fanned out.
type writer struct{ written atomic.Int64 }

// newEvent inserts an event at an offset of $1 days from now, between the first partition and a time without one.
const newEvent = `insert into events (event_id, workspace_id, event_type, payload, created_at)
	select ` + anID + `, gen_random_uuid(), 'x', '{}', at from (select now() + $1 * interval '1 d' as at) m returning event_id`

// anID is the SQL of a UUIDv7 at a time.
const anID = "(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || " +
	"substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid"

func newCrowded(t *testing.T, events int) *crowded {
	t.Helper()
	c := &crowded{program: newProgram(t)}
	c.db = c.connect()
	c.exec("drop schema public cascade; create schema public")
	plain, err := sql.Open("pgx", c.database)
	c.must(err)
	defer plain.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, plain, os.DirFS("../../store/migrations"))
	c.must(err)
	_, err = steps.UpTo(t.Context(), beforePartitionIndexes)
	c.must(err)
	db, err := store.Open(t.Context(), c.database, 2)
	c.must(err)
	defer db.Close()
	now, err := db.Moment(t.Context())
	c.must(err)
	for at := now.Add(-3 * week); !at.After(now); at = at.Add(week) {
		_, err := db.MakePartitions(t.Context(), at, week)
		c.must(err)
	}
	// One in ten events is not fanned out. The index covers these.
	c.exec(`insert into events (event_id, workspace_id, event_type, payload, created_at, fanned_out_at)
		select `+anID+`, '`+theirs+`', 'x', '{}', at, case when i % 10 > 0 then at end
		from generate_series(1, $1::int) i, lateral (select now() - i * (interval '21 d' / $1) as at) m`, events)
	c.write(3)
	return c
}

func (c *crowded) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *crowded) connect() *pgx.Conn {
	c.Helper()
	conn, err := pgx.Connect(c.Context(), c.database)
	c.must(err)
	c.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (c *crowded) exec(sql string, args ...any) {
	c.Helper()
	if _, err := c.db.Exec(c.Context(), sql, args...); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
}

// one returns the value of a query with one row and one column.
func one[T any](c *crowded, sql string, args ...any) (found T) {
	c.Helper()
	if err := c.db.QueryRow(c.Context(), sql, args...).Scan(&found); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
	return found
}

// all returns the only column of a query.
func (c *crowded) all(sql string, args ...any) []string {
	c.Helper()
	rows, err := c.db.Query(c.Context(), sql, args...)
	c.must(err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	c.must(err)
	return found
}

// write starts n concurrent writers, which run until stop.
func (c *crowded) write(n int) {
	c.Helper()
	ctx, stop := context.WithCancel(c.Context())
	c.stop = stop
	for range n {
		w, conn := &writer{}, c.connect()
		c.writers = append(c.writers, w)
		c.writing.Go(func() {
			if err := w.write(ctx, conn); err != nil {
				c.Errorf("a writer failed during the migration: %v", err)
			}
		})
	}
	c.Cleanup(func() { stop(); c.writing.Wait() })
}

func (w *writer) write(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "set lock_timeout = '"+writersWait+"'"); err != nil {
		return err
	}
	pace := time.NewTicker(5 * time.Millisecond) // a higher rate only takes processor time from the migration
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		var id string
		if err := conn.QueryRow(context.WithoutCancel(ctx), newEvent, rand.IntN(50)-21).Scan(&id); err != nil {
			return err
		}
		w.written.Add(1)
		if rand.IntN(2) == 0 {
			continue // not fanned out
		}
		if tag, err := conn.Exec(
			context.WithoutCancel(ctx),
			"update events set fanned_out_at = now() where event_id = $1",
			id,
		); err != nil {
			return err
		} else if tag.RowsAffected() != 1 {
			return errors.New("an inserted event has disappeared")
		}
	}
	return nil
}

// reach is until, but ends the test if a writer has failed.
func (c *crowded) reach(what string, ok func() bool) {
	c.Helper()
	c.until(what, func() bool { return ok() || c.Failed() })
	if c.Failed() {
		c.FailNow()
	}
}

// goOn waits until each writer has made progress.
func (c *crowded) goOn() {
	c.Helper()
	for _, w := range c.writers {
		enough := w.written.Load() + 20
		c.reach("writers make progress while an index is built", func() bool { return w.written.Load() >= enough })
	}
}

// end stops the writers and returns the number of events that they have written.
func (c *crowded) end() (written int64) {
	c.Helper()
	c.stop()
	c.writing.Wait()
	for _, w := range c.writers {
		written += w.written.Load()
	}
	return written
}

// held returns an open transaction that has written to a partition, so that an index build must wait for it.
func (c *crowded) held(partition string) pgx.Tx {
	c.Helper()
	tx, err := c.connect().Begin(c.Context())
	c.must(err)
	_, err = tx.Exec(
		c.Context(),
		"delete from "+pgx.Identifier{partition}.Sanitize()+" where workspace_id = gen_random_uuid()",
	)
	c.must(err)
	return tx
}

// isMaking waits until the build of a partition's index waits for writers, and returns the PID of its connection.
func (c *crowded) isMaking(partition string) (pid int) {
	c.Helper()
	c.reach("the index of "+partition+" is begun", func() bool {
		err := c.db.QueryRow(c.Context(), "select pid from pg_stat_progress_create_index where relid = $1::regclass and "+
			"phase = 'waiting for writers before build'", partition).
			Scan(&pid)
		return err == nil
	})
	return pid
}
