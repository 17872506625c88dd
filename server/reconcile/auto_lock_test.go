package reconcile_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// settings counts what is sent about the automatic of a lock, and lets answer decide about each.
func settings(n *atomic.Int32, answer func()) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/auto_lock") {
			n.Add(1)
			answer()
		}
		return false
	}
}

func (b *bed) autoLock(delay float64) access.Attempt {
	b.Helper()
	a, err := b.access.ConfigureAutoLock(b.Context(), b.p, b.device, true, &delay)
	b.must(err)
	return a
}

// Seconds are no whole number of nanoseconds in binary.
func TestAutoLockTakesDelaysWithFractions(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "yale"})
	for _, delay := range []float64{1.5, 4.35, 8.2, 16.1} {
		b.succeeded(b.autoLock(delay))
		d, err := b.access.GetDevice(t.Context(), b.p, b.device, "")
		b.must(err)
		if d.AutoLock == nil || d.AutoLock.Delay != delay {
			t.Errorf("of %v the device shows %+v", delay, d.AutoLock)
		}
	}
}

func TestAutoLockGoesAheadOfCodes(t *testing.T) {
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
		t.Errorf("%d codes were put first", n)
	}
	b.until("the codes are on the lock",
		func() bool { return b.onLock("2580") && b.onLock("2581") && b.onLock("2582") })
}

// Only who was served at the door gives the codes a turn before the next: a setting that is looked for serves nobody.
func TestWhoComesWhileASettingIsAwaitedGoesAheadOfCodes(t *testing.T) {
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
			access:  access.Options{BoltPatience: time.Minute},
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
	b.until("it is sent", func() bool { return sent.Load() > 0 })
	b.stopEngine()
	_, code := b.create("2580")
	armed.Store(true)
	b.startEngine()
	b.succeeded(code)
	if first := <-order; first != "actions" {
		t.Errorf("%s come first", first)
	}
}

// While the first of several settings has still to show, the next one waits, and holds up nobody.
func TestCodesArePutWhileASettingIsAwaited(t *testing.T) {
	t.Parallel()
	var sent, reads atomic.Int32
	lose := settings(&sent, func() { panic(http.ErrAbortHandler) })
	b := start(
		t,
		options{
			profile: "yale",
			access:  access.Options{BoltPatience: time.Minute},
			vendor: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/access_codes") {
					reads.Add(1)
				}
				return lose(w, r)
			},
		},
	)
	first, second := b.autoLock(5), b.autoLock(6)
	b.until("it is sent", func() bool { return sent.Load() > 0 })
	_, a := b.create("2580")
	b.succeeded(a)
	if b.attempt(first).Status != access.Pending || b.attempt(second).Status != access.Pending || sent.Load() != 1 {
		t.Errorf("%d settings were sent", sent.Load())
	}
}

// Somebody who was asleep while others have worked has nothing to say any more.
func TestAutoLockIsSentByNobodyWhoHasLostTheDevice(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "yale"})
	a := b.autoLock(5)
	old := b.look().AutoLock
	if old == nil || old.Attempt != a.ID {
		t.Fatal("nothing is to be sent")
	}
	still, err := b.access.RecordBoltStarted(t.Context(), holder{}, b.id(), access.BoltWork{Attempt: old.Attempt})
	b.must(err)
	if !still {
		t.Error("it is not to be sent")
	}
	if still, err = b.access.RecordBoltStarted(t.Context(), holder{}, b.id(), access.BoltWork{Attempt: old.Attempt}); err != nil ||
		still {
		t.Errorf("it is to be sent again (%v)", err)
	}
}
