package main

import (
	"context"
	"errors"
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
	watchInterval = 20 * time.Millisecond
)

// codeBed is a server with simulated locks without latency, and the floor.
type codeBed struct {
	*bed
	minimal *codeFloor
	client  *http.Client
	locks   []string       // the device_id of each lock
	written chan time.Time // when the vendor has accepted a code

	watch     *pgx.Conn // of follow
	following sync.WaitGroup
	stop      context.CancelFunc

	mu    sync.Mutex
	set   map[string]int // codes that are set, by device_id
	fault error          // of follow
	fresh chan struct{}  // closed when set or fault has been written
}

func newCodeBed(ctx context.Context) (_ *codeBed, err error) {
	b := &codeBed{
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: codeLocks}},
		written: make(chan time.Time, 1),
		fresh:   make(chan struct{}),
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
	watching, stop := context.WithCancel(ctx)
	b.stop = stop
	b.following.Go(func() { b.follow(watching) })
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

func (b *codeBed) create(ctx context.Context, lock int) error {
	_, err := ask(ctx, b.client, b.ours("/access_codes/create"), fmt.Sprintf(`{"device_id":%q,"name":"Guest"}`,
		b.locks[lock]))
	return err
}

func (b *codeBed) awaitSet(ctx context.Context, lock, n int) error {
	return b.await(ctx, func(set map[string]int) bool { return set[b.locks[lock]] >= n })
}

// await waits until the numbers of codes that are set meet a condition.
func (b *codeBed) await(ctx context.Context, ok func(map[string]int) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("timeout waiting for codes to be set"))
	defer cancel()
	for {
		b.mu.Lock()
		set, fault, fresh := b.set, b.fault, b.fresh
		b.mu.Unlock()
		if fault != nil || ok(set) {
			return fault
		}
		select {
		case <-fresh:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *codeBed) latency(ctx context.Context, lock int) (time.Duration, error) {
	select { // of a repeated request to the vendor
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
	return poll(ctx, "the server is idle", func() (idle bool, err error) {
		err = b.pool.QueryRow(
			ctx,
			`select not exists (select 1 from devices where due_at <= clock_timestamp())
			and not exists (select 1 from events where fanned_out_at is null)
			and not exists (select 1 from leases where held_until > clock_timestamp() and key like 'device:%')
			and not exists (select 1 from access_codes where status <> 'set' and name = 'Guest')`,
		).Scan(&idle)
		return idle, err
	})
}

func (b *codeBed) clear(ctx context.Context) error {
	codes, err := b.ids(ctx, "select access_code_id::text from access_codes where name = 'Guest'")
	if err != nil {
		return err
	}
	for _, id := range codes {
		body := fmt.Sprintf(`{"access_code_id":%q}`, id)
		if _, err := ask(ctx, b.client, b.ours("/access_codes/delete"), body); err != nil {
			return err
		}
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	return b.await(ctx, func(set map[string]int) bool { return len(set) == 0 })
}

// follow reads the numbers of codes that are set until ctx ends or an error occurs.
func (b *codeBed) follow(ctx context.Context) {
	var fault error
	for fault == nil {
		var set map[string]int
		if fault = wait(ctx, watchInterval); fault == nil {
			set, fault = b.readSet(ctx)
		}
		b.mu.Lock()
		b.set, b.fault = set, fault
		close(b.fresh)
		b.fresh = make(chan struct{})
		b.mu.Unlock()
	}
}

func (b *codeBed) readSet(ctx context.Context) (map[string]int, error) {
	rows, err := b.watch.Query(
		ctx,
		"select device_id::text, count(*)::int from access_codes where status = 'set' and name = 'Guest' group by 1",
	)
	if err != nil {
		return nil, err
	}
	set, device, n := map[string]int{}, "", 0
	_, err = pgx.ForEachRow(rows, []any{&device, &n}, func() error {
		set[device] = n
		return nil
	})
	return set, err
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
	if b.stop != nil {
		b.stop()
		b.following.Wait()
	}
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
