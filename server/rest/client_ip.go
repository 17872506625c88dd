package rest

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// Callers counts what is asked of one server, by address: credentials of requests, what else may be guessed, and pages for
// logging in.
type Callers struct{ callers *callers }

// NewCallers counts by l, which Options have, too.
func NewCallers(l Limits) *Callers { return &Callers{newCallers(l)} }

// Guess says how long an address has to wait before something that may be a guess is looked into. 0 is not at all, and told
// is called then, once: whether it was refused. Until that it counts as refused.
func (c *Callers) Guess(address string) (after time.Duration, told func(refused bool)) {
	try := access.NewID().String() // what was guessed is nobody's business here, and each is another one
	if after := c.callers.admit(address, try); after > 0 {
		return after, nil
	}
	return 0, func(refused bool) {
		found := undecided // what is good is not remembered: it may be a person's own password
		if refused {
			found = isBad
		}
		c.callers.tried(address, try, found)
	}
}

// Page takes one request of an address for a page, or says how long it has to wait.
func (c *Callers) Page(address string) (after time.Duration) {
	l := c.callers.limits.PagesPerSecond
	return c.callers.take("page/"+address, rate.Limit(l), pagesRoom*l)
}
