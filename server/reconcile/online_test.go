package reconcile_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

func TestShortOutage_IsNotAnnounced(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{OfflineDebounce: time.Hour}})
	for range 3 {
		b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
		b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	}
	b.set() // the device has been read since
	if got := b.told("device.connected", "device.disconnected"); !slices.Equal(got, []string{"device.connected"}) {
		t.Errorf("events %v", got)
	}
}

func TestLongOutage_IsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	b := start(t, options{profile: "august", access: access.Options{OfflineDebounce: time.Minute,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}})
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	if got := b.told("device.disconnected"); len(got) != 0 {
		t.Fatalf("immediately: %v", got)
	}
	for minute := range 60 {
		ahead.Store(int64(time.Duration(minute+1) * time.Minute))
		b.must(b.access.Hint(t.Context(), b.account, b.lock))
		if minute == 1 {
			b.until("the disconnect is announced", func() bool { return len(b.told("device.disconnected")) == 1 })
		}
	}
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, true))
	want := []string{"device.connected", "device.disconnected", "device.connected"}
	if got := b.told("device.connected", "device.disconnected"); !slices.Equal(got, want) {
		t.Errorf("events %v", got)
	}
}
