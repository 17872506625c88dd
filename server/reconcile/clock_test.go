package reconcile_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

// testClock is a clock that the test sets.
type testClock struct{ at time.Time }

func (c *testClock) now() time.Time { return c.at }

func (c *testClock) pass(d time.Duration) { c.at = c.at.Add(d) }

func (c *testClock) to(t time.Time) {
	if t.After(c.at) {
		c.at = t
	}
}

// The database's clock decides when an attempt expires. A server whose clock is behind, such as a
// suspended machine, sends no command that has expired. A server whose clock is ahead does not
// expire a new one.
func TestAttempts_ExpireByDatabaseClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -10 * time.Minute, "ahead": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(
				t,
				options{
					profile: "august",
					access:  access.Options{Now: func() time.Time { return time.Now().Add(off) }},
				},
			)
			a := b.door(false)
			w := b.look()
			if w.Command == nil {
				t.Fatalf("a new attempt: %+v", b.attempt(a))
			}
			if until := w.Due.Sub(time.Now().Add(off)); until > time.Minute {
				t.Errorf("next look in %s", until)
			}
			_, err := b.db.Pool.Exec(t.Context(),
				"update action_attempts set deadline_at = now() - interval '1 minute' where action_attempt_id = $1",
				a.ID)
			b.must(err)
			still, err := b.access.Devices.RecordLockCommandStarted(t.Context(), holder{}, b.id(), *w.Command)
			b.must(err)
			if still {
				t.Error("an expired command is planned")
			}
			if b.look(); b.attempt(a).Status != device.Failed {
				t.Errorf("afterwards: %+v", b.attempt(a))
			}
		})
	}
}

// If a lock rejects a start in the past, a code that has begun gets the time of the write as its
// start. Writing many codes takes minutes, so the time of the look is in the past by then.
func TestPastStart_IsTimeOfWrite(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"kwikset", "igloohome"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			var c clock
			var written, late atomic.Int32
			b := start(
				t,
				options{
					profile: profile,
					access:  access.Options{Now: c.now},
					vendor: func(_ http.ResponseWriter, r *http.Request) bool {
						if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/access_codes") {
							return false
						}
						var asked struct {
							StartsAt time.Time `json:"starts_at"`
						}
						body, err := io.ReadAll(r.Body)
						if err != nil || json.Unmarshal(body, &asked) != nil {
							t.Errorf("request %s (%v)", r.URL, err)
						}
						r.Body = io.NopCloser(bytes.NewReader(body))
						if written.Add(1); asked.StartsAt.Before(c.now().Add(-time.Minute)) {
							late.Add(1)
						}
						c.ahead.Add(int64(5 * time.Minute)) // the duration of the write
						return false
					},
				},
			)
			b.stopEngine() // one look sees all codes
			var codes []device.Code
			for _, pin := range []string{"2580", "1470", "3690"} {
				codes = append(codes, byHand{b}.between(pin, c.now().Add(-time.Hour), c.now().Add(24*time.Hour)))
			}
			b.startEngine()
			for _, code := range codes {
				b.until("the code is set", func() bool { return b.code(code.ID).Status == device.StatusSet })
			}
			if late.Load() > 0 || written.Load() != 3 {
				t.Errorf("%d writes, %d with a start in the past", written.Load(), late.Load())
			}
		})
	}
}
