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

// A vendor that never ceases to ask for a look at everything has no more looks than one that pays for each: also where it
// asks for a list first, which is owed already when it asks for all.
func TestLooksAtEverythingArePaidFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		asks []bool // for all devices, in turns
		cost int    // of what comes of them
	}{
		"lists":                     {[]bool{false, false}, 1},
		"everything":                {[]bool{true, false, true}, resyncIs},
		"a list, and then the rest": {[]bool{false, true}, 1 + resyncIs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const minutes = 10
				h := &hints{lists: rate.NewLimiter(rate.Every(listEvery), listsFirst)}
				looks, all := 0, 0
				for begin := time.Now(); ; looks++ {
					for _, resync := range test.asks {
						h.owe(resync)
					}
					if h.resync {
						all++
					}
					<-h.owed
					if time.Since(begin) > minutes*time.Minute {
						break
					}
					h.owed, h.resync = nil, false
				}
				budget := listsFirst + int(minutes*time.Minute/listEvery)
				if most := budget/test.cost + 1; looks > most || looks < most-2 {
					t.Errorf("%d looks in %d minutes, want about %d", looks, minutes, most)
				}
				if want := test.cost >= resyncIs; (all > 0) != want {
					t.Errorf("%d of them at all devices", all)
				}
			})
		})
	}
}

// A vendor tells without an end of what is done at a lock: each would be an event, and told to all who want to know. What is
// beyond what people do is looked at instead.
func TestOfWhatIsDoneAtLocksNoMoreIsToldThanPeopleDo(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := &hints{
		Adapters: &Adapters{log: slog.New(slog.NewTextHandler(&log, nil))},
		lists:    rate.NewLimiter(rate.Every(listEvery), listsFirst),
		doings:   rate.NewLimiter(operated, 0),
		hurried:  rate.Sometimes{Interval: time.Hour},
	} // with room for none: recording one would fail
	for range 3 {
		h.take(
			[]adapter.Event{
				{Kind: adapter.LockOperated, Device: "l1"},
				{Kind: adapter.AccessDenied, Device: "l1"},
				{Kind: adapter.Jammed, Device: "l1"},
			},
		)
	}
	if h.owed == nil || h.resync {
		t.Error("nobody looks where the bolts are")
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}
