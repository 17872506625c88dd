package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

func countOf(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// If the last of several changes is refused, the state that the device confirmed last counts.
func TestRefusedChange_LastConfirmedStateCounts(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	from := clock.now().Add(50 * time.Hour)
	c := b.between("2580", from, from.Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2581"})
	w = b.work(c)
	b.begin(w)
	b.update(device.CodeChange{ID: c.ID.String(), PIN: "2582"})
	b.end(w, outcome{Ref: "k1", Confirmed: true})
	b.refuse(c)
	clock.to(from)
	b.look()
	told := b.tales("access_code.set_on_device", "access_code.code_changed")
	if len(told) != 2 || told[0].Type != "access_code.code_changed" {
		t.Fatalf("events %v", b.events(c.ID))
	}
	change, opens := b.fields(told[0]), b.fields(told[1])
	if change["from"].(map[string]any)["code"] != "2580" || change["to"].(map[string]any)["code"] != "2581" ||
		opens["code"] != "2581" {
		t.Error("the event has another PIN than the device")
	}
}

// refuse makes the next write of a code fail permanently.
func (b byHand) refuse(c device.Code) {
	b.Helper()
	w := b.work(c)
	b.begin(w)
	b.end(w, outcome{Failure: &lockstate.Failure{Class: lockstate.FailedInvalid, Message: "not such a PIN"}})
}
