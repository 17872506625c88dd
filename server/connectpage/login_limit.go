package connectpage

import (
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

// guess calls Guess, if it is set. Attempts are also limited per webview, but a client can create any number of
// webviews.
func (h *handler) guess(r *http.Request) (after time.Duration, told func(refused bool)) {
	if h.Guess == nil {
		return 0, func(bool) {}
	}
	return h.Guess(r)
}

// isGuess reports whether a failed login may have been a guess of a password or an address. Logins that were not
// tried, or that failed for other reasons, are not guesses.
func isGuess(err error) bool {
	if _, refused := errors.AsType[*login.Refusal](err); refused {
		return true
	}
	e, ok := errors.AsType[*domain.Error](err)
	return ok && e.Kind == domain.Conflict && !account.IsTooManyLogins(err)
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// mustWait is the refusal of a login that must wait. The login was not tried, and the entered values stay in the form.
func mustWait(after time.Duration) *login.Refusal {
	return &login.Refusal{
		Message: "There were too many failed logins from your network. Please wait %d seconds, then log in again.",
		Args:    []any{seconds(after)},
	}
}
