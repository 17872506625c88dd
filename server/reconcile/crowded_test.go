package reconcile_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// crowding makes responses for a path wait too long for memory once it is on.
type crowding struct {
	path  string
	on    atomic.Bool
	times atomic.Int64
}

func (c *crowding) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.on.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, c.path) {
		c.times.Add(1)
		return adaptertest.Crowded().Transport.RoundTrip(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A read that failed for lack of memory is retried soon and does not count as a vendor failure.
func TestMemoryShortage_ReadIsRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ path, wake, state string }{
		"codes": {"/access_codes", "update devices set due_at = now(), wake_seq = wake_seq + 1, read_needed = true",
			"select failures > 0 or not online, due_at is not null and due_at between now() and now() + interval '5 s' and read_needed from devices"},
		"locks": {"/locks", "update connected_accounts set due_at = now(), wake_seq = wake_seq + 1",
			"select error_code is not null, due_at is not null and due_at between now() and now() + interval '5 s' from connected_accounts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &crowding{path: test.path}
			b := start(t, options{profile: "august", http: &http.Client{Transport: c}})
			b.until("no work is due", func() (rests bool) {
				b.must(
					b.db.Pool.QueryRow(t.Context(), `select not exists (select from leases where held_until > now()) and not exists (select from devices where due_at <= now())
					and not exists (select from connected_accounts where due_at <= now())`).
						Scan(&rests),
				)
				return rests
			})
			c.on.Store(true)
			_, err := b.db.Pool.Exec(t.Context(), test.wake)
			b.must(err)
			var silent bool
			b.until("the work is postponed", func() (put bool) {
				b.must(b.db.Pool.QueryRow(t.Context(), test.state).Scan(&silent, &put))
				return put && c.times.Load() > 0
			})
			if silent {
				t.Error("the shortage counts as a vendor failure")
			}
		})
	}
}
