package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// flapping is a device by hand whose losses are all too short to be told by themselves.
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
	_, _, err := b.access.RecordUnreachable(b.Context(), holder{}, b.id(), true, true)
	b.must(err)
}

// loses has the connection lost and back so often, the losses that far apart.
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
	return b.told("device.connected", "device.disconnected", "device.connection_became_flaky", "device.connection_stabilized")[1:] // it was connected at first
}

func (b byHand) warnings() (codes []string) {
	b.Helper()
	d, err := b.access.GetDevice(b.Context(), b.p, b.device, "")
	b.must(err)
	for _, w := range d.Warnings() {
		codes = append(codes, w.Code)
	}
	return codes
}

func TestConnectionThatIsLostAgainAndAgainIsToldOnceAndItsEndToo(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 2, time.Minute)
	if got := b.flaky(); len(got) > 0 || b.warnings() != nil {
		t.Fatalf("after two losses it is told %v", got)
	}
	b.loses(clock, 7, time.Minute)
	if got := b.flaky(); !slices.Equal(got, []string{"device.connection_became_flaky"}) ||
		!slices.Equal(b.warnings(), []string{"device_has_flaky_connection"}) {
		t.Fatalf("after nine it is told %v, it warns of %v", got, b.warnings())
	}
	clock.pass(8 * time.Minute)
	w := b.look()
	if got := b.flaky(); len(got) != 1 || w.Due == nil || !w.Due.After(clock.now()) ||
		w.Due.After(clock.now().Add(10*time.Minute)) {
		t.Fatalf("after nine minutes it is told %v, and due at %v", got, w.Due)
	}
	clock.to(*w.Due)
	b.look()
	b.look()
	if got := b.flaky(); !slices.Equal(got,
		[]string{"device.connection_became_flaky", "device.connection_stabilized"}) ||
		b.warnings() != nil {
		t.Fatalf("after ten it is told %v, it warns of %v", got, b.warnings())
	}
	b.loses(clock, 2, time.Minute)
	if got := b.flaky(); len(got) != 2 {
		t.Errorf("what was before counts: %v", got)
	}
	b.loses(clock, 1, time.Minute)
	if got := b.flaky(); len(got) != 3 {
		t.Errorf("the second time it is told %v", got)
	}
}

func TestLossesThatAreFarApartMakeNoConnectionFlaky(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 6, 6*time.Minute)
	if got := b.flaky(); len(got) > 0 {
		t.Errorf("told %v", got)
	}
}

// To be away for good is not to be steady.
func TestFlakyConnectionThatIsGoneHasNotStabilized(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 2, time.Minute)
	b.goes(false)
	for range 5 { // while it cannot be reached, that is one loss
		clock.pass(5 * time.Minute)
		b.goes(false)
		b.look()
	}
	if got := b.flaky(); !slices.Equal(got, []string{"device.connection_became_flaky"}) {
		t.Fatalf("told %v", got)
	}
	b.goes(true)
	clock.pass(9 * time.Minute)
	b.look()
	if got := b.flaky(); len(got) != 1 {
		t.Fatalf("back for nine minutes, it is told %v", got)
	}
	clock.pass(time.Minute)
	b.look()
	if got := b.flaky(); len(got) != 2 {
		t.Errorf("back for ten minutes, it is told %v", got)
	}
}

func TestDeviceThatWasRemovedBeginsAnew(t *testing.T) {
	t.Parallel()
	b, clock := flapping(t)
	b.loses(clock, 3, time.Minute)
	b.must(b.access.RecordRemoved(b.Context(), holder{}, b.id(), false))
	b.look()
	clock.pass(time.Hour)
	b.must(b.access.RecordDevices(b.Context(), holder{}, b.account, []access.FoundDevice{{
		Ref:          b.lock,
		Name:         "Door",
		Type:         "august_lock",
		Online:       true,
		Capabilities: access.Capabilities{OnlineCodes: true, ListCodes: true},
	}}))
	b.look()
	b.loses(clock, 2, time.Minute)
	if got := b.flaky(); slices.Contains(got, "device.connection_stabilized") || b.warnings() != nil {
		t.Errorf("told %v, it warns of %v", got, b.warnings())
	}
}

// Events carry the metadata of what they are about.
func TestEventsCarryTheMetadataOfTheirDevice(t *testing.T) {
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
