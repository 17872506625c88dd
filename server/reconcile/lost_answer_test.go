package reconcile_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// lost is a vendor that loses what is sent to a lock, and says how often that was, and how often the lock was looked at since.
type lost struct{ sent, looks atomic.Int32 }

// at loses what is sent to the paths that end so.
func (l *lost) at(path string) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, path):
			l.sent.Add(1)
			panic(http.ErrAbortHandler)
		case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/locks/") && strings.Count(r.URL.Path, "/") == 2 && l.sent.Load() > 0:
			l.looks.Add(1)
		}
		return false
	}
}

// isGivenUp waits until the lock has been looked at some times in vain, and lets the time of the attempt be up.
func (l *lost) isGivenUp(b *bed, a access.Attempt) {
	b.Helper()
	b.until("the lock is looked at again", func() bool { return l.looks.Load() >= 3 })
	if got := b.attempt(a); got.Status != access.Pending {
		b.Errorf("%s before its time: %s", got.Status, got.ErrorType)
	}
	_, err := b.db.Pool.Exec(b.Context(), "update action_attempts set deadline_at = now() - interval '1 s' where action_attempt_id = $1", a.ID)
	b.must(err)
	if a = b.ended(a); a.Status != access.Failed || a.ErrorType != "action_attempt_expired" || l.sent.Load() != 1 {
		b.Errorf("%s %s after %d commands", a.Status, a.ErrorType, l.sent.Load())
	}
}

func TestCommandWhoseAnswerIsLostIsNotSentAgain(t *testing.T) {
	t.Parallel()
	var l lost
	b := start(t, options{profile: "august", access: access.Options{BoltPatience: time.Hour}, vendor: l.at("/actions")})
	l.isGivenUp(b, b.door(false))
}

func TestAutoLockWhoseAnswerIsLostIsSentOnce(t *testing.T) {
	t.Parallel()
	var l lost
	b := start(t, options{profile: "yale", access: access.Options{BoltPatience: time.Hour}, vendor: l.at("/auto_lock")})
	l.isGivenUp(b, b.autoLock(5))
}
