package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// timeOfID is an SQL expression for an identifier created at a time.
func madeAt(at string) string {
	return "(lpad(to_hex((extract(epoch from " + at + ") * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid"
}

// partition has events of so long ago, and of some time from then on, in partitions of their own, and no empty ones.
func partition(t *testing.T, db *store.DB, ago ...time.Duration) {
	t.Helper()
	now := time.Now()
	if _, _, err := db.DropPartitions(t.Context(), now.Add(1000*store.Day)); err != nil {
		t.Fatal(err)
	}
	for _, d := range ago {
		made, err := db.MakePartitions(t.Context(), now.Add(-d), 110*store.Day)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range made {
			if p.From.After(now) {
				if _, err := db.Pool.Exec(
					t.Context(),
					"drop table events_"+p.Name+", deliveries_"+p.Name+", delivery_attempts_"+p.Name,
				); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// history is a database with events of many days, one each hour, and what has become of them at one webhook.
type history struct {
	*testing.T
	db                 *store.DB
	workspace, webhook uuid.UUID
	now                time.Time // a noon long from now: none of the partitions that there are is about it
}

const retention = 30 * store.Day

func newHistory(t *testing.T) *history {
	t.Helper()
	h := &history{
		T:         t,
		db:        open(t, storetest.New(t)),
		workspace: uuid.New(),
		webhook:   uuid.New(),
		now:       time.Date(2031, 7, 2, 12, 0, 0, 0, time.UTC),
	}
	h.drop() // those of today
	h.exec("insert into workspaces (workspace_id, name, is_sandbox) values ($1, 'w', true)", h.workspace)
	h.exec(
		"insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed) values ($2, $1, '', '{*}', '')",
		h.workspace,
		h.webhook,
	)
	return h
}

func (h *history) exec(sql string, args ...any) {
	h.Helper()
	if _, err := h.db.Pool.Exec(h.Context(), sql, args...); err != nil {
		h.Fatalf("%s: %v", sql, err)
	}
}

func (h *history) count(query string, args ...any) (n int) {
	h.Helper()
	if err := h.db.Pool.QueryRow(h.Context(), "select count(*) from "+query, args...).Scan(&n); err != nil {
		h.Fatalf("%s: %v", query, err)
	}
	return n
}

// write has one event an hour happen from one time to another, which is delivered at once.
func (h *history) write(from, to time.Time) {
	h.Helper()
	h.exec(`with e as (insert into events (event_id, workspace_id, event_type, payload, created_at, fanned_out_at)
			select `+madeAt("at")+`, $1, 'x', '{}', at, at from generate_series($3::timestamptz, $4::timestamptz - interval '1 s', interval '1 h') at returning event_id, created_at),
		d as (insert into deliveries (webhook_id, event_id, state, finished_at, created_at) select $2, event_id, 'delivered', created_at, created_at from e)
		insert into delivery_attempts (webhook_id, event_id, attempt, attempted_at, latency_us) select $2, event_id, 1, created_at, 1 from e`, h.workspace, h.webhook, from, to)
}

func (h *history) make(at time.Time) []store.Partition {
	h.Helper()
	made, err := h.db.MakePartitions(h.Context(), at, 7*store.Day)
	if err != nil {
		h.Fatal(err)
	}
	return made
}

func (h *history) drop() (dropped, left []store.Partition) {
	h.Helper()
	dropped, left, err := h.db.DropPartitions(h.Context(), h.now.Add(-retention))
	if err != nil {
		h.Fatal(err)
	}
	return dropped, left
}

// live is a server's life of some days: partitions are looked after every day, before its events happen.
func (h *history) live(days int) {
	h.Helper()
	for day := range days {
		h.make(h.now.Add(-time.Duration(days-day) * store.Day))
	}
	h.write(h.now.Add(-time.Duration(days)*store.Day), h.now)
}

// Events of three months, of which one is kept: what is older goes as whole tables, and each time had its partition.
func TestPartitionsGoWhenTheirTimeHasCome(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.live(90)
	if n := h.count("events_rest") + h.count("deliveries_rest") + h.count("delivery_attempts_rest"); n != 0 {
		t.Errorf("%d rows are in no partition of their time", n)
	}
	dropped, left := h.drop()
	if len(dropped) < 8 || len(left) != 0 {
		t.Fatalf("dropped %v, left %v", dropped, left)
	}
	oldest := dropped[len(dropped)-1].To
	if oldest.After(h.now.Add(-retention)) || oldest.Before(h.now.Add(-retention-8*store.Day)) {
		t.Errorf("everything is gone before %s, and it is %s", oldest, h.now)
	}
	for _, table := range []string{"events", "deliveries", "delivery_attempts"} {
		if got, want := h.count(table), int(h.now.Sub(oldest).Hours()); got != want {
			t.Errorf("%d %s are left, want %d", got, table, want)
		}
		for _, p := range dropped {
			if h.count("pg_class where relname = $1", table+"_"+p.Name) != 0 {
				t.Errorf("%s_%s is there", table, p.Name)
			}
		}
	}
	if again, _ := h.drop(); len(again) != 0 {
		t.Errorf("dropped again: %v", again)
	}
}

func TestTheNextPartitionIsThereBeforeItsTime(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	for day := range 60 {
		at := h.now.Add(time.Duration(day) * store.Day)
		h.make(at)
		all, err := h.db.Partitions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []time.Time{at.Truncate(store.Day), at, at.Add(7 * store.Day)} {
			if !slices.ContainsFunc(
				all,
				func(p store.Partition) bool { return !when.Before(p.From) && when.Before(p.To) },
			) {
				t.Fatalf("at %s there is none for %s: %v", at, when, all)
			}
		}
		for i := 1; i < len(all); i++ {
			if all[i].From.Before(all[i-1].To) {
				t.Fatalf("%v and %v overlap", all[i-1], all[i])
			}
		}
	}
	if made := h.make(h.now); len(made) != 0 {
		t.Errorf("made for what has its partition: %v", made)
	}
}

// What is owed keeps its partition; once it is not any more, that goes.
// The clock was ahead, and is right again. What happens until then has its partitions all the same.
func TestAClockThatWasAheadLeavesNoTimeWithoutPartitions(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	const ahead = 17 * store.Day // no multiple of a width
	h.make(h.now)
	h.make(h.now.Add(ahead))
	for day := range 40 {
		at := h.now.Add(time.Duration(day) * store.Day)
		h.make(at)
		h.write(at, at.Add(time.Hour))
	}
	if n := h.count("events_rest"); n != 0 {
		t.Errorf("%d events are in no partition of their time", n)
	}
	all, err := h.db.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(all); i++ {
		if !all[i].From.Equal(all[i-1].To) {
			t.Errorf("%v and %v are not one after the other", all[i-1], all[i])
		}
	}
}

func TestNothingThatIsOwedGoesWithItsPartition(t *testing.T) {
	t.Parallel()
	for name, owe := range map[string][2]string{
		"a delivery that is pending": {"update deliveries set state = 'pending', finished_at = null where event_id = $1", "update deliveries set state = 'failed', finished_at = $2 where event_id = $1"},
		"a delivery that is pending, until its workspace is suspended": {
			"update deliveries set state = 'pending', finished_at = null where event_id = $1",
			"update workspaces set is_suspended = true where $1::uuid is not null and $2::timestamptz is not null",
		},
		"a delivery that was replayed":       {"update deliveries set finished_at = $2::timestamptz + interval '40 d' where event_id = $1", "update deliveries set finished_at = $2 where event_id = $1"},
		"an event without deliveries":        {"update events set fanned_out_at = null where event_id = $1 and $2::timestamptz is not null", "update events set fanned_out_at = $2 where event_id = $1"},
		"an event of a clock that is behind": {"update events set created_at = $2::timestamptz + interval '40 d' where event_id = $1", "update events set created_at = $2 where event_id = $1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			h.live(60)
			var id uuid.UUID
			var at time.Time
			if err := h.db.Pool.QueryRow(t.Context(), "select event_id, created_at from events order by created_at offset 24 limit 1").
				Scan(&id, &at); err != nil {
				t.Fatal(err)
			}
			args := []any{id, at}
			if !strings.Contains(owe[0], "$2") {
				args = args[:1]
			}
			h.exec(owe[0], args...)
			dropped, left := h.drop()
			if len(left) != 1 || len(dropped) < 3 || h.count("events where event_id = $1", id) != 1 ||
				h.count("deliveries where event_id = $1", id) != 1 {
				t.Fatalf("dropped %v, left %v", dropped, left)
			}
			h.exec(owe[1], id, at)
			if dropped, left := h.drop(); len(dropped) != 1 || len(left) != 0 {
				t.Errorf("dropped %v, left %v", dropped, left)
			}
		})
	}
}

// Held deliveries finish when they are held: recently held ones are kept.
func TestHeldDeliveriesAreKeptAsLongAsOthers(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.live(60)
	h.exec("update deliveries set state = 'held', finished_at = $1", h.now)
	if dropped, left := h.drop(); len(dropped) != 0 || len(left) == 0 {
		t.Errorf("dropped %v, left %v", dropped, left)
	}
}

func TestInstancesRaceForPartitions(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.live(60)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var made, dropped []string
	for range 4 {
		wg.Go(func() {
			m, err := h.db.MakePartitions(t.Context(), h.now.Add(50*store.Day), 7*store.Day)
			d, _, failed := h.db.DropPartitions(t.Context(), h.now.Add(-retention))
			if err != nil || failed != nil {
				t.Error(err, failed)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range m {
				made = append(made, p.Name)
			}
			for _, p := range d {
				dropped = append(dropped, p.Name)
			}
		})
	}
	wg.Wait()
	slices.Sort(made)
	if len(made) == 0 || len(slices.Compact(slices.Clone(made))) != len(made) || len(dropped) == 0 {
		t.Errorf("made %v, dropped %v", made, dropped)
	}
}

// A write never fails for want of a partition: what has none of its time is among the rest, and is moved to the one made late.
func TestWhatHasNoPartitionIsKeptAndMovedLater(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.write(h.now.Add(-5*store.Day), h.now)
	if n := h.count("events_rest"); n != 120 {
		t.Fatalf("%d events are among the rest", n)
	}
	made := h.make(h.now)
	if len(made) == 0 || !made[0].From.Equal(h.now.Truncate(store.Day)) {
		t.Fatalf("made %v", made)
	}
	for _, table := range []string{"events", "deliveries", "delivery_attempts"} {
		if n := h.count(table + "_" + made[0].Name); n != 12 || h.count(table) != 120 {
			t.Errorf("%d %s of today are where they belong", n, table)
		}
	}
	// The rest of the rest goes one by one.
	before, err := h.db.RowsGoBefore(t.Context(), h.now.Add(-time.Hour), retention)
	if err != nil || before != store.MinIDAt(made[0].From) {
		t.Errorf("%s %v", before, err)
	}
}

// A reset of a workspace erases its events, and what would refer to them.
func TestErasureLeavesNoDeliveryWithoutItsEvent(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.live(20)
	if err := h.db.InTx(t.Context(), func(tx store.Tx) error {
		return errors.Join(
			tx.EraseWorkspace(t.Context(), h.workspace),
			tx.EraseDeliveries(t.Context(), h.workspace),
			tx.EraseDeliveryAttempts(t.Context(), h.workspace),
		)
	}); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"events", "deliveries", "delivery_attempts"} {
		if n := h.count(table); n != 0 {
			t.Errorf("%d %s are left", n, table)
		}
	}
}

// With too much among the rest the first partition begins tomorrow, because moving rows blocks writers.
func TestMuchThatHasNoPartitionStaysWhereItIs(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.exec(
		`insert into events (event_id, workspace_id, event_type, payload, created_at, fanned_out_at) select `+madeAt(
			"$2::timestamptz + i * interval '1 ms'",
		)+`, $1, 'x', '{}', $2, $2 from generate_series(1, 10001) i`,
		h.workspace,
		h.now,
	)
	if made := h.make(
		h.now,
	); len(made) == 0 || !made[0].From.Equal(h.now.Truncate(store.Day).Add(store.Day)) ||
		h.count("events_rest") != 10001 {
		t.Errorf("made %v", made)
	}
}

// A held table lock delays the maintenance of partitions, which delays others only briefly.
func TestPartitionsWaitForReadersAndNotTheOthersForThem(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.live(60)
	reading, err := h.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Rollback(context.WithoutCancel(t.Context()))
	if _, err := reading.Exec(t.Context(), "select from events limit 1"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := h.db.DropPartitions(context.WithoutCancel(t.Context()), h.now.Add(-retention))
		done <- err
	}()
	const waits = "pg_locks where relation = 'events'::regclass and not granted and database = (select oid from pg_database where datname = current_database())"
	testenv.Until(t, "one waits for the reader", func() bool {
		select {
		case err := <-done:
			t.Fatalf("dropped below a reader: %v", err)
		default:
		}
		return h.count(waits) > 0
	})
	for range 20 {
		h.write(h.now, h.now.Add(time.Hour))
	}
	select {
	case err := <-done:
		t.Errorf("dropped below a reader: %v", err)
	default:
	}
	if err := reading.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRowsGoByThemselvesOnlyWhereTheirPartitionDoesNot(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.live(60)
	all, err := h.db.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []time.Duration{time.Hour, 10 * store.Day, retention} {
		at := h.now.Add(-kept)
		i := slices.IndexFunc(all, func(p store.Partition) bool { return !at.Before(p.From) && at.Before(p.To) })
		want := store.MinIDAt(at) // the partition is too wide for it
		if kept == retention {
			want = store.MinIDAt(all[i].From)
		}
		if got, err := h.db.RowsGoBefore(t.Context(), at, kept); err != nil || got != want {
			t.Errorf("%s: %s, want %s (%v)", kept, got, want, err)
		}
	}
}
