package main

import (
	"context"
	"fmt"
	"os"
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
func measureWebhooks(ctx context.Context, rounds int, length time.Duration) ([]figure, error) {
	b, err := newDeliveryBed(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	fmt.Fprintf(os.Stderr, "webhooks: an event, from the begin of its transaction to its endpoint; %d rounds in turns, receiver in the same process\n", rounds)
	var idle, beside latencies
	var rate, busyRate comparison
	if err := b.rounds(ctx, rounds, length, &idle, &rate); err != nil {
		return nil, err
	}
	if err := b.hang(ctx); err != nil {
		return nil, err
	}
	if err := b.rounds(ctx, rounds, length, &beside, &busyRate); err != nil {
		return nil, err
	}
	hang := fmt.Sprintf(", beside %d endpoints that hang", hanging)
	figures := []figure{
		idle.figure("event to endpoint, one at a time, p50"), rate.figure("events to endpoint, as many as it takes", aim{}),
		beside.figure("event to endpoint, one at a time, p50" + hang), busyRate.figure("events to endpoint, as many as it takes"+hang, aim{}),
	}
	for _, f := range figures {
		progress(f)
	}
	return figures, nil
}

// latencies are those of one side, and of the other, round by round.
type latencies struct{ floor, ours [][]time.Duration }

func (l *latencies) figure(what string) figure {
	at := func(v []time.Duration, percent int) float64 {
		return float64(slices.Sorted(slices.Values(v))[len(v)*percent/100].Microseconds()) / 1000
	}
	side := func(rounds [][]time.Duration) string {
		all := slices.Concat(rounds...)
		return fmt.Sprintf("%.1f ms (p99 %.1f)", at(all, 50), at(all, 99))
	}
	f := figure{what: what, floor: side(l.floor), ours: side(l.ours)}
	for i := range l.ours {
		f.ratios = append(f.ratios, at(l.ours[i], 50)/at(l.floor[i], 50))
	}
	return f
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
			idle.floor, idle.ours = append(idle.floor, floorIdle), append(idle.ours, oursIdle)
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
