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
	_ "github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const (
	// beforePartitionIndexes is the schema after which an index is made on each partition, before the migration that joins them.
	beforePartitionIndexes = 42
	week                   = 7 * store.Day
	// theirs is the workspace of the events that were there before.
	theirs = "10000000-0000-0000-0000-000000000000"
	// writersWait is how long somebody who writes waits for a lock before that is a failure.
	writersWait = "1min"
)

// crowded is a database of that schema with many events in several partitions, to which others add more all the time.
type crowded struct {
	*program
	db      *pgx.Conn
	writers []*writer
	stop    context.CancelFunc
	writing sync.WaitGroup
}

// writer writes events one after another, and hands them to webhooks.
type writer struct{ written atomic.Int64 }

// newEvent is an event of a time between the first partition and a long time from now, for which there is no partition.
const newEvent = `insert into events (event_id, workspace_id, event_type, payload, created_at)
	select ` + anID + `, gen_random_uuid(), 'x', '{}', at from (select now() + $1 * interval '1 d' as at) m returning event_id`

// anID is one as it is made at a time.
const anID = "(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid"

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
	// One in ten has been given to no webhook, which is what the index is of.
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

// one is what a query finds, which is one row.
func one[T any](c *crowded, sql string, args ...any) (found T) {
	c.Helper()
	if err := c.db.QueryRow(c.Context(), sql, args...).Scan(&found); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
	return found
}

// all is what a query finds in its only column.
func (c *crowded) all(sql string, args ...any) []string {
	c.Helper()
	rows, err := c.db.Query(c.Context(), sql, args...)
	c.must(err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	c.must(err)
	return found
}

// write has n others write until they are told to stop.
func (c *crowded) write(n int) {
	c.Helper()
	ctx, stop := context.WithCancel(c.Context())
	c.stop = stop
	for range n {
		w, conn := &writer{}, c.connect()
		c.writers = append(c.writers, w)
		c.writing.Go(func() {
			if err := w.write(ctx, conn); err != nil {
				c.Errorf("somebody cannot write while the database is migrated: %v", err)
			}
		})
	}
	c.Cleanup(func() { stop(); c.writing.Wait() })
}

func (w *writer) write(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "set lock_timeout = '"+writersWait+"'"); err != nil {
		return err
	}
	pace := time.NewTicker(5 * time.Millisecond) // more than that only takes the processor from those who are waited for
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		var id string
		if err := conn.QueryRow(context.WithoutCancel(ctx), newEvent, rand.IntN(50)-21).Scan(&id); err != nil {
			return err
		}
		w.written.Add(1)
		if rand.IntN(2) == 0 {
			continue // nobody has taken it yet
		}
		if tag, err := conn.Exec(context.WithoutCancel(ctx), "update events set fanned_out_at = now() where event_id = $1", id); err != nil {
			return err
		} else if tag.RowsAffected() != 1 {
			return errors.New("an event is gone that was just written")
		}
	}
	return nil
}

// reach is until, but ends where somebody cannot write.
func (c *crowded) reach(what string, ok func() bool) {
	c.Helper()
	c.until(what, func() bool { return ok() || c.Failed() })
	if c.Failed() {
		c.FailNow()
	}
}

// goOn waits until each of those who write has written some more.
func (c *crowded) goOn() {
	c.Helper()
	for _, w := range c.writers {
		enough := w.written.Load() + 20
		c.reach("others write while an index is made", func() bool { return w.written.Load() >= enough })
	}
}

// end stops those who write, and returns how many events they have written.
func (c *crowded) end() (written int64) {
	c.Helper()
	c.stop()
	c.writing.Wait()
	for _, w := range c.writers {
		written += w.written.Load()
	}
	return written
}

// held is a transaction that has written to a partition, for whose end an index of it has to wait.
func (c *crowded) held(partition string) pgx.Tx {
	c.Helper()
	tx, err := c.connect().Begin(c.Context())
	c.must(err)
	_, err = tx.Exec(c.Context(), "delete from "+pgx.Identifier{partition}.Sanitize()+" where workspace_id = gen_random_uuid()")
	c.must(err)
	return tx
}

// isMaking waits until an index of a partition is being made, which waits for whoever has written there, and returns the connection that
// makes it.
func (c *crowded) isMaking(partition string) (pid int) {
	c.Helper()
	c.reach("the index of "+partition+" is begun", func() bool {
		err := c.db.QueryRow(c.Context(), "select pid from pg_stat_progress_create_index where relid = $1::regclass and phase = 'waiting for writers before build'", partition).Scan(&pid)
		return err == nil
	})
	return pid
}
