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
	publisherCount = 16 // concurrent transactions that write events
	// measured one at a time in each round.
	idleEvents       = 200
	hangingEndpoints = 200 // hanging endpoints
	queuedDeliveries = 50  // deliveries for each of them
)

// measureWebhooks measures the way of an event from its transaction to its endpoint. The floor is a minimal loop: a row
// for the event, the request, and a row for the attempt.
func measureWebhooks(ctx context.Context, rounds int, length time.Duration) ([]figure, error) {
	b, err := newDeliveryBed(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	fmt.Fprintf(os.Stderr, "webhooks: from the start of an event's transaction to its endpoint; %d alternating "+
		"rounds, receiver in the same process\n", rounds)
	var idle, hangingIdle latencies
	var rate, busyRate comparison
	if err := b.rounds(ctx, rounds, length, &idle, &rate); err != nil {
		return nil, err
	}
	if err := b.hang(ctx); err != nil {
		return nil, err
	}
	if err := b.rounds(ctx, rounds, length, &hangingIdle, &busyRate); err != nil {
		return nil, err
	}
	hang := fmt.Sprintf(", with %d hanging endpoints", hangingEndpoints)
	figures := []figure{
		idle.figure("event to endpoint, one at a time, p50"),
		rate.figure("events to endpoint, as many as it takes", aim{}),
		hangingIdle.figure("event to endpoint, one at a time, p50" + hang),
		busyRate.figure("events to endpoint, as many as it takes"+hang, aim{}),
	}
	for _, f := range figures {
		printFigure(f)
	}
	return figures, nil
}

// latencies are the latencies of both sides, by round.
type latencies struct{ floor, ours [][]time.Duration }

// percentile returns a percentile of durations in milliseconds.
func percentile(v []time.Duration, percent int) float64 {
	return float64(slices.Sorted(slices.Values(v))[len(v)*percent/100].Microseconds()) / 1000
}

func (l *latencies) figure(what string) figure {
	side := func(rounds [][]time.Duration) string {
		all := slices.Concat(rounds...)
		return fmt.Sprintf("%.1f ms (p99 %.1f)", percentile(all, 50), percentile(all, 99))
	}
	f := figure{what: what, floor: side(l.floor), ours: side(l.ours)}
	for i := range l.ours {
		f.ratios = append(f.ratios, percentile(l.ours[i], 50)/percentile(l.floor[i], 50))
	}
	return f
}

// rounds measures both sides alternately, after a warm-up.
func (b *deliveryBed) rounds(
	ctx context.Context,
	rounds int,
	length time.Duration,
	idle *latencies,
	rate *comparison,
) error {
	for i := range rounds + 1 {
		floorIdle, err := b.oneAtATime(ctx, b.floorDelivery)
		if err != nil {
			return err
		}
		oursIdle, err := b.oneAtATime(ctx, b.publish)
		if err != nil {
			return err
		}
		floor, err := b.sustained(ctx, length, b.floorDelivery)
		if err != nil {
			return err
		}
		ours, err := b.sustained(ctx, length, b.publish)
		if err != nil {
			return err
		}
		// a server that has run for a minute has table statistics
		if i == 0 {
			if _, err := b.db.Pool.Exec(ctx, "analyze"); err != nil {
				return err
			}
		} else {
			idle.floor, idle.ours = append(idle.floor, floorIdle), append(idle.ours, oursIdle)
			rate.add(floor, ours)
		}
	}
	return nil
}

func (b *deliveryBed) oneAtATime(
	ctx context.Context,
	publish func(context.Context) error,
) (took []time.Duration, err error) {
	for range idleEvents {
		before := b.receiver.count.Load()
		begin := time.Now()
		if err := publish(ctx); err != nil {
			return nil, err
		}
		at, err := b.receiver.awaitCount(ctx, before+1)
		if err != nil {
			return nil, err
		}
		took = append(took, at.Sub(begin))
		if err := b.untilLogged(ctx); err != nil { // until the server is idle
			return nil, err
		}
	}
	return took, nil
}

// sustained publishes events for length, waits until all are received and logged, and returns the number per second.
func (b *deliveryBed) sustained(
	ctx context.Context,
	length time.Duration,
	publish func(context.Context) error,
) (float64, error) {
	before, begin := b.receiver.count.Load(), time.Now()
	var wg sync.WaitGroup
	counts, failed := make([]int64, publisherCount), make([]error, publisherCount)
	for i := range publisherCount {
		wg.Go(func() {
			for time.Since(begin) < length && failed[i] == nil {
				failed[i] = publish(ctx)
				counts[i]++
			}
		})
	}
	wg.Wait()
	var n int64
	for i := range publisherCount {
		if n += counts[i]; failed[i] != nil {
			return 0, failed[i]
		}
	}
	if _, err := b.receiver.awaitCount(ctx, before+n); err != nil {
		return 0, err
	}
	if err := b.untilLogged(ctx); err != nil {
		return 0, err
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
