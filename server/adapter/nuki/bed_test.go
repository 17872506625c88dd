package nuki_test

import (
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki/nukitest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformance runs the suite over the fake, which judges both sides by contract.yaml.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]nukitest.Options{
		"at once": {},
		// The list lags behind writes, and shows operations on their way. Pushes arrive twice.
		"troubled": {ListLag: 2, BusyReads: 1, RepeatPushes: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, func(t *testing.T) adaptertest.Bed { return newBed(t, options).bed() })
		})
	}
}

// quick are intervals for tests.
func quick() nuki.Timing {
	return nuki.Timing{
		Poll:      40 * time.Millisecond,
		PollCodes: 40 * time.Millisecond,
		Shared:    time.Nanosecond,
		ReadBack:  []time.Duration{0, time.Millisecond, time.Millisecond},
		Resend:    time.Second,
		Busy:      time.Millisecond,
	}
}

// bed is an account with one lock, and an adapter for it.
type bed struct {
	cloud   *nukitest.Server
	lock    *nukitest.Lock
	adapter *nuki.Adapter
	device  adapter.DeviceRef
}

func newBed(t *testing.T, o nukitest.Options) *bed {
	t.Helper()
	return newTimedBed(t, o, quick())
}

func newTimedBed(t *testing.T, o nukitest.Options, timing nuki.Timing) *bed {
	t.Helper()
	cloud := nukitest.Start(t, o)
	b := &bed{cloud: cloud, lock: cloud.Lock(), device: deviceRef(cloud.Lock())}
	b.adapter = nuki.New(nuki.Config{
		BaseURL: cloud.URL,
		Token:   nukitest.Token,
		HTTP:    vendorhttp.New(adapter.Env{}),
		Secrets: &adaptertest.Secrets{},
		Timing:  timing,
	})
	t.Cleanup(func() { _ = b.adapter.Close() })
	b.adapter.Listen()
	if e := <-b.adapter.Events(); e.Kind != adapter.Resync { // later events come from the vendor
		t.Fatalf("the first event is %+v", e)
	}
	return b
}

func deviceRef(l *nukitest.Lock) adapter.DeviceRef {
	return adapter.DeviceRef(strconv.FormatInt(l.ID, 10))
}

func (b *bed) bed() adaptertest.Bed {
	return adaptertest.Bed{
		Adapter: b.adapter,
		Device:  b.device,
		Memory: func(testing.TB) (out []adaptertest.OnDevice) {
			for _, c := range b.lock.Codes() {
				out = append(out, adaptertest.OnDevice{
					Ref:      adapter.CodeRef(c.ID),
					PIN:      c.PIN,
					Name:     c.Name,
					StartsAt: c.From,
					EndsAt:   c.Until,
				})
			}
			return out
		},
		SetOnline: func(_ testing.TB, online bool) { b.lock.SetOnline(online) },
		AddForeign: func(t testing.TB, name, pin string) adapter.CodeRef {
			return adapter.CodeRef(b.lock.AddCode(t, name, pin))
		},
		ChangeForeign: func(t testing.TB, code adapter.CodeRef, pin string) { b.lock.ChangeCode(t, string(code), pin) },
		DeleteForeign: func(t testing.TB, code adapter.CodeRef) { b.lock.DeleteCode(t, string(code)) },
		Enter: func(t testing.TB, pin string) {
			testenv.Until(t, "the code opens the door", func() bool { return b.lock.EnterPIN(pin) })
		},
		EnterWrong: func(_ testing.TB, pin string) { b.lock.EnterPIN(pin) },
		LockByHand: func(testing.TB) { b.lock.LockByHand() },
		Jam:        func(testing.TB) { b.lock.Jam() },
		Remove:     func(testing.TB) { b.lock.Remove() },
		Fill:       func(testing.TB) { b.cloud.Fail(adapter.Full) },
		Revoke:     func(testing.TB) { b.cloud.Revoke() },
		DropNext:   func(testing.TB) { b.cloud.DropNext() },
		CutNext:    func(testing.TB) { b.cloud.Cut() },
		LoseNext:   func(testing.TB) { b.cloud.LoseNext() },
		FailNext:   func(_ testing.TB, class adapter.Class) { b.cloud.Fail(class) },
		Heal:       func(testing.TB) { b.cloud.Heal() },
		Disconnect: func(testing.TB) { b.cloud.Disconnect() },
		Stall:      func(testing.TB) { b.cloud.Stall() },
		Stop:       func(testing.TB) { b.cloud.Stop() },
	}
}
