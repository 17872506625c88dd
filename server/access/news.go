package access

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"
)

// news is how much there may be to tell of each account: everything that a vendor lists otherwise is a row and an event,
// and one that never lists the same twice is not to fill the database faster than that is told and forgotten again. What
// is beyond is taken in later. It is of this process, as is what it counts.
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

func (n *news) about(account uuid.UUID) *accountNews {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.of[account]
	if t == nil {
		limit := rate.Limit(n.perSecond)
		t = &accountNews{pace: rate.NewLimiter(limit, n.atOnce), turns: rate.NewLimiter(limit, n.share()), hurried: rate.Sometimes{Interval: time.Hour}}
		n.of[account] = t
	}
	return t
}

// share is what one device at most is read again for: ten seconds' worth.
func (n *news) share() int { return max(1, int(10*n.perSecond)) }

// add counts one event.
func (n *news) add(account uuid.UUID, now time.Time) { n.about(account).pace.ReserveN(now, 1) }

// room is how many more there may be at once.
func (n *news) room(account uuid.UUID, now time.Time) int {
	return max(0, int(n.about(account).pace.TokensAt(now)))
}

// later is how long a device has to wait that has so many left to tell of.
func (n *news) later(account uuid.UUID, now time.Time, rest int) time.Duration {
	return max(time.Second, n.about(account).turns.ReserveN(now, min(rest, n.share())).DelayFrom(now))
}

// Owing is how long nothing is to be read of an account, as there has been more to tell of it than there may be.
func (s *Service) Owing(account uuid.UUID) time.Duration {
	owed := -s.news.about(account).pace.TokensAt(s.opt.Now())
	return max(0, time.Duration(owed/s.news.perSecond*float64(time.Second)))
}
