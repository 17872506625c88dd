package zwavejs_test

import (
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	lab "github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// then runs functions after the tests, before goroutines are counted.
type then struct {
	goleak.TestingM
	do func()
}

func (m then) Run() int {
	code := m.TestingM.Run()
	m.do()
	return code
}

// TestMain runs all tests concurrently, because most of them wait for a lock that another test has leased.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "1000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(then{m, lab.StopShared})
}

// zone is the time zone of the lab's locks.
const zone = "America/New_York"

// within is the maximum duration of any step on a busy machine.
var within = testenv.Timeout(testenv.WaitTimeout)

// house is one lock, and an adapter that reaches it through a relay.
type house struct {
	*lab.Lock
	relay   *relay
	adapter *zwavejs.Adapter
	device  adapter.DeviceRef
}

func newHouse(t *testing.T, l *lab.Lock, url string) *house {
	t.Helper()
	h := &house{Lock: l, relay: newRelay(t, url)}
	h.open(t)
	return h
}

// sharedHouse returns a lock of the shared gateway.
func sharedHouse(t *testing.T, profile lab.Profile) *house {
	t.Helper()
	g := lab.Shared(t)
	return newHouse(t, g.Lease(t, profile), g.URL)
}

// open returns a new adapter.
func (h *house) open(t *testing.T) {
	t.Helper()
	a, err := zwavejs.New(zwavejs.Config{URL: h.relay.url(), TimeZone: zone})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	h.adapter = a
	devices, err := a.Devices(t.Context())
	if err != nil {
		t.Fatalf("Devices: %v", err)
	}
	for _, d := range devices {
		var home, node int
		if _, err := fmt.Sscanf(string(d.Ref), "%x/%d", &home, &node); err == nil && node == h.ID {
			h.device = d.Ref
		}
	}
	if h.device == "" {
		t.Fatalf("lock %d is not among %d devices", h.ID, len(devices))
	}
}

func ref(slot int) adapter.CodeRef { return adapter.CodeRef(strconv.Itoa(slot)) }

func slot(t testing.TB, code adapter.CodeRef) int {
	t.Helper()
	n, err := strconv.Atoi(string(code))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (h *house) bed() adaptertest.Bed {
	return adaptertest.Bed{
		Adapter: h.adapter,
		Device:  h.device,
		Timeout: within,
		Memory: func(t testing.TB) []adaptertest.OnDevice {
			state := h.State(t)
			var codes []adaptertest.OnDevice
			for _, slot := range state.InUse() {
				codes = append(codes, onDevice(t, slot, state.Codes[slot]))
			}
			return codes
		},
		SetOnline: h.SetOnline,
		AddForeign: func(t testing.TB, _, pin string) adapter.CodeRef {
			slot := h.FreeSlot(t)
			h.Program(t, slot, pin)
			return ref(slot)
		},
		ChangeForeign: func(t testing.TB, code adapter.CodeRef, pin string) { h.Program(t, slot(t, code), pin) },
		DeleteForeign: func(t testing.TB, code adapter.CodeRef) { h.Program(t, slot(t, code), "") },
		Enter:         h.Enter,
		EnterWrong:    h.Enter,
		LockByHand:    func(t testing.TB) { h.ByHand(t, true) },
		Jam:           func(t testing.TB) { h.Fault(t, lab.Faults{Jam: true}) },
		Fill:          h.fill,
		Remove: func(t testing.TB) {
			h.relay.inject(
				t,
				fmt.Sprintf(
					`{"type":"event","event":{"source":"controller","event":"node removed","node":{"nodeId":%d},"reason":0}}`,
					h.ID,
				),
			)
			until(t, "it is processed", func() bool {
				_, err := h.adapter.Device(t.Context(), h.device)
				return adapter.ClassOf(err) == adapter.NotFound && err != nil
			})
		},
		Revoke: func(testing.TB) {
			h.relay.set(func(r *relay) { r.refuse = http.StatusUnauthorized })
			h.relay.disconnect()
		},
		DropNext:   func(t testing.TB) { h.Fault(t, lab.Faults{Drop: 1}) },
		BreakNext:  func(t testing.TB) { h.Fault(t, lab.Faults{Lose: true}) },
		FailNext:   h.fail,
		CutNext:    func(testing.TB) { h.relay.set(func(r *relay) { r.cutNext = true }) },
		Heal:       h.heal,
		Disconnect: func(testing.TB) { h.relay.disconnect() },
		Stall:      func(testing.TB) { sync.OnceFunc(func() { close(h.relay.stalled) })() },
		Stop:       func(testing.TB) { h.relay.stop() },
	}
}

// fill occupies all slots without a report of the lock.
func (h *house) fill(t testing.TB) {
	codes := h.State(t).Codes
	for slot := 1; slot <= lab.Slots; slot++ {
		if _, taken := codes[slot]; !taken {
			h.ProgramSilently(t, slot, filler(slot))
		}
	}
}

func filler(slot int) string { return strconv.Itoa(770100 + slot) }

// fail makes calls fail with the class: the gateway rejects them, the lock is full, or the connection is blocked.
func (h *house) fail(t testing.TB, class adapter.Class) {
	switch class {
	case adapter.Full:
		h.fill(t)
	case adapter.AuthRevoked:
		h.relay.set(func(r *relay) { r.refuse = http.StatusUnauthorized })
		h.relay.disconnect()
		until(t, "the credentials are rejected", func() bool {
			_, err := h.adapter.Devices(t.Context())
			return err != nil && adapter.ClassOf(err) == adapter.AuthRevoked
		})
	default:
		h.relay.set(func(r *relay) { r.fail = class })
	}
}

// heal ends the effects of fail and CutNext.
func (h *house) heal(t testing.TB) {
	h.relay.set(func(r *relay) { r.cutNext, r.fail, r.refuse = false, "", 0 })
	left := 0
	for slot, code := range h.State(t).Codes {
		if code.PIN == filler(slot) {
			h.Program(t, slot, "")
		} else {
			left++
		}
	}
	until(t, "the lock shows what is left on it", func() bool {
		codes, err := h.adapter.Codes(t.Context(), h.device, true)
		return err == nil && len(codes.Codes) <= left
	})
}

func onDevice(t testing.TB, slot int, c lab.Code) adaptertest.OnDevice {
	t.Helper()
	on := adaptertest.OnDevice{Ref: ref(slot), PIN: c.PIN, Name: c.Name}
	if s := c.Schedule; s != nil {
		local, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		at := func(which string) *time.Time {
			at := time.Date(2000+s[which+"Year"], time.Month(s[which+"Month"]), s[which+"Day"], s[which+"Hour"],
				s[which+"Minute"], 0, 0, local)
			return &at
		}
		on.StartsAt, on.EndsAt = at("start"), at("stop")
	}
	return on
}

// TestConformance runs the suite for each kind of lock.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, profile := range []lab.Profile{lab.Plain, lab.OneLength, lab.Supervised, lab.Users} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, func(t *testing.T) adaptertest.Bed { return sharedHouse(t, profile).bed() })
		})
	}
}

// TestConformanceMasked runs the suite for a lock that has returned asterisks instead of a PIN.
func TestConformanceMasked(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, func(t *testing.T) adaptertest.Bed {
		h := sharedHouse(t, lab.Masked)
		h.Program(t, lab.Slots, "864208")
		until(t, "the lock is read", func() bool {
			_, err := h.adapter.Codes(t.Context(), h.device, true)
			return err == nil
		})
		return h.bed()
	})
}

// TestConformanceOldServer runs the suite for a server without endpoint.access_control.
func TestConformanceOldServer(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, func(t *testing.T) adaptertest.Bed {
		g := lab.Shared(t)
		h := &house{Lock: g.Lease(t, lab.Plain), relay: newRelay(t, g.URL)}
		h.relay.schema = 40
		h.open(t)
		return h.bed()
	})
}
