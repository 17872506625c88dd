package zwavejs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

func TestBrief(t *testing.T) {
	t.Parallel()
	if got := brief("3.10.2", 100); got != "3.10.2" {
		t.Errorf("got %q", got)
	}
	if got := brief(strings.Repeat("1", 15<<20), 100); got != strings.Repeat("1", 100) {
		t.Errorf("%d bytes", len(got))
	}
	if got := brief(strings.Repeat("é", 200), 101); len(got) != 100 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, %q", len(got), got)
	}
}

// Error names of a gateway are logged, sent in events, and stored.
func TestErrorsQuoteOnlyWords(t *testing.T) {
	t.Parallel()
	for _, code := range []string{strings.Repeat("a", 1<<20), "\x00", "864209 is taken", "<b>", ""} {
		for _, f := range []failure{{ErrorCode: code}, {ErrorCode: "zwave_error", ZWaveCode: 7, ZWaveName: code}} {
			got := f.error("node.ping").Error()
			if len(got) > 200 || strings.ContainsAny(got, "\x00<") || strings.Contains(got, "864209") {
				t.Errorf("%.40q: %.300q", code, got)
			}
		}
	}
	if got := (failure{
		ErrorCode: "zwave_error", ZWaveCode: 204,
		ZWaveName: "Controller_CallbackNOK",
	}).error("node.ping").Error(); got == "" {
		t.Error("the message is empty")
	}
}

// A gateway may send any number of events while a read is unanswered. Two changes per slot are stored during a read.
func TestLastChangeDuringReadCounts(t *testing.T) {
	t.Parallel()
	var m memory
	m.beginRead(0)
	occupied, empty, pin, other := true, false, "864209", "135790"
	for range 100 {
		for slot := 1; slot <= 250; slot++ {
			m.applyChange(change{slot: slot, occupied: &empty})
			m.applyChange(change{slot: slot, pin: &other})
			m.applyChange(change{slot: slot, occupied: &occupied})
			m.applyChange(change{slot: slot, pin: &pin})
		}
	}
	if len(m.heard) > 2*250 {
		t.Errorf("%d changes are stored", len(m.heard))
	}
	for slot := 1; slot <= 250; slot++ {
		m.storeSlot(slot, entry{pin: pin}, true)
	}
	m.applyChange(change{slot: 7, pin: &other})
	m.finishRead(0, true)
	if m.allUncertain || len(m.uncertain) != 1 || !m.uncertain[7] {
		t.Errorf("uncertain: all %v, %v", m.allUncertain, m.uncertain)
	}
}

func TestInvalidPINsAreIgnored(t *testing.T) {
	t.Parallel()
	long, _ := json.Marshal(strings.Repeat("1", maxPINSize+1))
	for _, c := range []struct {
		data, want string
		ok         bool
	}{
		{`"864209"`, "864209", true},
		{`""`, "", true},
		{string(long), "", false},
		{`7`, "", false},
		{`{"data":[1]}`, "", false},
		{`"` + strings.Repeat("1", 1<<20) + `"`, "", false},
	} {
		if got, ok := pinIn(json.RawMessage(c.data)); ok != c.ok || ok && got != c.want {
			t.Errorf("%.20s: %d bytes, %v", c.data, len(got), ok)
		}
	}
	var v wireValue
	for slot, want := range map[int]bool{0: false, 1: true, maxSlots: true, maxSlots + 1: false} {
		if err := json.Unmarshal(fmt.Appendf(nil,
			`{"commandClass":99,"endpoint":0,"property":"userCode","propertyKey":%d,"newValue":"864209"}`, slot),
			&v); err != nil {
			t.Fatal(err)
		}
		if _, ok := v.change(); ok != want {
			t.Errorf("slot %d: %v", slot, ok)
		}
	}
}

func TestUserBeyondSlotsChangesNothing(t *testing.T) {
	t.Parallel()
	a := &Adapter{hints: adapter.NewEventQueue()}
	defer a.hints.Close()
	n := &node{}
	n.traits.Store(&traits{commandClasses: map[int]int{ccUserCode: 1}})
	for user, want := range map[int]bool{maxSlots + 1: false, 0: true} {
		a.handleNotification(n, &wireEvent{Args: fmt.Appendf(nil, `{"type":6,"event":%d,"parameters":{"userId":%d}}`,
			codeAdded, user)})
		if n.codes.allUncertain != want {
			t.Errorf("user %d: all uncertain: %v", user, n.codes.allUncertain)
		}
		n.codes = memory{}
	}
}

// A gateway may invent locks that are full.
func TestCodesPerNetworkAreLimited(t *testing.T) {
	t.Parallel()
	a := &Adapter{hints: adapter.NewEventQueue(), nodes: map[int]*node{}}
	defer a.hints.Close()
	add := func(id, codes int) *node {
		n := &node{}
		n.traits.Store(&traits{ready: true, commandClasses: map[int]int{ccUserCode: 1}})
		for slot := 1; slot <= codes; slot++ {
			n.codes.storeSlot(slot, entry{pin: "864209"}, true)
		}
		a.nodes[id] = n
		return n
	}
	for id := range maxCodes/maxSlots - 1 {
		add(id, maxSlots)
	}
	last := add(1000, maxSlots)
	last.codes.markAllUncertain()
	next := add(1001, 0)
	next.codes.markAllUncertain()
	if err := a.refresh(t.Context(), nil, next); adapter.ClassOf(err) != adapter.Transient ||
		!strings.Contains(err.Error(), "codes") {
		t.Errorf("another lock: %v", err)
	}
	if err := a.refresh(t.Context(), nil, last); err != nil { // it has no slots to read
		t.Errorf("one of those that hold them: %v", err)
	}
}
