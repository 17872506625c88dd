package reconcile_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// limited answers like a vendor with an exceeded rate limit.
func limited(w http.ResponseWriter, after string) bool {
	w.Header().Set("Retry-After", after)
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, `{"error_code":"RATE_LIMITED","message":"too many requests"}`)
	return true
}

// A listing waits as long as the vendor requests.
func TestRetryAfter_Listing(t *testing.T) {
	t.Parallel()
	var ceased atomic.Bool
	var refused atomic.Int32
	b := start(t, options{profile: "august", vendor: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/locks" || !ceased.Load() {
			return false
		}
		defer refused.Add(1)
		return limited(w, "3600")
	}})
	ceased.Store(true)
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("the listing is postponed", func() bool {
		var later bool
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select due_at > now() + interval '30 seconds' from connected_accounts where connected_account_id = $1", b.account).
				Scan(&later),
		)
		return later && refused.Load() > 0
	})
	var wait float64
	b.must(
		b.db.Pool.QueryRow(t.Context(), "select extract(epoch from due_at - now())::float8 from connected_accounts where connected_account_id = $1", b.account).
			Scan(&wait),
	)
	if wait < 3500 || wait > 3700 {
		t.Errorf("next listing after %.0f s", wait)
	}
}

// puts counts the codes put on a lock and the reads of it. The vendor refuses the first put for a
// while.
type puts struct{ made, read atomic.Int32 }

func (p *puts) vendor(after string) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasPrefix(r.URL.Path, "/sandbox/") || !strings.HasSuffix(r.URL.Path, "/access_codes"):
		case r.Method == http.MethodGet:
			p.read.Add(1)
		case p.made.Add(1) == 1:
			return limited(w, after)
		}
		return false
	}
}

// A temporary refusal applies to all codes of a lock. Trying each would cost each an attempt.
func TestRetryAfter_CodesWait(t *testing.T) {
	t.Parallel()
	var vendor puts
	b := start(t, options{profile: "august", vendor: vendor.vendor("3600")})
	b.stopEngine()
	for _, pin := range []string{"2580", "2581", "2582"} {
		b.create(pin)
	}
	b.startEngine()
	b.until("a code is refused", func() bool {
		var attempts int
		b.must(b.db.Pool.QueryRow(t.Context(), "select coalesce(sum(attempts), 0) from access_codes").Scan(&attempts))
		return attempts > 0
	})
	for range 3 { // whatever else wakes the lock
		before := vendor.read.Load()
		b.must(b.access.Accounts.Hint(t.Context(), b.account, b.lock))
		b.until("the lock is read again", func() bool { return vendor.read.Load() > before })
	}
	b.create("2583")
	b.stopEngine()
	if n := vendor.made.Load(); n != 1 {
		t.Errorf("%d codes put during the pause", n)
	}
	var attempts int
	b.must(b.db.Pool.QueryRow(t.Context(), "select sum(attempts) from access_codes").Scan(&attempts))
	if attempts != 1 {
		t.Errorf("%d attempts have failed", attempts)
	}
}

func TestRetryAfter_CodesArePutAfterwards(t *testing.T) {
	t.Parallel()
	var vendor puts
	b := start(t, options{profile: "august", vendor: vendor.vendor("1")})
	b.stopEngine()
	for _, pin := range []string{"2580", "2581", "2582"} {
		b.create(pin)
	}
	began := time.Now()
	b.startEngine()
	b.until("the codes are on the lock",
		func() bool { return b.onLock("2580") && b.onLock("2581") && b.onLock("2582") })
	if took := time.Since(began); took < time.Second || vendor.made.Load() != 4 {
		t.Errorf("after %s, and %d requests", took, vendor.made.Load())
	}
}

// The lock state is polled while the vendor accepts no codes, because a sent command may have
// succeeded.
func TestRetryAfter_LockCommandIsPolled(t *testing.T) {
	t.Parallel()
	var l lost
	var v puts
	bolt, codes := l.at("/actions"), v.vendor("3600")
	b := start(
		t,
		options{
			profile: "august",
			access:  access.Options{LockCommandTimeout: time.Hour},
			vendor: func(w http.ResponseWriter, r *http.Request) bool {
				return bolt(w, r) || codes(w, r)
			},
		},
	)
	b.stopEngine()
	b.create("2580")
	b.create("2581")
	b.startEngine()
	b.until("a code is refused", func() bool {
		var attempts int
		b.must(b.db.Pool.QueryRow(t.Context(), "select coalesce(sum(attempts), 0) from access_codes").Scan(&attempts))
		return attempts > 0
	})
	l.isGivenUp(b, b.door(false))
}
