package tedee_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee/tedeetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// open returns an adapter for a cloud, which polls if listen is set.
func open(t *testing.T, c *tedeetest.Cloud, listen bool, change ...func(*tedee.Config)) *tedee.Adapter {
	t.Helper()
	config := tedee.Config{
		URL:           c.URL + "/api/" + tedee.APIVersion,
		Key:           tedeetest.Key,
		Secrets:       &adaptertest.Secrets{},
		PollInterval:  10 * time.Millisecond,
		ProbeInterval: time.Nanosecond,
	}
	for _, f := range change {
		f(&config)
	}
	a := tedee.New(config)
	t.Cleanup(func() { _ = a.Close() })
	if listen {
		a.Listen()
		if e := <-a.Events(); e.Kind != adapter.Resync { // later events come from the vendor
			t.Fatalf("the first event is %+v", e)
		}
	}
	return a
}

func ref(id int64) adapter.CodeRef { return adapter.CodeRef(strconv.FormatInt(id, 10)) }

func idOf(t testing.TB, code adapter.CodeRef) int64 {
	t.Helper()
	id, err := strconv.ParseInt(string(code), 10, 64)
	if err != nil {
		t.Fatalf("the code has the reference %q", code)
	}
	return id
}

func bed(t *testing.T, c *tedeetest.Cloud) adaptertest.Bed {
	return adaptertest.Bed{
		Adapter: open(t, c, true),
		Device:  adapter.DeviceRef(c.Serial),
		Memory: func(testing.TB) (codes []adaptertest.OnDevice) {
			for _, code := range c.Codes() {
				codes = append(codes, adaptertest.OnDevice{
					Ref:      ref(code.ID),
					PIN:      code.PIN,
					Name:     code.Name,
					StartsAt: code.StartsAt,
					EndsAt:   code.EndsAt,
				})
			}
			return codes
		},
		SetOnline:  func(_ testing.TB, online bool) { c.SetOnline(online) },
		AddForeign: func(_ testing.TB, name, pin string) adapter.CodeRef { return ref(c.AddCode(name, pin)) },
		ChangeForeign: func(t testing.TB, code adapter.CodeRef, pin string) {
			c.ChangeCode(idOf(t, code), pin)
		},
		DeleteForeign: func(t testing.TB, code adapter.CodeRef) { c.DeleteCode(idOf(t, code)) },
		Enter: func(t testing.TB, pin string) {
			if !c.EnterPIN(pin) {
				t.Fatal("the code does not open the door")
			}
		},
		EnterWrong: func(_ testing.TB, pin string) { c.EnterPIN(pin) },
		LockByHand: func(testing.TB) { c.LockByHand() },
		Jam:        func(testing.TB) { c.Jam() },
		Fill:       func(testing.TB) { c.Fill() },
		Remove:     func(testing.TB) { c.Remove() },
		Revoke:     func(testing.TB) { c.Revoke() },
		DropNext:   func(testing.TB) { c.DropNext() },
		CutNext:    func(testing.TB) { c.CutNext() },
		LoseNext:   func(testing.TB) { c.LoseNext() },
		FailNext:   func(_ testing.TB, class adapter.Class) { c.Fail(class) },
		Heal:       func(testing.TB) { c.Heal() },
		Disconnect: func(testing.TB) { c.CloseConnections() },
		Stall:      func(testing.TB) { c.Stall() },
		Stop:       func(testing.TB) { c.Stop() },
	}
}

// TestConformance runs the suite over the fake cloud.
func TestConformance(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, func(t *testing.T) adaptertest.Bed { return bed(t, tedeetest.Start(t, tedeetest.Options{})) })
}

// TestConformanceTroubled runs the suite with slow operations, refused repetitions, and several pages of locks.
func TestConformanceTroubled(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, func(t *testing.T) adaptertest.Bed {
		c := tedeetest.Start(t, tedeetest.Options{PageSize: 10, RefusesRepeats: true})
		for range 11 {
			c.AddLock("Other door")
		}
		c.SlowOperations(1)
		return bed(t, c)
	})
}
