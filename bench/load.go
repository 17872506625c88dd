package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// target is a request that is repeated.
type target struct {
	url, token string
	bodies     []string // in turns
	keyed      bool     // each request with an Idempotency-Key of its own
}

// comparison is what one side does per second, and the other, round by round.
type comparison struct {
	floor, ours, ratio  []float64
	costFloor, costOurs []string // of a request, where asked for
}

func (c comparison) figure(what string, a aim) figure {
	return figure{what: what, floor: fmt.Sprintf("%.0f/s", median(c.floor)), ours: fmt.Sprintf("%.0f/s", median(c.ours)), ratios: c.ratio, aim: a}
}

// compare measures both in turns, after a warm-up of each.
func (b *bed) compare(ctx context.Context, floor, ours target, o options) (c comparison, err error) {
	for i := range o.rounds + 1 {
		f, floorCost, err := b.measured(ctx, floor, o)
		if err != nil {
			return c, err
		}
		v, oursCost, err := b.measured(ctx, ours, o)
		if err != nil {
			return c, err
		}
		if err := b.settled(ctx); err != nil { // what goes on behind the answers is not to be the floor's
			return c, err
		}
		if i > 0 {
			c.floor, c.ours, c.ratio = append(c.floor, f), append(c.ours, v), append(c.ratio, v/f)
			c.costFloor, c.costOurs = append(c.costFloor, floorCost), append(c.costOurs, oursCost)
		}
	}
	return c, nil
}

// measured is load, with what a request takes where that is asked for.
func (b *bed) measured(ctx context.Context, t target, o options) (perSecond float64, cost string, err error) {
	if !o.costs {
		perSecond, err = load(ctx, t, o.length, o.clients)
		return perSecond, "", err
	}
	before, err := b.spent(ctx)
	if err != nil {
		return 0, "", err
	}
	begin := time.Now()
	if perSecond, err = load(ctx, t, o.length, o.clients); err != nil {
		return 0, "", err
	}
	n := perSecond * time.Since(begin).Seconds()
	if err := b.settled(ctx); err != nil {
		return 0, "", err
	}
	time.Sleep(time.Second) // until the database has told of it
	after, err := b.spent(ctx)
	if err != nil {
		return 0, "", err
	}
	return perSecond, after.per(n, before), nil
}

// settled waits until there is nothing to be done on devices, nor to be told.
func (b *bed) settled(ctx context.Context) error {
	for {
		var rest int
		err := b.pool.QueryRow(ctx, `select (select count(*) from devices where due_at <= now()) + (select count(*) from events where fanned_out_at is null)
			+ (select count(*) from leases where held_until > now() and key like 'device:%')`).Scan(&rest)
		if err != nil || rest == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// load asks for length and says how many answers per second came.
func load(ctx context.Context, t target, length time.Duration, clients int) (float64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var n, turn atomic.Int64
	failed := make(chan error, clients)
	var wg sync.WaitGroup
	begin := time.Now()
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := ask(ctx, client, t, t.bodies[int(turn.Add(1))%len(t.bodies)]); err != nil && ctx.Err() == nil {
					failed <- err
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(n.Load()) / time.Since(begin).Seconds(), nil
	}
}

func ask(ctx context.Context, client *http.Client, t target, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+t.token)
	req.Header.Set("Content-Type", "application/json")
	if t.keyed {
		req.Header.Set("Idempotency-Key", uuid.NewString())
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", t.url, res.Status, answer)
	}
	return err
}
