package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	codeLocks = 50 // simulated locks of each side, with at most one outstanding code each
	// created one at a time in each round.
	idleCodes = 20
	// codes for each lock of which the transactions are counted.
	countedCodes = 10
	// idleLength is how long the transactions of an idle server are counted.
	idleLength = 5 * time.Second
)

// codeSide is the server or the floor, with its locks.
type codeSide interface {
	// create creates a code on a lock over HTTP, and returns before the code is set.
	create(ctx context.Context, lock int) error
	// awaitSet waits until n codes of a lock have been set since the last clear.
	awaitSet(ctx context.Context, lock, n int) error
	// latency creates a code on a lock, and returns how long the code took to get there.
	latency(ctx context.Context, lock int) (time.Duration, error)
	// settle waits until no work is due.
	settle(ctx context.Context) error
	// clear deletes the codes from the locks.
	clear(ctx context.Context) error
}

// measureCodes measures the way of a code from its request to a simulated lock without latency. The floor needs four
// transactions for each code.
func measureCodes(ctx context.Context, o options) ([]figure, error) {
	b, err := newCodeBed(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	fmt.Fprintf(os.Stderr, "codes: %d simulated locks without latency, at most one outstanding code each; %d "+
		"alternating rounds of %s; the processor time is that of PostgreSQL and this process, with the simulated locks\n",
		codeLocks, o.rounds, o.length)
	var rate, processor comparison
	var idle latencies
	for i := range o.rounds + 1 {
		floor, err := b.round(ctx, b.minimal, o.length)
		if err != nil {
			return nil, err
		}
		ours, err := b.round(ctx, b, o.length)
		if err != nil {
			return nil, err
		}
		// a server that has run for a minute has table statistics
		if i == 0 {
			if _, err := b.pool.Exec(ctx, "analyze"); err != nil {
				return nil, err
			}
			continue
		}
		rate.add(floor.perSecond, ours.perSecond)
		processor.add(ms(floor.processor), ms(ours.processor))
		idle.floor, idle.ours = append(idle.floor, floor.idle), append(idle.ours, ours.idle)
	}
	busy, alone, err := b.countTransactions(ctx)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		rate.figure("codes set on 50 locks, as many as it takes", aim{atLeast: 0.1}),
		busy.figureIn("%.1f", "writing transactions per code, as many as it takes", aim{atMost: 1.34, known: 1.7}),
		alone.figureIn("%.1f", "writing transactions per code, one at a time", aim{atMost: 1.34, known: 2.3}),
		processor.figureIn("%.1f ms", "processor time per code, as many as it takes", aim{atMost: 6}),
		idle.figure("change to lock, one at a time, to the lock's own latency, p50"),
	}
	for _, f := range figures {
		printFigure(f)
	}
	return figures, nil
}

// codeRound is the result of a round.
type codeRound struct {
	perSecond float64
	processor time.Duration // per code
	idle      []time.Duration
}

// round sets codes one at a time, and then as many as it takes.
func (b *codeBed) round(ctx context.Context, s codeSide, length time.Duration) (r codeRound, err error) {
	if r.idle, err = oneCodeAtATime(ctx, s, idleCodes); err != nil {
		return r, err
	}
	if err := s.clear(ctx); err != nil {
		return r, err
	}
	if r.perSecond, r.processor, err = b.sustainedCodes(ctx, s, length); err != nil {
		return r, err
	}
	return r, s.clear(ctx)
}

// oneCodeAtATime returns the latencies of n codes, each created when the side is idle.
func oneCodeAtATime(ctx context.Context, s codeSide, n int) (took []time.Duration, err error) {
	for i := range n {
		d, err := s.latency(ctx, i%codeLocks)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
		if err := s.settle(ctx); err != nil {
			return nil, err
		}
	}
	return took, nil
}

// sustainedCodes sets codes on all locks for longer than length, and returns the result of watchRate.
func (b *codeBed) sustainedCodes(
	ctx context.Context,
	s codeSide,
	length time.Duration,
) (perSecond float64, processor time.Duration, err error) {
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var set atomic.Int64
	var enough atomic.Bool
	var setting sync.WaitGroup
	setting.Go(func() {
		_, err := setCodes(working, s, func(n int) bool {
			set.Add(int64(min(n, 1))) // n is 0 before the first code
			return !enough.Load()
		})
		if err != nil {
			cancel(err)
		}
	})
	perSecond, processor, err = b.watchRate(working, &set, length)
	enough.Store(true)
	setting.Wait()
	if failed := context.Cause(working); failed != nil {
		err = failed
	}
	if err != nil {
		return 0, 0, err
	}
	return perSecond, processor, s.settle(ctx)
}

// watchRate waits for a first code on all locks, and returns the codes per second of the following time and the
// processor time per code.
func (b *codeBed) watchRate(
	ctx context.Context,
	set *atomic.Int64,
	length time.Duration,
) (perSecond float64, processor time.Duration, err error) {
	err = poll(ctx, "all locks have a code", func() (bool, error) { return set.Load() >= codeLocks, nil })
	if err != nil {
		return 0, 0, err
	}
	first, begin := set.Load(), time.Now()
	before, err := b.processorTime(ctx)
	if err != nil {
		return 0, 0, err
	}
	if err := wait(ctx, length); err != nil {
		return 0, 0, err
	}
	n, took := max(1, set.Load()-first), time.Since(begin)
	after, err := b.processorTime(ctx)
	return float64(n) / took.Seconds(), (after - before) / time.Duration(n), err
}

// setCodes sets codes on all locks, one after another on each while more returns true for the number of those so far.
// It returns the number of all codes.
func setCodes(ctx context.Context, s codeSide, more func(int) bool) (n int, err error) {
	var wg sync.WaitGroup
	counts, failed := make([]int, codeLocks), make([]error, codeLocks)
	for i := range codeLocks {
		wg.Go(func() {
			for failed[i] == nil && more(counts[i]) {
				if failed[i] = s.create(ctx, i); failed[i] == nil {
					counts[i]++
					failed[i] = s.awaitSet(ctx, i, counts[i])
				}
			}
		})
	}
	wg.Wait()
	for i := range codeLocks {
		if n += counts[i]; failed[i] != nil {
			return 0, failed[i]
		}
	}
	return n, nil
}

// countTransactions returns the number of transactions per code that write, if as many codes are created as it takes,
// and if one is created at a time. It subtracts those of an idle server in the same time.
func (b *codeBed) countTransactions(ctx context.Context) (busy, alone comparison, err error) {
	var perCode [2][2]float64 // by side
	for k, s := range []codeSide{b.minimal, b} {
		if perCode[k], err = b.transactionsOf(ctx, s); err != nil {
			return busy, alone, err
		}
	}
	busy.add(perCode[0][0], perCode[1][0])
	alone.add(perCode[0][1], perCode[1][1])
	return busy, alone, nil
}

// transactionsOf is countTransactions for one side.
func (b *codeBed) transactionsOf(ctx context.Context, s codeSide) (perCode [2]float64, err error) {
	idle := 0.0
	for i, set := range []func() (codes int, err error){
		func() (int, error) { return 1, wait(ctx, idleLength) },
		func() (int, error) {
			_, err := setCodes(ctx, s, func(n int) bool { return n < countedCodes })
			return codeLocks * countedCodes, err
		},
		func() (int, error) { return codeLocks, setOneByOne(ctx, s) },
	} {
		before, begin := 0.0, time.Now()
		if before, err = b.transactions(ctx); err != nil {
			return perCode, err
		}
		codes, err := set()
		if err != nil {
			return perCode, err
		}
		if err := s.settle(ctx); err != nil {
			return perCode, err
		}
		n, err := b.transactions(ctx)
		if err != nil {
			return perCode, err
		}
		if seconds := time.Since(begin).Seconds(); i == 0 {
			idle = (n - before) / seconds
		} else {
			perCode[i-1] = (n - before - idle*seconds) / float64(codes)
		}
	}
	return perCode, nil
}

// setOneByOne sets one more code on each lock.
func setOneByOne(ctx context.Context, s codeSide) error {
	for lock := range codeLocks {
		if err := s.create(ctx, lock); err != nil {
			return err
		}
		if err := s.awaitSet(ctx, lock, countedCodes+1); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// transactions returns the number of transactions of the cluster so far that write.
func (b *codeBed) transactions(ctx context.Context) (n float64, err error) {
	err = b.minimal.pool.QueryRow(ctx, "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&n)
	return n, err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
