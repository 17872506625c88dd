package rest

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Callers counts requests to a server by client address: requests with credentials, other guessable requests, and
// requests for login pages.
type Callers struct{ callers *callers }

// NewCallers returns counters with the limits l.
func NewCallers(l Limits) *Callers { return &Callers{newCallers(l)} }

// Guess returns how long an address must wait before the server evaluates a possible guess. If after is 0, the caller
// must call told once with the result. Until then, the guess counts as refused.
func (c *Callers) Guess(address string) (after time.Duration, told func(refused bool)) {
	try := domain.NewID().String() // each guess counts separately; its content is not kept
	if after := c.callers.admit(address, try); after > 0 {
		return after, nil
	}
	return 0, func(refused bool) {
		found := undecided // successes are not remembered, because they may be a person's password
		if refused {
			found = isInvalid
		}
		c.callers.recordVerdict(address, try, found)
	}
}

// Page counts a request of an address for a page, or returns how long it must wait.
func (c *Callers) Page(address string) (after time.Duration) {
	l := c.callers.limits.PagesPerSecond
	return c.callers.takeToken("page/"+address, rate.Limit(l), pageBurstSeconds*l)
}
