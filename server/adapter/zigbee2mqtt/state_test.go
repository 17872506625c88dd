package zigbee2mqtt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// stateOf is the state of a lock with PINs in its first slots, each of which starts with the digit, and other fields.
func stateOf(slots, digit int, fields string) string {
	users := make([]string, slots)
	for n := range slots {
		users[n] = fmt.Sprintf(`"%d":{"status":"enabled","pin_code":"%d%07d"}`, n, digit, n)
	}
	return `{"users":{` + strings.Join(users, ",") + `}` + fields + `}`
}

func (a *Adapter) publish(name, state string) { a.receive("z/"+name, []byte(state), false) }

func TestStoredStateIsLimited(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60_000)
	var fields strings.Builder
	for n := range 400 {
		fmt.Fprintf(&fields, `,"field %d":{"value":"%.400s"}`, n, long)
	}
	for name, c := range map[string]struct {
		slots, most int
		fields      string
	}{
		"all slots":     {1000, 200_000, `,"deviceaccess_limits":{"numOfPinUsersSupported":1000}`},
		"a usual one":   {31, 10_000, `,"state":"LOCK","battery":77,"linkquality":100,"last_seen":"2026-11-25T17:00:02+00:00"`},
		"many fields":   {0, 10_000, fields.String()},
		"long ones":     {0, 3000, `,"state":"` + long + `","action":"` + long + `","action_source_name":"` + long + `","last_seen":"` + long + `"`},
		"a long status": {0, 3000, `,"users":{"1":{"status":"` + long + `","pin_code":"` + long + `"}}`},
		"a long PIN": {0, 3000, `,"users":{"1":{"status":"enabled","pin_code":"` + strings.Repeat("1",
			60_000) + `"}}`},
	} {
		a := told(t, lockListed("0xa", "front door", "V"))
		a.publish("front door", stateOf(c.slots, 1, c.fields))
		a.publish("front door", stateOf(c.slots, 2, c.fields)) // as if all slots were read
		l := a.locks["0xa"]
		if l.lastState == nil || len(l.read) < min(c.slots-1, 29) {
			t.Errorf("%s: the message is ignored: %d slots", name, len(l.read))
		}
		if size := sizeOf(l); size > c.most {
			t.Errorf("%s: %d bytes are kept", name, size)
		}
	}
}

func TestStateWithTooManyFieldsIsRejected(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{1: true, maxFields: true, maxFields + 1: false, 20_000: false} {
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"%d":%[1]d`, i)
		}
		if _, ok := readState([]byte("{" + strings.Join(fields, ",") + "}")); ok != want {
			t.Errorf("%d fields: it is read: %v", n, ok)
		}
	}
}

// Otherwise the locks of a network could have half a million slots together.
func TestStoredSlotsAreLimited(t *testing.T) {
	t.Parallel()
	var locks []string
	for n := range 80 {
		locks = append(locks, lockListed(fmt.Sprintf("0xa%d", n), fmt.Sprintf("lock %d", n), "V"))
	}
	a := told(t, locks...)
	var log bytes.Buffer
	a.log = slog.New(slog.NewTextHandler(&log, nil))
	for n := range 80 {
		a.publish(fmt.Sprintf("lock %d", n), stateOf(1000, 1, `,"deviceaccess_limits":{"numOfPinUsersSupported":1000}`))
		a.publish(fmt.Sprintf("lock %d", n), stateOf(1000, 2, ""))
	}
	last, read := 0, 0
	for _, l := range a.locks {
		if len(l.lastState.Slots) > 0 {
			last++
		}
		read += len(l.read)
	}
	if want := maxStoredSlots / 999; last != want || read != want*999 {
		t.Errorf("the last messages of %d locks, and %d slots", last, read)
	}
	if size := sizeOf(&a.locks); size > 8<<20 {
		t.Errorf("%d bytes are kept", size)
	}
	if n := strings.Count(log.String(), "more slots than the server can store"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	a.list(locks[:40]...) // the order of the locks is random
	a.list(lockListed("0xb", "new", "V"))
	a.publish("new", stateOf(1000, 1, ""))
	if len(a.locks["0xb"].lastState.Slots) == 0 {
		t.Error("removed locks free no space")
	}
}

func TestInvalidSlotsAreIgnored(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("1", maxPINSize)
	for text, want := range map[string]slot{
		`"7":{"status":"enabled","pin_code":"4711"}`:                          {enabled, "4711"},
		`"7":{"status":"disabled","pin_code":4711}`:                           {disabled, "4711"},
		`"7":{"status":"enabled","pin_code":"` + digits + `"}`:                {enabled, digits},
		`"7":{"status":"enabled","pin_code":"1` + digits + `"}`:               {enabled, ""},
		`"7":{"status":"enabled","pin_code":"****"}`:                          {enabled, ""},
		`"7":{"status":"enabled","pin_code":{"a":1}}`:                         {enabled, ""},
		`"7":{"status":"enabled"}`:                                            {enabled, ""},
		`"7":{"status":"available","pin_code":"4711"}`:                        {available, ""},
		`"7":{"status":"not_supported_255","pin_code":"4711"}`:                {"not_supported_255", ""},
		`"7":{"status":"","pin_code":"4711"}`:                                 {},
		`"7":null`:                                                            {},
		`"07":{"status":"enabled","pin_code":"4711"}`:                         {},
		`"0":{"status":"enabled"},"1000":{"status":"enabled"},"x":{},"-7":{}`: {},
	} {
		w, ok := readState([]byte(`{"users":{` + text + `}}`))
		if !ok {
			t.Errorf("%s is not read", text)
			continue
		}
		for n := range 1001 {
			got, known := w.slot(n, true)
			if n != 7 && known || n == 7 && (got != want || known != (want.Status != "")) {
				t.Errorf("%s: slot %d is %+v, %v", text, n, got, known)
			}
		}
		if hidden, _ := w.slot(7, false); hidden.PIN != "" || hidden.Status != want.Status {
			t.Errorf("%s: hidden it is %+v", text, hidden)
		}
	}
	long, ok := readState([]byte(`{"users":{"7":{"status":"` + strings.Repeat("é", 1000) + `"}}}`))
	if s, _ := long.slot(7, true); !ok || s.Status == "" || len(s.Status) > 20 || !utf8.ValidString(s.Status) {
		t.Errorf("a long status: %q", s.Status)
	}
	pin := strings.Repeat("1", maxPINSize+1)
	f := frame{getPINCode, append([]byte{7, 0, 1, 0, byte(len(pin))}, pin...)}
	if s, ok := f.slot(7, true); !ok || s.Status != enabled || s.PIN != "" {
		t.Errorf("in a frame: %d bytes of a PIN, %v", len(s.PIN), ok)
	}
}

func TestReportsOther(t *testing.T) {
	t.Parallel()
	before, _ := readState(
		[]byte(`{"state":"LOCK","battery":77,"a":{"b":[1]},"action":"lock","action_user":null,"users":{}}`),
	)
	for text, want := range map[string]bool{
		// the action occurs once
		`{"state":"LOCK","battery":77,"a":{"b":[1]},"users":{}}`:                                     false,
		`{"state":"LOCK","battery":77,"users":{"1":{"status":"enabled"}}}`:                           false,
		`{"battery":77,"state":"LOCK","last_seen":1,"linkquality":2,"elapsed":3,"action_user":null}`: false,
		`{"state":"UNLOCK","battery":77}`:                                                            true,
		`{"state":"LOCK","battery":78}`:                                                              true,
		`{"state":"LOCK","battery":77,"a":{"b":[2]}}`:                                                true,
		`{"state":"LOCK","b":77}`:                                                                    true,
		`{"state":"LOCK","battery":77,"action":"lock"}`:                                              true,
	} {
		w, ok := readState([]byte(text))
		if !ok || w.reportsOther(before) != want || !w.reportsOther(nil) {
			t.Errorf("%s: read %v, other changes: %v", text, ok, !want)
		}
	}
}

// An operation has the same identifier in all servers.
func TestOperationID(t *testing.T) {
	t.Parallel()
	l := newLock("0xa")
	for _, seen := range []string{`1764090002000`, `"2026-11-25T17:00:02+00:00"`} {
		sum := sha256.Sum256([]byte("0xalock" + seen))
		w, _ := readState([]byte(`{"action":"lock","last_seen":` + seen + `}`))
		if got := operationID(l, w); got != hex.EncodeToString(sum[:8]) {
			t.Errorf("%s: %s", seen, got)
		}
	}
	long, _ := json.Marshal(strings.Repeat("1", 1000))
	for _, text := range []string{`{"action":"lock"}`, `{"action":"lock","last_seen":` + string(long) + `}`} {
		if w, ok := readState([]byte(text)); !ok || operationID(l, w) != "" {
			t.Errorf("%.50s: it has an identifier", text)
		}
	}
}

func TestHalfwayBoltIsStuck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"lock_state":"not_fully_locked"}`: true,
		`{"lock_state":"locked"}`:           false, `{"lock_state":7}`: false, `{}`: false,
	} {
		a := told(t, lockListed("0xa", "front door", "V"))
		a.heardOf()
		a.publish("front door", text)
		if a.locks["0xa"].jammed != want || slices.Contains(a.heardOf(), adapter.Jammed) != want {
			t.Errorf("%s: jammed %v", text, a.locks["0xa"].jammed)
		}
	}
}

// heardOf returns the kinds of the events that were sent.
func (a *Adapter) heardOf() (kinds []adapter.EventKind) {
	for {
		select {
		case e := <-a.hints.Events():
			kinds = append(kinds, e.Kind)
		default:
			return kinds
		}
	}
}
