package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	publishers = 16  // transactions that write events at once
	idleEvents = 200 // measured one at a time in each round
	hanging    = 200 // endpoints
	queued     = 50  // deliveries for each of them
)

// measureWebhooks measures the way of an event from its transaction to its endpoint, against a loop that does the
// least that could be called the same: a row for the event, the request, a row for the attempt.
func measureWebhooks(ctx context.Context, rounds int, length time.Duration) error {
	b, err := newDeliveryBed(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("An event, from the begin of its transaction to its endpoint: %d rounds in turns, PostgreSQL with fsync, receiver in the same process\n\n", rounds)
	var idle, beside latencies
	var rate, busyRate comparison
	if err := b.rounds(ctx, rounds, length, &idle, &rate); err != nil {
		return err
	}
	fmt.Printf("%-34s %s\n%-34s %s\n", "one at a time", &idle, "as many as it takes, logged", rate)
	if err := b.hang(ctx); err != nil {
		return err
	}
	if err := b.rounds(ctx, rounds, length, &beside, &busyRate); err != nil {
		return err
	}
	fmt.Printf("\nBeside %d endpoints that hang, with %d deliveries queued:\n%-34s %s\n%-34s %s\n\n", hanging, hanging*queued,
		"one at a time", &beside, "as many as it takes, logged", busyRate)
	return nil
}

// latencies are those of one side, and of the other.
type latencies struct{ floor, ours []time.Duration }

func (l *latencies) String() string {
	at := func(v []time.Duration, percent int) float64 {
		return float64(slices.Sorted(slices.Values(v))[len(v)*percent/100].Microseconds()) / 1000
	}
	return fmt.Sprintf("floor p50 %.1f ms, p99 %.1f ms   ours p50 %.1f ms, p99 %.1f ms   ratio of p50 %.1f",
		at(l.floor, 50), at(l.floor, 99), at(l.ours, 50), at(l.ours, 99), at(l.ours, 50)/at(l.floor, 50))
}

// rounds measures both sides in turns, after a warm-up of each.
func (b *deliveryBed) rounds(ctx context.Context, rounds int, length time.Duration, idle *latencies, rate *comparison) error {
	for i := range rounds + 1 {
		floorIdle, err := b.oneAtATime(ctx, b.bare)
		if err != nil {
			return err
		}
		oursIdle, err := b.oneAtATime(ctx, b.publish)
		if err != nil {
			return err
		}
		floor, err := b.sustained(ctx, length, b.bare)
		if err != nil {
			return err
		}
		ours, err := b.sustained(ctx, length, b.publish)
		if err != nil {
			return err
		}
		if i == 0 { // a server that has been running for a minute knows its tables
			if _, err := b.db.Pool.Exec(ctx, "analyze"); err != nil {
				return err
			}
		} else {
			idle.floor, idle.ours = append(idle.floor, floorIdle...), append(idle.ours, oursIdle...)
			rate.floor, rate.ours, rate.ratio = append(rate.floor, floor), append(rate.ours, ours), append(rate.ratio, ours/floor)
		}
	}
	return nil
}

func (b *deliveryBed) oneAtATime(ctx context.Context, publish func(context.Context) error) (took []time.Duration, err error) {
	for range idleEvents {
		before := b.receiver.count.Load()
		begin := time.Now()
		if err := publish(ctx); err != nil {
			return nil, err
		}
		at, err := b.receiver.until(ctx, before+1)
		if err != nil {
			return nil, err
		}
		took = append(took, at.Sub(begin))
		if err := b.untilLogged(ctx); err != nil { // idle again
			return nil, err
		}
	}
	return took, nil
}

// sustained publishes for length, waits until all of it is received and logged, and says how many that were
// per second.
func (b *deliveryBed) sustained(ctx context.Context, length time.Duration, publish func(context.Context) error) (float64, error) {
	before, begin := b.receiver.count.Load(), time.Now()
	var wg sync.WaitGroup
	counts, failed := make([]int64, publishers), make([]error, publishers)
	for i := range publishers {
		wg.Go(func() {
			for time.Since(begin) < length && failed[i] == nil {
				failed[i] = publish(ctx)
				counts[i]++
			}
		})
	}
	wg.Wait()
	var n int64
	for i := range publishers {
		if n += counts[i]; failed[i] != nil {
			return 0, failed[i]
		}
	}
	if _, err := b.receiver.until(ctx, before+n); err != nil {
		return 0, err
	}
	if err := b.untilLogged(ctx); err != nil {
		return 0, err
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
