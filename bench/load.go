package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// target is a request that is repeated.
type target struct {
	url, token, body string
	keyed            bool // each request with an Idempotency-Key of its own
}

// comparison is what one side does per second, and the other.
type comparison struct{ floor, ours, ratio []float64 }

func (c comparison) String() string {
	return fmt.Sprintf("floor %6.0f/s   ours %6.0f/s   ratio %.2f (%.2f to %.2f)",
		median(c.floor), median(c.ours), median(c.ratio), slices.Min(c.ratio), slices.Max(c.ratio))
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// compare measures both in turns, after a warm-up of each.
func compare(ctx context.Context, floor, ours target, rounds int, length time.Duration, clients int) (c comparison, err error) {
	for i := range rounds + 1 {
		f, err := load(ctx, floor, length, clients)
		if err != nil {
			return c, err
		}
		o, err := load(ctx, ours, length, clients)
		if err != nil {
			return c, err
		}
		if i > 0 {
			c.floor, c.ours, c.ratio = append(c.floor, f), append(c.ours, o), append(c.ratio, o/f)
		}
	}
	return c, nil
}

// load asks for length and says how many answers per second came.
func load(ctx context.Context, t target, length time.Duration, clients int) (float64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var n atomic.Int64
	failed := make(chan error, clients)
	var wg sync.WaitGroup
	begin := time.Now()
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := ask(ctx, client, t); err != nil && ctx.Err() == nil {
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

func ask(ctx context.Context, client *http.Client, t target) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, strings.NewReader(t.body))
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
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", t.url, res.Status, body)
	}
	return err
}
