package device

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// inventoryLimiter limits the events of each account's inventory. Each change in a vendor's list is a row and an event,
// and a vendor whose lists always change must not fill the database faster than events are delivered and deleted.
// Changes beyond the limit are recorded later. Changes that result from requests do not count. The limit is per
// process.
type inventoryLimiter struct {
	perSecond float64
	atOnce    int
	mu        sync.Mutex
	of        map[uuid.UUID]*accountLimit
}

// accountLimit is the inventory rate limit of one account.
type accountLimit struct {
	// limiter counts the events; it may be in debt.
	limiter *rate.Limiter
	// rereads spreads the rereads of devices with deferred changes, so that the devices share the limit.
	rereads *rate.Limiter
	// warnings limits the warnings about an exceeded limit.
	warnings rate.Sometimes
}

func newInventoryLimiter(perSecond float64, atOnce int) *inventoryLimiter {
	return &inventoryLimiter{perSecond: perSecond, atOnce: atOnce, of: map[uuid.UUID]*accountLimit{}}
}

// account returns the limit of an account. The caller holds n.mu.
func (n *inventoryLimiter) account(account uuid.UUID) *accountLimit {
	a := n.of[account]
	if a == nil {
		limit := rate.Limit(n.perSecond)
		a = &accountLimit{
			limiter:  rate.NewLimiter(limit, n.atOnce),
			rereads:  rate.NewLimiter(limit, n.maxReservation()),
			warnings: rate.Sometimes{Interval: time.Hour},
		}
		n.of[account] = a
	}
	return a
}

// share is the maximum number of events that a device's reread reserves: those of ten seconds.
func (n *inventoryLimiter) maxReservation() int { return max(1, int(10*n.perSecond)) }

// add counts events, even beyond the limit.
func (n *inventoryLimiter) add(account uuid.UUID, now time.Time, events int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pace := n.account(account).limiter; events > 0; events -= n.atOnce {
		pace.ReserveN(now, min(events, n.atOnce))
	}
}

// acquire counts as many of the events as the limit allows, and returns their number.
func (n *inventoryLimiter) acquire(account uuid.UUID, now time.Time, events int) int {
	if events == 0 {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	pace := n.account(account).limiter
	if events = max(0, min(events, int(pace.TokensAt(now)))); events > 0 {
		pace.ReserveN(now, events)
	}
	return events
}

// rereadDelay returns how long a device with deferred changes must wait for its reread. It calls warn at most hourly.
func (n *inventoryLimiter) rereadDelay(account uuid.UUID, now time.Time, deferred int, warn func()) time.Duration {
	n.mu.Lock()
	a := n.account(account)
	wait := max(
		time.Second,
		n.excessDelay(a, now),
		a.rereads.ReserveN(now, min(deferred, n.maxReservation())).DelayFrom(now),
	)
	n.mu.Unlock()
	a.warnings.Do(warn)
	return wait
}

// excessDelay returns how long the limit is exceeded.
func (n *inventoryLimiter) excessDelay(a *accountLimit, now time.Time) time.Duration {
	return max(0, time.Duration(-a.limiter.TokensAt(now)/n.perSecond*float64(time.Second)))
}

// forget drops the limit of an account that has ended.
func (n *inventoryLimiter) forget(account uuid.UUID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, account)
}

// InventoryDelay returns how long the server must not list an account because its inventory rate limit is exceeded; usually
// 0.
func (s *Service) InventoryDelay(account uuid.UUID) time.Duration {
	s.inventoryLimit.mu.Lock()
	defer s.inventoryLimit.mu.Unlock()
	if a := s.inventoryLimit.of[account]; a != nil {
		return s.inventoryLimit.excessDelay(a, s.opt.Now())
	}
	return 0
}

// listed is the context key of WithInventoryLimit.
type listed struct{}

// WithInventoryLimit returns a context whose events count against the inventory rate limit of their account.
func WithInventoryLimit(ctx context.Context) context.Context {
	return context.WithValue(ctx, listed{}, true)
}

// count counts the events of a WithInventoryLimit context against the limit of an account, after the commit.
func (s *Service) count(ctx context.Context, tx store.Tx, account uuid.UUID, events int) {
	if ctx.Value(listed{}) != nil && account != uuid.Nil {
		tx.AfterCommit(func() { s.inventoryLimit.add(account, s.opt.Now(), events) })
	}
}
