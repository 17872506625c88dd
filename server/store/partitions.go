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

// partitioned are the tables with partitions of the same bounds, referring tables first. Each also has a default
// partition, <table>_rest.
var partitioned = []string{"delivery_attempts", "deliveries", "events"}

// Day is the unit of partition bounds, in UTC.
const Day = 24 * time.Hour

// MinIDAt returns a bound that is less than every identifier created at t or later, and greater than those created
// before (RFC 9562: an identifier starts with 48 bits of milliseconds). It is not a valid identifier.
func MinIDAt(t time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(max(t.UnixMilli(), 0))<<16)
	return id
}

// maxClockSkew is the maximum difference between the clock of a server, which is in identifiers, and that of the database
// at which events are still found by time.
const maxClockSkew = Day

// EventIDs returns bounds for the identifiers of events of a period. The upper bound is at most tomorrow, so that plans
// exclude future partitions and the default one.
func EventIDs(since, until time.Time) (first, last uuid.UUID) {
	if now := time.Now(); until.After(now) {
		until = now
	}
	return MinIDAt(since.Add(-maxClockSkew)), MinIDAt(until.Add(maxClockSkew))
}

// Partition is a period of events, with their deliveries and delivery attempts.
type Partition struct {
	Name     string    // suffix of its tables' names
	From, To time.Time // creation times of its identifiers: [From, To). A zero From means no lower bound
}

func (p Partition) table(of string) string { return of + "_" + p.Name }

// tables returns the names of the tables in the order in which they may be dropped.
func (p Partition) tables() string {
	names := make([]string, len(partitioned))
	for i, of := range partitioned {
		names[i] = pgx.Identifier{p.table(of)}.Sanitize()
	}
	return strings.Join(names, ", ")
}

// Partitions returns all partitions but the default one, oldest first.
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
		if p.To = timeOfID(to); from != nil {
			p.From = timeOfID(*from)
		}
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("list the partitions: %w", err)
	}
	return out, nil
}

// timeOfID returns the time in an identifier.
func timeOfID(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}

const (
	// partitionLockTimeout is how long a change of the partitions waits for a lock, for others wait behind it. It is shorter
	// than the time after which the database looks for those who wait for each other.
	partitionLockTimeout = 200 * time.Millisecond
	maxPartitionTries    = 10
	// movedRows is the maximum number of rows to move into a new partition, which blocks writers.
	movedRows = 10_000
)

// inPartitions runs f while no other transaction changes the partitions, and retries it after a lock timeout.
func (db *DB) inPartitions(ctx context.Context, f func(pgx.Tx) error) error {
	for try := 1; ; try++ {
		err := db.transact(
			ctx,
			func(t *transaction, _ *Act, _ *change) error { // not InTx, which retries without a pause
				tx, err := t.begin(ctx)
				if err != nil {
					return err
				}
				if _, err := tx.Exec(
					ctx,
					"select pg_advisory_xact_lock(hashtextextended('partitions', 0))",
				); err != nil {
					return err
				}
				if _, err := tx.Exec(
					ctx,
					fmt.Sprintf("set local lock_timeout = %d", partitionLockTimeout.Milliseconds()),
				); err != nil {
					return err
				}
				return f(tx)
			},
		)
		if !IsLockTimeout(err) || try == maxPartitionTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(partitionLockTimeout + rand.N(time.Duration(try)*partitionLockTimeout)):
		}
	}
}

// MakePartitions creates the partitions for events at a time and for the following width, so that each partition exists
// well before it is used. The width is in whole days. It returns the new partitions.
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

// nextPartition returns the partition to create; nil: none.
func nextPartition(ctx context.Context, tx pgx.Tx, at time.Time, width time.Duration) (*Partition, error) {
	all, err := partitions(ctx, tx)
	if err != nil {
		return nil, err
	}
	today := at.UTC().Truncate(Day)
	from := endOf(all, today)
	if from.Equal(today) { // today's events are in the default partition: they are moved unless there are too many
		var rest int
		if err := tx.QueryRow(ctx, "select count(*) from (select from events_rest where event_id >= $1 limit $2) r", MinIDAt(today), movedRows+1).
			Scan(&rest); err != nil {
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
	for _, later := range all { // from a wrong clock
		if !later.From.Before(p.From) && later.From.Before(p.To) {
			p.To = later.From
		}
	}
	return p, nil
}

// endOf returns the time up to which partitions exist without a gap.
func endOf(all []Partition, from time.Time) time.Time {
	for _, p := range all {
		if !from.Before(p.From) && from.Before(p.To) {
			from = p.To
		}
	}
	return from
}

// makePartition creates the tables before it attaches them, so that it holds the conflicting locks only briefly.
func makePartition(ctx context.Context, tx pgx.Tx, p Partition) error {
	var create, join strings.Builder
	for _, of := range partitioned {
		fmt.Fprintf(&create, "create table %s (like %s including all);\n", p.table(of), of)
		from, to := MinIDAt(p.From), MinIDAt(p.To)
		fmt.Fprintf(&join, `lock table %[1]s_rest in access exclusive mode;
			with odd as (delete from %[1]s_rest where event_id >= '%[3]s' and event_id < '%[4]s' returning *) insert into %[2]s select * from odd;
			alter table %[1]s attach partition %[2]s for values from ('%[3]s') to ('%[4]s');
			`, of, p.table(of), from, to)
	}
	_, err := tx.Exec(ctx, create.String()+join.String())
	return err
}

// DropPartitions drops the partitions of events older than before. It keeps a partition with pending work: an event
// without deliveries, a pending delivery of a workspace that is not suspended, or a row that is more recent, such as a
// delivery that finished after a replay. It returns the dropped and the kept partitions.
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
				return err // another instance has dropped it
			}
			// AwaitPartitions blocks replays meanwhile, so no work is added.
			err := tx.QueryRow(ctx, fmt.Sprintf(`select exists (select from %[1]s where fanned_out_at is null) or exists (select from %[2]s d where state = 'pending'
					and not exists (select from webhooks w join workspaces s using (workspace_id) where w.webhook_id = d.webhook_id and s.is_suspended))
				or exists (select from %[2]s where finished_at >= $1) or exists (select from %[1]s where created_at >= $1)`, p.table("events"), p.table("deliveries")), before).
				Scan(&owed)
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

// RowsGoBefore returns the identifier up to which expired events must be deleted row by row: those of partitions that
// could not be dropped, but not those that will be dropped with their partition, unless that is much wider than the
// retention.
func (db *DB) RowsGoBefore(ctx context.Context, before time.Time, retention time.Duration) (uuid.UUID, error) {
	all, err := db.Partitions(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	for _, p := range all {
		if in := !before.Before(p.From) &&
			before.Before(p.To); in && !p.From.IsZero() &&
			p.To.Sub(p.From) <= retention/2 {
			return MinIDAt(p.From), nil
		}
	}
	return MinIDAt(before), nil
}

// AnalyzePartitions analyzes the partitioned tables as a whole, unless that was done within the interval every.
// Autovacuum analyzes only partitions.
func (db *DB) AnalyzePartitions(ctx context.Context, every time.Duration) error {
	for _, of := range partitioned {
		var due bool
		err := db.Pool.QueryRow(ctx, "select coalesce(last_analyze, '-infinity') < now() - $2::interval from pg_stat_user_tables where relid = $1::regclass", of, every).
			Scan(&due)
		if err == nil && due {
			err = retryDeadlocks(ctx, func() error {
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
