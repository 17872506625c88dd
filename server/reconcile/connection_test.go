package reconcile_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
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
	b := start(t, options{profile: "august", access: access.Options{
		OfflineDebounce: time.Minute,
		Now:             func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	}})
	b.must(b.rec.SetOnline(t.Context(), b.p, b.device, false))
	if got := b.told("device.disconnected"); len(got) != 0 {
		t.Fatalf("immediately: %v", got)
	}
	for minute := range 60 {
		ahead.Store(int64(time.Duration(minute+1) * time.Minute))
		b.must(b.access.Accounts.Hint(t.Context(), b.account, b.lock))
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

// flapping is a manual device whose outages are too short to be announced one by one.
func flapping(t *testing.T) (byHand, *testClock) {
	t.Helper()
	clock := &testClock{at: time.Now().Truncate(time.Second)}
	return hand(t,
		options{profile: "august", access: access.Options{Now: clock.now, OfflineDebounce: 24 * time.Hour}}), clock
}

func (b byHand) goes(online bool) {
	b.Helper()
	if online {
		b.read()
		return
	}
	_, _, err := b.access.Devices.RecordUnreachable(b.Context(), holder{}, b.id(), true, true)
	b.must(err)
}

// loses disconnects and reconnects the device n times at the given interval.
func (b byHand) loses(clock *testClock, times int, apart time.Duration) {
	b.Helper()
	for range times {
		b.goes(false)
		clock.pass(time.Second)
		b.goes(true)
		clock.pass(apart - time.Second)
	}
}

func (b byHand) flaky() []string {
	b.Helper()
	// Without the initial connection.
	return b.told("device.connected", "device.disconnected", "device.connection_became_flaky", "device.connection_stabilized")[1:]
}

func (b byHand) warnings() (codes []string) {
	b.Helper()
	d, err := b.access.Devices.GetDevice(b.Context(), b.p, b.device, "")
	b.must(err)
	for _, w := range d.Warnings() {
		codes = append(codes, w.Code)
	}
	return codes
}

func TestFlapping_IsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 2, time.Minute)
	if got := b.flaky(); len(got) > 0 || b.warnings() != nil {
		t.Fatalf("after two losses: events %v", got)
	}
	b.loses(clock, 7, time.Minute)
	if got := b.flaky(); !slices.Equal(got, []string{"device.connection_became_flaky"}) ||
		!slices.Equal(b.warnings(), []string{"device_has_flaky_connection"}) {
		t.Fatalf("after nine losses: events %v, warnings %v", got, b.warnings())
	}
	clock.pass(8 * time.Minute)
	w := b.look()
	if got := b.flaky(); len(got) != 1 || w.Due == nil || !w.Due.After(clock.now()) ||
		w.Due.After(clock.now().Add(10*time.Minute)) {
		t.Fatalf("after nine minutes: events %v, due at %v", got, w.Due)
	}
	clock.to(*w.Due)
	b.look()
	b.look()
	if got := b.flaky(); !slices.Equal(got,
		[]string{"device.connection_became_flaky", "device.connection_stabilized"}) ||
		b.warnings() != nil {
		t.Fatalf("after ten minutes: events %v, warnings %v", got, b.warnings())
	}
	b.loses(clock, 2, time.Minute)
	if got := b.flaky(); len(got) != 2 {
		t.Errorf("earlier losses count: %v", got)
	}
	b.loses(clock, 1, time.Minute)
	if got := b.flaky(); len(got) != 3 {
		t.Errorf("the second time: events %v", got)
	}
}

func TestFlapping_RareLossesDoNotCount(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 6, 6*time.Minute)
	if got := b.flaky(); len(got) > 0 {
		t.Errorf("events %v", got)
	}
}

// A long outage does not count as stable.
func TestFlapping_DisconnectedIsNotStable(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 2, time.Minute)
	b.goes(false)
	for range 5 { // one outage counts once
		clock.pass(5 * time.Minute)
		b.goes(false)
		b.look()
	}
	if got := b.flaky(); !slices.Equal(got, []string{"device.connection_became_flaky"}) {
		t.Fatalf("events %v", got)
	}
	b.goes(true)
	clock.pass(9 * time.Minute)
	b.look()
	if got := b.flaky(); len(got) != 1 {
		t.Fatalf("after nine minutes online: events %v", got)
	}
	clock.pass(time.Minute)
	b.look()
	if got := b.flaky(); len(got) != 2 {
		t.Errorf("after ten minutes online: events %v", got)
	}
}

func TestFlapping_RemovedDeviceStartsAfresh(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 3, time.Minute)
	b.must(b.access.Devices.RecordRemoved(b.Context(), holder{}, b.id(), false))
	b.look()
	clock.pass(time.Hour)
	b.must(b.access.Devices.RecordDevices(b.Context(), holder{}, b.account, []device.FoundDevice{{
		Ref:          b.lock,
		Name:         "Door",
		Type:         "august_lock",
		Online:       true,
		Capabilities: capability.Set{OnlineCodes: true, ListCodes: true},
	}}))
	b.look()
	b.loses(clock, 2, time.Minute)
	if got := b.flaky(); slices.Contains(got, "device.connection_stabilized") || b.warnings() != nil {
		t.Errorf("events %v, warnings %v", got, b.warnings())
	}
}

// A failed read ends the grace period of an empty list. A failed write does not.
func TestEmptyList_GracePeriodAfterFailure(t *testing.T) {
	t.Parallel()
	for name, unread := range map[string]bool{"of a read": true, "of a write": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			b.on("2580", "k1")
			b.read(found("k1", "2580"), found("k2", "4711"))
			clock.pass(time.Hour)
			b.read()
			_, _, err := b.access.Devices.RecordUnreachable(b.Context(), holder{}, b.id(), false, unread)
			b.must(err)
			clock.pass(time.Minute)
			b.read()
			if kept := len(b.unmanaged()) == 1; kept != unread {
				t.Errorf("the unmanaged code is kept: %v", kept)
			}
		})
	}
}

// Events contain the metadata of their subject.
func TestEvents_IncludeCustomMetadata(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 3, time.Minute)
	_, err := b.db.Pool.Exec(t.Context(), `update devices set custom_metadata = '{"floor": "2", "vip": true}'`)
	b.must(err)
	clock.pass(time.Hour)
	b.look()
	before, after := b.fields(
		b.tales("device.connection_became_flaky")[0],
	), b.fields(
		b.tales("device.connection_stabilized")[0],
	)
	if got, ok := before["device_custom_metadata"].(map[string]any); !ok || len(got) > 0 {
		t.Errorf("without any: %v", before["device_custom_metadata"])
	}
	if got, _ := after["device_custom_metadata"].(map[string]any); got["floor"] != "2" || got["vip"] != true {
		t.Errorf("with some: %v", after["device_custom_metadata"])
	}
	if got, ok := after["connected_account_custom_metadata"].(map[string]any); !ok || len(got) > 0 {
		t.Errorf("of the account: %v", after["connected_account_custom_metadata"])
	}
}
