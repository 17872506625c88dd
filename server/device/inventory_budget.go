package device

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// inventoryBudget limits the events of each account's inventory. Each change in a vendor's list is a row and an event,
// and a vendor whose lists always change must not fill the database faster than events are delivered and deleted.
// Changes beyond the budget are recorded later. Changes that result from requests do not count. The budget is per
// process.
type inventoryBudget struct {
	perSecond float64
	atOnce    int
	mu        sync.Mutex
	of        map[uuid.UUID]*accountNews
}

// accountNews is the inventory rate limit of one account.
type accountNews struct {
	// pace counts the events; it may be in debt.
	pace *rate.Limiter
	// turns spreads the rereads of devices with deferred changes, so that the devices share the budget.
	turns *rate.Limiter
	// hurried limits the warnings about an exceeded budget.
	hurried rate.Sometimes
}

func newInventoryBudget(perSecond float64, atOnce int) *inventoryBudget {
	return &inventoryBudget{perSecond: perSecond, atOnce: atOnce, of: map[uuid.UUID]*accountNews{}}
}

// account returns the budget of an account. The caller holds n.mu.
func (n *inventoryBudget) account(account uuid.UUID) *accountNews {
	a := n.of[account]
	if a == nil {
		limit := rate.Limit(n.perSecond)
		a = &accountNews{
			pace:    rate.NewLimiter(limit, n.atOnce),
			turns:   rate.NewLimiter(limit, n.share()),
			hurried: rate.Sometimes{Interval: time.Hour},
		}
		n.of[account] = a
	}
	return a
}

// share is the maximum number of events that a device's reread reserves: those of ten seconds.
func (n *inventoryBudget) share() int { return max(1, int(10*n.perSecond)) }

// add counts events, even beyond the budget.
func (n *inventoryBudget) add(account uuid.UUID, now time.Time, events int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pace := n.account(account).pace; events > 0; events -= n.atOnce {
		pace.ReserveN(now, min(events, n.atOnce))
	}
}

// acquire counts as many of the events as the budget allows, and returns their number.
func (n *inventoryBudget) acquire(account uuid.UUID, now time.Time, events int) int {
	if events == 0 {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	pace := n.account(account).pace
	if events = max(0, min(events, int(pace.TokensAt(now)))); events > 0 {
		pace.ReserveN(now, events)
	}
	return events
}

// rereadDelay returns how long a device with deferred changes must wait for its reread. It calls warn at most hourly.
func (n *inventoryBudget) rereadDelay(account uuid.UUID, now time.Time, deferred int, warn func()) time.Duration {
	n.mu.Lock()
	a := n.account(account)
	wait := max(time.Second, n.owing(a, now), a.turns.ReserveN(now, min(deferred, n.share())).DelayFrom(now))
	n.mu.Unlock()
	a.hurried.Do(warn)
	return wait
}

// owing returns how long the budget is exceeded.
func (n *inventoryBudget) owing(a *accountNews, now time.Time) time.Duration {
	return max(0, time.Duration(-a.pace.TokensAt(now)/n.perSecond*float64(time.Second)))
}

// forget drops the budget of an account that has ended.
func (n *inventoryBudget) forget(account uuid.UUID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, account)
}

// InventoryDebt returns how long the server must not list an account because its inventory rate limit is exceeded; usually
// 0.
func (s *Service) InventoryDebt(account uuid.UUID) time.Duration {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if a := s.budget.of[account]; a != nil {
		return s.budget.owing(a, s.opt.Now())
	}
	return 0
}

// listed is the context key of WithInventoryBudget.
type listed struct{}

// WithInventoryBudget returns a context whose events count against the inventory rate limit of their account.
func WithInventoryBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, listed{}, true)
}

// count counts the events of a WithInventoryBudget context against the budget of an account, after the commit.
func (s *Service) count(ctx context.Context, tx store.Tx, account uuid.UUID, events int) {
	if ctx.Value(listed{}) != nil && account != uuid.Nil {
		tx.AfterCommit(func() { s.budget.add(account, s.opt.Now(), events) })
	}
}
