package reconcile_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
)

// settings counts the auto-lock settings sent to a lock. answer decides each response.
func settings(n *atomic.Int32, answer func()) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/auto_lock") {
			n.Add(1)
			answer()
		}
		return false
	}
}

func (b *bed) autoLock(delay float64) device.Attempt {
	b.Helper()
	a, err := b.access.Devices.ConfigureAutoLock(b.Context(), b.p, b.device, true, &delay)
	b.must(err)
	return a
}

// Fractions of a second have no exact binary representation.
func TestAutoLock_FractionalDelay(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "yale"})
	for _, delay := range []float64{1.5, 4.35, 8.2, 16.1} {
		b.succeeded(b.autoLock(delay))
		d, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
		b.must(err)
		if d.AutoLock == nil || d.AutoLock.Delay != delay {
			t.Errorf("delay %v: the device shows %+v", delay, d.AutoLock)
		}
	}
}

func TestAutoLock_PrecedesCodes(t *testing.T) {
	t.Parallel()
	var sent, codes atomic.Int32
	began, asked := make(chan struct{}), make(chan struct{})
	count := settings(&sent, func() {})
	var b *bed
	b = start(t, options{profile: "yale", vendor: func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/access_codes") && sent.Load() == 0 {
			if codes.Add(1) == 1 {
				close(began)
				b.gate(asked)
			}
		}
		return count(w, r)
	}})
	b.stopEngine()
	for _, pin := range []string{"2580", "2581", "2582"} {
		b.create(pin)
	}
	b.startEngine()
	b.gate(began)
	a := b.autoLock(5)
	close(asked)
	b.succeeded(a)
	if n := codes.Load(); n != 1 {
		t.Errorf("%d codes were put before the setting", n)
	}
	b.until("the codes are on the lock",
		func() bool { return b.onLock("2580") && b.onLock("2581") && b.onLock("2582") })
}

// Only a served command gives codes a turn before the next one. A pending setting does not.
func TestCommand_PrecedesCodesWhileSettingIsPending(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	var armed atomic.Bool
	var ask sync.Once
	var b *bed
	order := make(chan string, 100)
	lose := settings(&sent, func() { panic(http.ErrAbortHandler) })
	b = start(
		t,
		options{
			profile: "yale",
			access:  access.Options{LockCommandTimeout: time.Minute},
			vendor: func(w http.ResponseWriter, r *http.Request) bool {
				what := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
				switch {
				case r.Method == http.MethodPost && (what == "actions" || what == "access_codes"):
					order <- what
				case r.Method == http.MethodGet && what == "access_codes" && armed.Load():
					ask.Do(func() { b.knock(false) })
				}
				return lose(w, r)
			},
		},
	)
	b.autoLock(5)
	b.until("the setting is sent", func() bool { return sent.Load() > 0 })
	b.stopEngine()
	_, code := b.create("2580")
	armed.Store(true)
	b.startEngine()
	b.succeeded(code)
	if first := <-order; first != "actions" {
		t.Errorf("%s came first", first)
	}
}

// While a setting is pending, the next one waits and does not delay codes.
func TestAutoLock_PendingSettingDelaysNoCodes(t *testing.T) {
	t.Parallel()
	var sent, reads atomic.Int32
	lose := settings(&sent, func() { panic(http.ErrAbortHandler) })
	b := start(
		t,
		options{
			profile: "yale",
			access:  access.Options{LockCommandTimeout: time.Minute},
			vendor: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/access_codes") {
					reads.Add(1)
				}
				return lose(w, r)
			},
		},
	)
	first, second := b.autoLock(5), b.autoLock(6)
	b.until("the setting is sent", func() bool { return sent.Load() > 0 })
	_, a := b.create("2580")
	b.succeeded(a)
	if b.attempt(first).Status != device.Pending || b.attempt(second).Status != device.Pending || sent.Load() != 1 {
		t.Errorf("%d settings were sent", sent.Load())
	}
}

// A holder that has lost its lease sends nothing.
func TestAutoLock_LostLease(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "yale"})
	a := b.autoLock(5)
	old := b.look().AutoLock
	if old == nil || old.Attempt != a.ID {
		t.Fatal("no setting is due")
	}
	still, err := b.access.Devices.RecordLockCommandStarted(
		t.Context(),
		holder{},
		b.id(),
		lockstate.Command{Attempt: old.Attempt},
	)
	b.must(err)
	if !still {
		t.Error("the setting is not due")
	}
	if still, err = b.access.Devices.RecordLockCommandStarted(
		t.Context(),
		holder{},
		b.id(),
		lockstate.Command{Attempt: old.Attempt},
	); err != nil ||
		still {
		t.Errorf("the setting is due again (%v)", err)
	}
}
