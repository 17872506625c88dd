package chaos_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	healthEvery  = 200 * time.Millisecond
	healthWithin = time.Second
)

// balancer is a round-robin load balancer. It removes a server when /health reports a problem once, or does not answer
// twice. Servers that do not answer are still used if there is no other, since the machine may be slow.
type balancer struct {
	*gate
	asking sync.WaitGroup

	mu      sync.Mutex
	servers []*behind
	next    int
}

// behind is a server behind a balancer.
type behind struct {
	addr string
	is   atomic.Int32
}

// States of a server behind a balancer.
const (
	unwell int32 = iota // or never healthy yet
	silent
	well
)

var errNobody = errors.New("no server is well")

func newBalancer(t testing.TB) *balancer {
	t.Helper()
	b := &balancer{}
	b.gate = newGate(t, func(ctx context.Context) (net.Conn, error) {
		s := b.choose()
		if s == nil {
			return nil, errNobody
		}
		return to(s.addr)(ctx)
	})
	t.Cleanup(b.asking.Wait)
	return b
}

// add adds a server to the balancer, which checks its health until the test ends.
func (b *balancer) add(ctx context.Context, addr string) {
	s := &behind{addr: addr}
	b.mu.Lock()
	b.servers = append(b.servers, s)
	b.mu.Unlock()
	b.asking.Go(func() { s.watch(ctx) })
}

func (s *behind) watch(ctx context.Context) {
	client := http.Client{Timeout: healthWithin, Transport: &http.Transport{DisableKeepAlives: true}}
	unanswered := 0
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/health", nil)
		if err != nil {
			panic(err)
		}
		if res, err := client.Do(req); err == nil {
			res.Body.Close()
			unanswered = 0
			s.is.Store(unwell)
			if res.StatusCode == http.StatusOK {
				s.is.Store(well)
			}
		} else if unanswered++; unanswered == 2 {
			s.is.CompareAndSwap(well, silent)
		}
		select {
		case <-ctx.Done():
		case <-time.After(healthEvery):
		}
	}
}

func (b *balancer) choose() *behind {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, is := range []int32{well, silent} {
		for range b.servers {
			b.next++
			if s := b.servers[b.next%len(b.servers)]; s.is.Load() == is {
				return s
			}
		}
	}
	return nil
}

// has reports whether the balancer sends requests to a server.
func (b *balancer) has(addr string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.servers {
		if s.addr == addr {
			return s.is.Load() == well
		}
	}
	return false
}
