package zigbee2mqtt

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// toldOf counts the reported operations of each lock.
func (a *Adapter) toldOf() map[adapter.DeviceRef]int {
	n := map[adapter.DeviceRef]int{}
	for {
		select {
		case e := <-a.hints.Events():
			if slices.Contains([]adapter.EventKind{adapter.LockOperated, adapter.AccessDenied, adapter.Jammed},
				e.Kind) {
				n[e.Device]++
			}
		default:
			return n
		}
	}
}

// Operations are stored and delivered to webhooks one by one.
func TestOperationsAreRateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := told(t, lockListed("0xa", "front door", "V"), lockListed("0xb", "back door", "V"))
		a.log = slog.New(slog.NewTextHandler(&log, nil))
		operate := func(name string, times int) (told map[adapter.DeviceRef]int) {
			told = map[adapter.DeviceRef]int{}
			for n := range times {
				a.publish(name, fmt.Sprintf(`{"action":%q,"last_seen":%d}`,
					[]string{"lock", "unlock", "unlock_failure_invalid_pin_or_id"}[n%3], n))
				for ref, n := range a.toldOf() {
					told[ref] += n
				}
			}
			return told
		}
		if told := operate("front door", 10_000); told["0xa"] != 100 {
			t.Errorf("of 10,000 at the same time, %d are reported", told["0xa"])
		}
		if told := operate("back door", 1); told["0xb"] != 1 {
			t.Errorf("of another lock, %d are reported", told["0xb"])
		}
		time.Sleep(2 * time.Second)
		if told := operate("front door", 100); told["0xa"] != 10 {
			t.Errorf("after 2 s, %d are reported", told["0xa"])
		}
		if n := strings.Count(log.String(), "operations"); n != 1 {
			t.Errorf("it is logged %d times: %s", n, log.String())
		}
		a.toldOf()
		a.publish("front door", `{"lock_state":"not_fully_locked"}`)
		if told := a.toldOf(); !a.locks["0xa"].jammed || told["0xa"] != 0 {
			t.Errorf("jammed bolt: %v, reported %d times", a.locks["0xa"].jammed, told["0xa"])
		}
	})
}
