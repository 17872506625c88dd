package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	codeLocks = 50 // simulated locks of each side, each with one outstanding code
	// created one at a time in each round.
	idleCodes = 20
	// codes for each lock of which the transactions are counted.
	countedCodes = 10
	// statsDelay is how long PostgreSQL may take to add the transactions of an idle connection to its statistics:
	// PGSTAT_IDLE_INTERVAL, and a second.
	statsDelay = 11 * time.Second
)

// codeSide is the server or the floor, with its locks.
type codeSide interface {
	// create creates a code on the lock over HTTP, and returns before the code is set.
	create(ctx context.Context, lock int) error
	// awaitSet waits until n codes of the lock have been set since the last clear.
	awaitSet(ctx context.Context, lock, n int) error
	// changed creates a code on the lock, waits until the code is set, and returns how long the code took to the lock.
	changed(ctx context.Context, lock int) (time.Duration, error)
	// settle waits until nothing is left to do.
	settle(ctx context.Context) error
	// clear deletes the codes from the locks.
	clear(ctx context.Context) error
	// database returns the name of the side's database.
	database() string
}

// measureCodes measures the way of a code from its request to a simulated lock without latency. The floor writes the
// necessary four transactions for each code. The processor time is that of this process and PostgreSQL. It includes the
// simulated vendor and the load generator on both sides.
func measureCodes(ctx context.Context, o options) ([]figure, error) {
	b, err := newCodeBed(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	fmt.Fprintf(os.Stderr, "codes: %d simulated locks without latency, one outstanding code each; %d alternating "+
		"rounds of %s\n", codeLocks, o.rounds, o.length)
	floor, ours := codeSide(b.minimal), codeSide(b)
	var rate, processor comparison
	var idle latencies
	for i := range o.rounds + 1 {
		f, err := b.round(ctx, floor, o.length)
		if err != nil {
			return nil, err
		}
		v, err := b.round(ctx, ours, o.length)
		if err != nil {
			return nil, err
		}
		if i == 0 { // a server that has run for a minute has table statistics
			if _, err := b.pool.Exec(ctx, "analyze"); err != nil {
				return nil, err
			}
			continue
		}
		rate.add(f.perSecond, v.perSecond)
		processor.add(ms(f.processor), ms(v.processor))
		idle.floor, idle.ours = append(idle.floor, f.idle), append(idle.ours, v.idle)
	}
	transactions, err := b.countTransactions(ctx, floor, ours)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		rate.figure("codes set on 50 simulated locks, as many as it takes", aim{}),
		transactions.figureIn("%.1f", "transactions per code set", aim{}),
		processor.figureIn("%.1f ms", "processor time per code set", aim{}),
		idle.figure("change to lock, one code at a time, to the vendor's own answer, p50"),
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

func (b *codeBed) round(ctx context.Context, s codeSide, length time.Duration) (r codeRound, err error) {
	for i := range idleCodes {
		took, err := s.changed(ctx, i%codeLocks)
		if err != nil {
			return r, err
		}
		r.idle = append(r.idle, took)
		if err := s.settle(ctx); err != nil {
			return r, err
		}
	}
	if err := s.clear(ctx); err != nil {
		return r, err
	}
	begin := time.Now()
	before, err := b.processorTime(ctx)
	if err != nil {
		return r, err
	}
	n, err := setCodes(ctx, s, func(int) bool { return time.Since(begin) < length })
	if err != nil {
		return r, err
	}
	r.perSecond = float64(n) / time.Since(begin).Seconds()
	if err := s.settle(ctx); err != nil {
		return r, err
	}
	after, err := b.processorTime(ctx)
	if err != nil {
		return r, err
	}
	r.processor = (after - before) / time.Duration(n)
	return r, s.clear(ctx)
}

// setCodes sets codes on all locks, on each one after another while more, which gets the number of codes so far, says
// so. It returns their number.
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

// countTransactions returns the number of transactions per code, including those of the background work meanwhile.
func (b *codeBed) countTransactions(ctx context.Context, floor, ours codeSide) (c comparison, err error) {
	sides := []codeSide{floor, ours}
	var perCode, before [2]float64
	count := func() (at [2]float64, err error) {
		if err := wait(ctx, statsDelay); err != nil {
			return at, err
		}
		for i, s := range sides {
			if at[i], err = b.transactions(ctx, s.database()); err != nil {
				return at, err
			}
		}
		return at, nil
	}
	if before, err = count(); err != nil {
		return c, err
	}
	for _, s := range sides {
		if _, err := setCodes(ctx, s, func(n int) bool { return n < countedCodes }); err != nil {
			return c, err
		}
		if err := s.settle(ctx); err != nil {
			return c, err
		}
	}
	after, err := count()
	if err != nil {
		return c, err
	}
	for i := range sides {
		perCode[i] = (after[i] - before[i]) / (codeLocks * countedCodes)
	}
	c.add(perCode[0], perCode[1])
	return c, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
