package connectpage

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// guess is Guess where there is one. What is tried on one webview is counted with that, but anybody can have any number.
func (h *handler) guess(r *http.Request) (after time.Duration, told func(refused bool)) {
	if h.Guess == nil {
		return 0, func(bool) {}
	}
	return h.Guess(r)
}

// isGuess says whether a login that has ended so may have been a guess: of a password, or of what is at an address. One
// that was not tried, or that failed by no fault of the person, was none.
func isGuess(err error) bool {
	if _, refused := errors.AsType[*Refusal](err); refused {
		return true
	}
	e, ok := errors.AsType[*access.Error](err)
	return ok && e.Kind == access.Conflict && !access.IsTooManyLogins(err)
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// tooSoon is for a login that has to wait. It was not tried, and what was entered stands there still.
func tooSoon(after time.Duration) *Refusal {
	unit := "seconds"
	if seconds(after) == 1 {
		unit = "second"
	}
	return &Refusal{Message: fmt.Sprintf("Too many logins have failed from where you are. This one was not tried; wait %d %s, then log in again.", seconds(after), unit)}
}
