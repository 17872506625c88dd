package reconcile_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// A large response keeps its memory until it is recorded, so other large responses wait.
func TestLargeResponses_WaitForEachOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ path, field, entry, written, wake string }{
		"of codes": {"/access_codes", "access_codes", `{"access_code_id":"c%d","status":"set","code":"%06[1]d","name":"` + strings.Repeat("n", 500) + `"}`, "access_codes", "update devices set due_at = now(), wake_seq = wake_seq + 1, read_needed = true"},
		"of locks": {"/locks", "locks", `{"lock_id":"l%d","name":"` + strings.Repeat("n", 500) + `"}`, "devices", "update connected_accounts set due_at = now(), wake_seq = wake_seq + 1"},
	} {
		t.Run(name, func(t *testing.T) { // they would wait for each other
			var large, served atomic.Bool
			b := start(t, options{profile: "august", vendor: func(w http.ResponseWriter, r *http.Request) bool {
				if !large.Load() || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, test.path) {
					return false
				}
				fmt.Fprintf(w, `{%q:[`+test.entry, test.field, 0)
				for n := range 2500 {
					fmt.Fprintf(w, ","+test.entry, n+1)
				}
				served.Store(true)
				io.WriteString(w, "]}")
				return true
			}})
			b.until("no work is due", func() (rests bool) {
				b.must(
					b.db.Pool.QueryRow(t.Context(), `select not exists (select from leases where held_until > now()) and not exists (select from devices where due_at <= now())
					and not exists (select from connected_accounts where due_at <= now())`).
						Scan(&rests),
				)
				return rests
			})
			tx, err := b.db.Pool.Begin(t.Context())
			b.must(err)
			defer tx.Rollback(context.WithoutCancel(t.Context()))
			_, err = tx.Exec(t.Context(), "lock table "+test.written+" in share mode")
			b.must(err)
			large.Store(true)
			_, err = b.db.Pool.Exec(t.Context(), test.wake)
			b.must(err)
			b.until("the response is about to be recorded", func() (waits bool) {
				b.must(
					b.db.Pool.QueryRow(t.Context(), "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())").
						Scan(&waits),
				)
				return waits && served.Load()
			})
			if !adaptertest.LargeAnswerWaits(t) {
				t.Error("another response was read meanwhile")
			}
		})
	}
}
