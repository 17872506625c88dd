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
)

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
			var codes []access.Code
			for _, pin := range []string{"2580", "1470", "3690"} {
				codes = append(codes, byHand{b}.between(pin, c.now().Add(-time.Hour), c.now().Add(24*time.Hour)))
			}
			b.startEngine()
			for _, code := range codes {
				b.until("the code is set", func() bool { return b.code(code.ID).Status == access.StatusSet })
			}
			if late.Load() > 0 || written.Load() != 3 {
				t.Errorf("%d writes, %d with a start in the past", written.Load(), late.Load())
			}
		})
	}
}
