package rest

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// Guesses counts what is guessed from each address at one server: credentials of requests, and what else is tried by it.
type Guesses struct{ callers *callers }

// NewGuesses counts by l, which Options have, too.
func NewGuesses(l Limits) *Guesses { return &Guesses{newCallers(l)} }

// Try says how long an address has to wait before something that may be a guess is looked into. 0 is not at all, and told
// is called then, once: whether it was refused. Until that it counts as refused.
func (g *Guesses) Try(address string) (after time.Duration, told func(refused bool)) {
	try := access.NewID().String() // what was guessed is nobody's business here, and each is another one
	if after := g.callers.admit(address, try); after > 0 {
		return after, nil
	}
	return 0, func(refused bool) {
		found := undecided // what is good is not remembered: it may be a person's own password
		if refused {
			found = isBad
		}
		g.callers.tried(address, try, found)
	}
}
