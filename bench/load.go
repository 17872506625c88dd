package main

import (
	"bytes"
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
	bodies     []string // used alternately
	keyed      bool     // each request has its own Idempotency-Key

	// part is a text in the response to the first body.
	part  string
	times int // number of its occurrences
	// length of a response in bytes, set by verified
	length int
}

// expecting returns t with a text that must occur that often in the response to the first body. A response without all
// rows would only be faster.
func (t target) expecting(part string, times int) target {
	t.part, t.times = part, times
	return t
}

// verified checks a response, and returns t with its length.
func (t target) verified(ctx context.Context) (target, error) {
	if t.part == "" {
		return t, fmt.Errorf("the expected response of %s is not set", t.url)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := ask(ctx, client, t, t.bodies[0])
	if err != nil {
		return t, err
	}
	if n := bytes.Count(answer, []byte(t.part)); n != t.times {
		return t, fmt.Errorf("the response of %s has %d times %s, want %d: %.2000s", t.url, n, t.part, t.times, answer)
	}
	t.length = len(answer)
	return t, nil
}

// checkLength returns an error if the length of a response differs by more than a fifth from that of the verified one.
func (t target) checkLength(answer []byte) error {
	if d := len(answer) - t.length; t.length > 0 && 5*max(d, -d) > t.length {
		return fmt.Errorf("the response of %s has %d bytes, after %d: %.2000s", t.url, len(answer), t.length, answer)
	}
	return nil
}

// comparison has the values of both sides, such as requests per second, and their ratio, by round.
type comparison struct {
	floor, ours, ratio  []float64
	costFloor, costOurs []string // of a request, if requested
}

// add adds a round.
func (c *comparison) add(floor, ours float64) {
	c.floor, c.ours, c.ratio = append(c.floor, floor), append(c.ours, ours), append(c.ratio, ours/floor)
}

func (c comparison) figure(what string, a aim) figure { return c.figureIn("%.0f/s", what, a) }

// figureIn is figure with another format of the values.
func (c comparison) figureIn(format, what string, a aim) figure {
	return figure{
		what:   what,
		floor:  fmt.Sprintf(format, median(c.floor)),
		ours:   fmt.Sprintf(format, median(c.ours)),
		ratios: c.ratio,
		aim:    a,
	}
}

// compare measures both sides alternately, after it has verified a response and warmed up each side.
func (b *bed) compare(ctx context.Context, floor, ours target, o options) (c comparison, err error) {
	if floor, err = floor.verified(ctx); err != nil {
		return c, err
	}
	if ours, err = ours.verified(ctx); err != nil {
		return c, err
	}
	for i := range o.rounds + 1 {
		f, floorCost, err := b.measured(ctx, floor, o)
		if err != nil {
			return c, err
		}
		v, oursCost, err := b.measured(ctx, ours, o)
		if err != nil {
			return c, err
		}
		// background work must not slow down the floor
		if err := b.settled(ctx); err != nil {
			return c, err
		}
		if i > 0 {
			c.add(f, v)
			c.costFloor, c.costOurs = append(c.costFloor, floorCost), append(c.costOurs, oursCost)
		}
	}
	return c, nil
}

// measured is load, with the costs of a request if requested.
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
	time.Sleep(time.Second) // until the database has updated its statistics
	after, err := b.spent(ctx)
	if err != nil {
		return 0, "", err
	}
	return perSecond, after.per(n, before), nil
}

// settled waits until no work on devices is due and all events have fan-out.
func (b *bed) settled(ctx context.Context) error {
	for {
		var rest int
		err := b.pool.QueryRow(
			ctx,
			`select (select count(*) from devices where due_at <= now()) + (select count(*) from events where fanned_out_at is null)
			+ (select count(*) from leases where held_until > now() and key like 'device:%')`,
		).Scan(&rest)
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

// load sends requests for length, and returns the number of complete responses per second.
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
				answer, err := ask(ctx, client, t, t.bodies[int(turn.Add(1))%len(t.bodies)])
				if err == nil {
					err = t.checkLength(answer)
				} else if ctx.Err() != nil {
					// the request was cut off and does not count
					return
				}
				if err != nil {
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

func ask(ctx context.Context, client *http.Client, t target, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+t.token)
	req.Header.Set("Content-Type", "application/json")
	if t.keyed {
		req.Header.Set("Idempotency-Key", uuid.NewString())
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", t.url, res.Status, answer)
	}
	return answer, err
}
