package zigbee2mqtt

import (
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The states of a door are those of zigbee-herdsman-converters (lib/exposes.js, door_state).
func TestDoorState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		states []string
		want   *bool
	}{
		"unknown":         {[]string{`{"state":"LOCK"}`}, nil},
		"open":            {[]string{`{"door_state":"open"}`}, new(true)},
		"closed":          {[]string{`{"door_state":"closed"}`}, new(false)},
		"forced open":     {[]string{`{"door_state":"closed"}`, `{"door_state":"error_forced_open"}`}, new(true)},
		"jammed":          {[]string{`{"door_state":"error_jammed"}`}, nil},
		"undefined later": {[]string{`{"door_state":"closed"}`, `{"door_state":"undefined"}`}, new(false)},
		"nonsense":        {[]string{`{"door_state":{"open":true}}`}, nil},
	} {
		a := told(t, lockListed("0xa", "front door", "V"))
		for _, state := range test.states {
			a.publish("front door", state)
		}
		got := a.device(a.locks["0xa"]).DoorOpen
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: open %v, want %v", name, got, test.want)
		}
	}
}

func TestTampering(t *testing.T) {
	t.Parallel()
	const yes, no = `{"state":"LOCK","tamper":true}`, `{"state":"LOCK","tamper":false}`
	for name, test := range map[string]struct {
		states []string
		want   int
	}{
		"detected":                 {[]string{no, yes}, 1},
		"detected, and repeated":   {[]string{no, yes, yes}, 1},
		"detected twice":           {[]string{no, yes, no, yes}, 2},
		"perhaps long ago":         {[]string{yes, yes}, 0},
		"not detected":             {[]string{no, no}, 0},
		"nonsense is no tampering": {[]string{no, `{"state":"LOCK","tamper":"true"}`}, 0},
	} {
		a := told(t, lockListed("0xa", "front door", "V"))
		for _, state := range test.states {
			a.publish("front door", state)
		}
		n := 0
		for range len(a.hints.Events()) {
			if e := <-a.hints.Events(); e.Kind == adapter.Tampered && e.Device == "0xa" {
				n++
			}
		}
		if n != test.want {
			t.Errorf("%s: %d events, want %d", name, n, test.want)
		}
	}
}

// The power sources are those of zigbee-herdsman (zspec/zcl/definition/consts.js).
func TestModelFacts(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]*bool{
		"":                                    nil,
		"Unknown":                             nil,
		"Battery":                             new(false),
		"Mains (single phase)":                new(true),
		"DC Source":                           new(true),
		"Emergency mains constantly powered":  new(true),
		"Emergency mains and transfer switch": new(true),
	} {
		lock := strings.Replace(lockListed("0xa", "front door", "V"), `"type"`, `"power_source":"`+source+`","type"`, 1)
		a := told(t, lock)
		c := a.device(a.locks["0xa"]).Capabilities
		if (c.DirectPower == nil) != (want == nil) || want != nil && *c.DirectPower != *want || *c.EntryEvents {
			t.Errorf("power from %q: %v; events %v", source, c.DirectPower, *c.EntryEvents)
		}
	}
	reports := strings.Replace(lockListed("0xa", "front door", "V"), `"exposes":[`,
		`"exposes":[{"type":"numeric","property":"action_user","access":1},`, 1)
	a := told(t, reports)
	if !*a.device(a.locks["0xa"]).Capabilities.EntryEvents {
		t.Error("a lock that exposes action_user reports who entered")
	}
}
