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

// A lock that takes no start that is past is given the time of the write as that of a code that has begun. A list of codes takes minutes
// to write: the time when it was looked at is past by then.
func TestStartThatIsPastIsThatOfTheWrite(t *testing.T) {
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
							t.Errorf("it is asked %s (%v)", r.URL, err)
						}
						r.Body = io.NopCloser(bytes.NewReader(body))
						if written.Add(1); asked.StartsAt.Before(c.now().Add(-time.Minute)) {
							late.Add(1)
						}
						c.ahead.Add(int64(5 * time.Minute)) // so long the write takes
						return false
					},
				},
			)
			b.stopEngine() // all are seen in one look
			var codes []access.Code
			for _, pin := range []string{"2580", "1470", "3690"} {
				codes = append(codes, byHand{b}.between(pin, c.now().Add(-time.Hour), c.now().Add(24*time.Hour)))
			}
			b.startEngine()
			for _, code := range codes {
				b.until("the code is set", func() bool { return b.code(code.ID).Status == access.StatusSet })
			}
			if late.Load() > 0 || written.Load() != 3 {
				t.Errorf("of %d writes %d had a start that was past", written.Load(), late.Load())
			}
		})
	}
}
