package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

const (
	// noLatency as the speed of the simulated vendor leaves no latency.
	noLatency = 1e12
	// watchInterval is how often the codes' states are read.
	watchInterval = 5 * time.Millisecond
)

// codeBed is a server with simulated locks without latency, and the floor.
type codeBed struct {
	*bed
	minimal *codeFloor
	client  *http.Client
	locks   []string       // by number: device_id
	written chan time.Time // when the vendor has answered the creation of a code

	mu      sync.Mutex
	watch   *pgx.Conn      // in one transaction, which reads the states of the codes
	set     map[string]int // codes that are set, by device_id
	settled bool
	read    time.Time // when set and settled were read
}

func newCodeBed(ctx context.Context) (_ *codeBed, err error) {
	b := &codeBed{
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: codeLocks}},
		written: make(chan time.Time, 1),
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.bed, err = newBed(ctx, codeLocks, func(c *app.Config) {
		c.Sandboxing.Speed, c.Sandboxing.Dir = noLatency, "memory"
		c.Wrap = b.noteWrites
	}); err != nil {
		return nil, err
	}
	if b.locks, err = b.ids(ctx, "select device_id::text from devices order by device_id"); err != nil {
		return nil, err
	}
	if b.minimal, err = newCodeFloor(ctx, b.cluster); err != nil {
		return nil, err
	}
	if b.watch, err = pgx.Connect(ctx, b.cluster.DSN("postgres")); err != nil {
		return nil, err
	}
	if _, err := b.watch.Exec(ctx, "begin"); err != nil {
		return nil, err
	}
	return b, b.settle(ctx)
}

// noteWrites notes when the simulated vendor has accepted a code, which without latency is then on the lock.
func (b *codeBed) noteWrites(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/sandbox/cloud/locks/") &&
			strings.HasSuffix(r.URL.Path, "/access_codes") {
			select {
			case b.written <- time.Now():
			default:
			}
		}
	})
}

func (b *codeBed) database() string { return "postgres" }

func (b *codeBed) create(ctx context.Context, lock int) error {
	_, err := ask(ctx, b.client, b.ours("/access_codes/create"), fmt.Sprintf(`{"device_id":%q,"name":"Guest"}`,
		b.locks[lock]))
	return err
}

func (b *codeBed) awaitSet(ctx context.Context, lock, n int) error {
	return b.until(ctx, func() bool { return b.set[b.locks[lock]] >= n })
}

func (b *codeBed) changed(ctx context.Context, lock int) (time.Duration, error) {
	select { // a creation that was repeated
	case <-b.written:
	default:
	}
	begin := time.Now()
	if err := b.create(ctx, lock); err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case at := <-b.written:
		return at.Sub(begin), nil
	}
}

func (b *codeBed) settle(ctx context.Context) error {
	begin := time.Now()
	return b.until(ctx, func() bool { return b.settled && b.read.After(begin) })
}

func (b *codeBed) clear(ctx context.Context) error {
	codes, err := b.ids(ctx, "select access_code_id::text from access_codes where name = 'Guest'")
	if err != nil {
		return err
	}
	for _, id := range codes {
		if _, err := ask(ctx, b.client, b.ours("/access_codes/delete"), fmt.Sprintf(`{"access_code_id":%q}`, id)); err != nil {
			return err
		}
	}
	return b.until(ctx, func() bool { return b.settled && len(b.set) == 0 })
}

// until waits for a condition on the states of the codes.
func (b *codeBed) until(ctx context.Context, ok func() bool) error {
	for deadline := time.Now().Add(2 * time.Minute); ; {
		met, err := b.look(ctx, ok)
		if met || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timeout waiting for codes; those on the locks: %v", b.set)
		}
		if err := wait(ctx, watchInterval); err != nil {
			return err
		}
	}
}

// look reads the states of the codes again if they are old. It counts as no transaction of the server, because it runs
// in one that lasts.
func (b *codeBed) look(ctx context.Context, ok func() bool) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.read) >= watchInterval {
		var rest int
		rows, err := b.watch.Query(ctx, `select device_id::text, count(*) filter (where status = 'set')::int,
			count(*) filter (where status <> 'set')::int
			+ (select count(*)::int from devices where due_at <= clock_timestamp())
			+ (select count(*)::int from events where fanned_out_at is null)
			+ (select count(*)::int from leases where held_until > clock_timestamp() and key like 'device:%')
			from access_codes where name = 'Guest' group by 1`)
		if err != nil {
			return false, err
		}
		set, device, n, left := map[string]int{}, "", 0, 0
		if _, err := pgx.ForEachRow(rows, []any{&device, &n, &left}, func() error {
			set[device] = n
			rest += left
			return nil
		}); err != nil {
			return false, err
		}
		b.set, b.settled, b.read = set, rest == 0, now
	}
	return ok(), nil
}

// transactions returns the number of transactions in a database so far.
func (b *codeBed) transactions(ctx context.Context, database string) (n float64, err error) {
	err = b.minimal.pool.QueryRow(
		ctx,
		"select xact_commit + xact_rollback from pg_stat_database where datname = $1",
		database,
	).Scan(&n)
	return n, err
}

// processorTime returns the processor time of this process and PostgreSQL so far.
func (b *codeBed) processorTime(ctx context.Context) (time.Duration, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0, err
	}
	var backend int
	if err := b.minimal.pool.QueryRow(ctx, "select pg_backend_pid()").Scan(&backend); err != nil {
		return 0, err
	}
	return time.Duration(own.Utime.Nano()+own.Stime.Nano()) + timeOfSiblings(backend), nil
}

func (b *codeBed) close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	b.client.CloseIdleConnections()
	if b.watch != nil {
		b.watch.Close(ctx) //nolint:errcheck // it has changed nothing
	}
	if b.minimal != nil {
		b.minimal.close()
	}
	if b.bed != nil {
		b.bed.close()
	}
}
