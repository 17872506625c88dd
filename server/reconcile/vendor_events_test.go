package reconcile

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Endless resync events cause no more reads than their cost allows, even if a pending listing
// precedes them.
func TestHints_ResyncCost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		asks []bool // resync or listing, alternating
		cost int    // per round
	}{
		"lists":                    {[]bool{false, false}, 1},
		"everything":               {[]bool{true, false, true}, resyncCost},
		"a listing, then a resync": {[]bool{false, true}, 1 + resyncCost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const minutes = 10
				h := &hints{refreshLimit: rate.NewLimiter(rate.Every(refreshInterval), refreshBurst)}
				looks, all := 0, 0
				for begin := time.Now(); ; looks++ {
					for _, resync := range test.asks {
						h.requestRefresh(resync)
					}
					if h.resync {
						all++
					}
					<-h.refreshAt
					if time.Since(begin) > minutes*time.Minute {
						break
					}
					h.refreshAt, h.resync = nil, false
				}
				budget := refreshBurst + int(minutes*time.Minute/refreshInterval)
				if most := budget/test.cost + 1; looks > most || looks < most-2 {
					t.Errorf("%d looks in %d minutes, want about %d", looks, minutes, most)
				}
				if want := test.cost >= resyncCost; (all > 0) != want {
					t.Errorf("%d resyncs", all)
				}
			})
		})
	}
}

// A vendor reports endless lock operations, each of which would become an event for all webhooks.
// Beyond a realistic rate, the server reads the lock states instead.
func TestHints_LockOperationsAreLimited(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := &hints{
		Adapters:       &Adapters{log: slog.New(slog.NewTextHandler(&log, nil))},
		refreshLimit:   rate.NewLimiter(rate.Every(refreshInterval), refreshBurst),
		operationLimit: rate.NewLimiter(operationsPerSecond, 0),
		logLimit:       rate.Sometimes{Interval: time.Hour},
	} // no budget left: recording one would fail
	for range 3 {
		h.handle(
			[]adapter.Event{
				{Kind: adapter.LockOperated, Device: "l1"},
				{Kind: adapter.AccessDenied, Device: "l1"},
				{Kind: adapter.Jammed, Device: "l1"},
				{Kind: adapter.Tampered, Device: "l1"},
			},
		)
	}
	if h.refreshAt == nil || h.resync {
		t.Error("the lock states are not read")
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d log messages", n)
	}
}
