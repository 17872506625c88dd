package access

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// news is how much there may be to tell of each account's lists: everything that a vendor lists otherwise is a row and an
// event, and one that never lists the same twice is not to fill the database faster than that is told and forgotten again.
// What is beyond is taken in later. What is asked for by requests, or comes of it, does not count. All of it is of this
// process.
type news struct {
	perSecond float64
	atOnce    int
	mu        sync.Mutex
	of        map[uuid.UUID]*accountNews
}

type accountNews struct {
	pace    *rate.Limiter // what has been told; it may owe
	turns   *rate.Limiter // when devices that had to leave something are read again, so that they share what there is
	hurried rate.Sometimes
}

func newNews(perSecond float64, atOnce int) *news {
	return &news{perSecond: perSecond, atOnce: atOnce, of: map[uuid.UUID]*accountNews{}}
}

// about is what is known of an account; with n.mu held.
func (n *news) about(account uuid.UUID) *accountNews {
	a := n.of[account]
	if a == nil {
		limit := rate.Limit(n.perSecond)
		a = &accountNews{pace: rate.NewLimiter(limit, n.atOnce), turns: rate.NewLimiter(limit, n.share()), hurried: rate.Sometimes{Interval: time.Hour}}
		n.of[account] = a
	}
	return a
}

// share is what one device at most is read again for: ten seconds' worth.
func (n *news) share() int { return max(1, int(10*n.perSecond)) }

// add counts so many events.
func (n *news) add(account uuid.UUID, now time.Time, events int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pace := n.about(account).pace; events > 0; events -= n.atOnce {
		pace.ReserveN(now, min(events, n.atOnce))
	}
}

// take counts as many of so many events as there is room for.
func (n *news) take(account uuid.UUID, now time.Time, events int) int {
	if events == 0 {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	pace := n.about(account).pace
	if events = max(0, min(events, int(pace.TokensAt(now)))); events > 0 {
		pace.ReserveN(now, events)
	}
	return events
}

// later is how long a device has to wait that has so many left to tell of, and calls first once in a while.
func (n *news) later(account uuid.UUID, now time.Time, rest int, first func()) time.Duration {
	n.mu.Lock()
	a := n.about(account)
	wait := max(time.Second, n.owing(a, now), a.turns.ReserveN(now, min(rest, n.share())).DelayFrom(now))
	n.mu.Unlock()
	a.hurried.Do(first)
	return wait
}

// owing is how long there is no room.
func (n *news) owing(a *accountNews, now time.Time) time.Duration {
	return max(0, time.Duration(-a.pace.TokensAt(now)/n.perSecond*float64(time.Second)))
}

// forget is for accounts that have ended.
func (n *news) forget(account uuid.UUID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, account)
}

// Owing is how long an account is not to be listed, as there has been more to tell of its lists than there may be: mostly 0.
func (s *Service) Owing(account uuid.UUID) time.Duration {
	s.news.mu.Lock()
	defer s.news.mu.Unlock()
	if a := s.news.of[account]; a != nil {
		return s.news.owing(a, s.opt.Now())
	}
	return 0
}

type listed struct{}

// Listed has the events that are written with the context count as what a vendor lists.
func Listed(ctx context.Context) context.Context { return context.WithValue(ctx, listed{}, true) }

// count counts what is told of an account's lists, once it is.
func (s *Service) count(ctx context.Context, tx store.Tx, account uuid.UUID, events int) {
	if ctx.Value(listed{}) != nil && account != uuid.Nil {
		tx.Then(func() { s.news.add(account, s.opt.Now(), events) })
	}
}
