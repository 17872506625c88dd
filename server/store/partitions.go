package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// partitioned are the tables that are kept in partitions with the same bounds, what refers to others first. Each has one
// more, <table>_rest, for what no other one is for.
var partitioned = []string{"delivery_attempts", "deliveries", "events"}

// Day is what partitions begin with, in UTC, and are a multiple of.
const Day = 24 * time.Hour

// FirstID is less than every identifier made at that time or later, and more than those made before (RFC 9562: 48 bits
// of milliseconds come first). It is none itself.
func FirstID(t time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(max(t.UnixMilli(), 0))<<16)
	return id
}

// clocksApart is by how much the clock of a server, which is in identifiers, and that of the database may differ before
// events are not found by their time.
const clocksApart = Day

// EventIDs are the identifiers that those of the events of a time are between: from the first, to the second. None is
// later than tomorrow, so that partitions of what is yet to come, and what has none, cost no plan of a list.
func EventIDs(since, until time.Time) (first, last uuid.UUID) {
	if now := time.Now(); until.After(now) {
		until = now
	}
	return FirstID(since.Add(-clocksApart)), FirstID(until.Add(clocksApart))
}

// Partition is a time of events, with their deliveries and the attempts at these.
type Partition struct {
	Name     string    // what its tables' names end in
	From, To time.Time // when the identifiers were made: from the first, up to the second. A zero From is no bound
}

func (p Partition) table(of string) string { return of + "_" + p.Name }

// tables are named in the order in which they may go.
func (p Partition) tables() string {
	names := make([]string, len(partitioned))
	for i, of := range partitioned {
		names[i] = pgx.Identifier{p.table(of)}.Sanitize()
	}
	return strings.Join(names, ", ")
}

// Partitions lists those that there are, the oldest first.
func (db *DB) Partitions(ctx context.Context) ([]Partition, error) { return partitions(ctx, db.Pool) }

func partitions(ctx context.Context, db dbsqlc.DBTX) ([]Partition, error) {
	rows, err := db.Query(ctx, `
		select substr(c.relname, length('events_') + 1), substring(b.bound from 'FROM \(''([0-9a-f-]{36})''\)')::uuid, substring(b.bound from 'TO \(''([0-9a-f-]{36})''\)')::uuid
		from pg_inherits i join pg_class c on c.oid = i.inhrelid, lateral (select pg_get_expr(c.relpartbound, c.oid) as bound) b
		where i.inhparent = 'events'::regclass and b.bound <> 'DEFAULT' order by 3`)
	if err != nil {
		return nil, fmt.Errorf("list the partitions: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p Partition, err error) {
		var from *uuid.UUID
		var to uuid.UUID
		err = r.Scan(&p.Name, &from, &to)
		if p.To = madeAt(to); from != nil {
			p.From = madeAt(*from)
		}
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("list the partitions: %w", err)
	}
	return out, nil
}

// madeAt is the time in an identifier.
func madeAt(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}

const (
	// partitionPatience is how long a change of the partitions waits for a lock, for others wait behind it. It is shorter
	// than the time after which the database looks for those who wait for each other.
	partitionPatience = 200 * time.Millisecond
	partitionTries    = 10
	// movedRows is how many rows at most are moved into a new partition while nobody can write.
	movedRows = 10_000
)

// inPartitions runs f while nobody else changes the partitions, and again when it has waited for a lock for too long.
func (db *DB) inPartitions(ctx context.Context, f func(pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := db.transact(ctx, func(t *transaction, _ *Act, _ *change) error { // not InTx, which runs it again with no pause
			tx, err := t.begin(ctx)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended('partitions', 0))"); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, fmt.Sprintf("set local lock_timeout = %d", partitionPatience.Milliseconds())); err != nil {
				return err
			}
			return f(tx)
		})
		if !GaveUp(err) || try == partitionTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(partitionPatience + rand.N(time.Duration(try)*partitionPatience)):
		}
	}
}

// MakePartitions makes the partitions for events of a time, and for those after it up to one whole width, so that the next
// partition is there long before its time. The width is in whole days. It returns what it has made.
func (db *DB) MakePartitions(ctx context.Context, at time.Time, width time.Duration) (made []Partition, err error) {
	for {
		var p *Partition
		err := db.inPartitions(ctx, func(tx pgx.Tx) (err error) {
			if p, err = nextPartition(ctx, tx, at, width); err != nil || p == nil {
				return err
			}
			return makePartition(ctx, tx, *p)
		})
		if err != nil {
			return made, fmt.Errorf("make a partition: %w", err)
		}
		if p == nil {
			return made, nil
		}
		made = append(made, *p)
	}
}

// nextPartition is the one to be made; nil: there are enough.
func nextPartition(ctx context.Context, tx pgx.Tx, at time.Time, width time.Duration) (*Partition, error) {
	all, err := partitions(ctx, tx)
	if err != nil {
		return nil, err
	}
	today := at.UTC().Truncate(Day)
	from := endOf(all, today)
	if from.Equal(today) { // nothing is for today, and what has happened today is among the rest. It is moved, unless that is too much
		var rest int
		if err := tx.QueryRow(ctx, "select count(*) from (select from events_rest where event_id >= $1 limit $2) r", FirstID(today), movedRows+1).Scan(&rest); err != nil {
			return nil, err
		}
		if rest > movedRows {
			from = endOf(all, today.Add(Day))
		}
	}
	if from.After(at.Add(width)) {
		return nil, nil
	}
	p := &Partition{Name: from.Format("p20060102"), From: from, To: from.Add(width)}
	for _, later := range all { // where the clock was ahead once
		if !later.From.Before(p.From) && later.From.Before(p.To) {
			p.To = later.From
		}
	}
	return p, nil
}

// endOf is up to when there is a partition for each moment from one on.
func endOf(all []Partition, from time.Time) time.Time {
	for _, p := range all {
		if !from.Before(p.From) && from.Before(p.To) {
			from = p.To
		}
	}
	return from
}

// makePartition makes tables and then lets them in, so that the locks which others would wait for are taken last.
func makePartition(ctx context.Context, tx pgx.Tx, p Partition) error {
	var create, join strings.Builder
	for _, of := range partitioned {
		fmt.Fprintf(&create, "create table %s (like %s including all);\n", p.table(of), of)
		from, to := FirstID(p.From), FirstID(p.To)
		fmt.Fprintf(&join, `lock table %[1]s_rest in access exclusive mode;
			with odd as (delete from %[1]s_rest where event_id >= '%[3]s' and event_id < '%[4]s' returning *) insert into %[2]s select * from odd;
			alter table %[1]s attach partition %[2]s for values from ('%[3]s') to ('%[4]s');
			`, of, p.table(of), from, to)
	}
	_, err := tx.Exec(ctx, create.String()+join.String())
	return err
}

// DropPartitions drops, as whole tables, the partitions of events older than a time, except those in which something is
// still owed: an event that no webhook was given yet, a delivery that is pending and not of a suspended workspace, or what is not older in truth, such as a
// delivery that came to rest only after a replay. It returns what it has dropped and what it has left.
func (db *DB) DropPartitions(ctx context.Context, before time.Time) (dropped, left []Partition, err error) {
	all, err := db.Partitions(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range all {
		if p.To.After(before) {
			break
		}
		var owed bool
		err := db.inPartitions(ctx, func(tx pgx.Tx) error {
			if there, err := partitions(ctx, tx); err != nil || !has(there, p) {
				return err // another instance was quicker
			}
			// Nobody replays meanwhile: AwaitPartitions. So what is not owed now will not be.
			err := tx.QueryRow(ctx, fmt.Sprintf(`select exists (select from %[1]s where fanned_out_at is null) or exists (select from %[2]s d where state = 'pending'
					and not exists (select from webhooks w join workspaces s using (workspace_id) where w.webhook_id = d.webhook_id and s.is_suspended))
				or exists (select from %[2]s where finished_at >= $1) or exists (select from %[1]s where created_at >= $1)`, p.table("events"), p.table("deliveries")), before).Scan(&owed)
			if err != nil || owed {
				return err
			}
			_, err = tx.Exec(ctx, "drop table "+p.tables())
			return err
		})
		if err != nil {
			return dropped, left, fmt.Errorf("drop the partition %s: %w", p.Name, err)
		}
		if owed {
			left = append(left, p)
		} else {
			dropped = append(dropped, p)
		}
	}
	return dropped, left, nil
}

func has(all []Partition, p Partition) bool {
	for _, one := range all {
		if one == p {
			return true
		}
	}
	return false
}

// RowsGoBefore is the identifier up to which events older than a time are to be removed one by one: those of partitions that
// should have gone and could not, but not those that will go with their partition, unless that is much wider than what is kept.
func (db *DB) RowsGoBefore(ctx context.Context, before time.Time, retention time.Duration) (uuid.UUID, error) {
	all, err := db.Partitions(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	for _, p := range all {
		if in := !before.Before(p.From) && before.Before(p.To); in && !p.From.IsZero() && p.To.Sub(p.From) <= retention/2 {
			return FirstID(p.From), nil
		}
	}
	return FirstID(before), nil
}

// AnalyzePartitions has the database count what there is in the tables with partitions as a whole, which it does by itself
// only for each partition, unless that was done lately.
func (db *DB) AnalyzePartitions(ctx context.Context, every time.Duration) error {
	for _, of := range partitioned {
		var due bool
		err := db.Pool.QueryRow(ctx, "select coalesce(last_analyze, '-infinity') < now() - $2::interval from pg_stat_user_tables where relid = $1::regclass", of, every).Scan(&due)
		if err == nil && due {
			err = untangled(ctx, func() error {
				_, err := db.Pool.Exec(ctx, "analyze "+of)
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("analyze %s: %w", of, err)
		}
	}
	return nil
}
