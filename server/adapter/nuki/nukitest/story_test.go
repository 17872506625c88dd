package nukitest_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki/nukitest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/vendorstory"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// door is the lock as the Nuki app shows it.
type door struct{ lock *nukitest.Lock }

func (d door) Add(t testing.TB, name, pin string) { d.lock.AddCode(t, name, pin) }

func (d door) Change(t testing.TB, name, pin string) { d.lock.ChangeCode(t, d.find(t, name), pin) }

func (d door) Delete(t testing.TB, name string) { d.lock.DeleteCode(t, d.find(t, name)) }

func (d door) find(t testing.TB, name string) string {
	t.Helper()
	for _, c := range d.lock.Codes() {
		if c.Name == name {
			return c.ID
		}
	}
	t.Fatalf("the lock has no code %q", name)
	return ""
}

func (d door) PINs(testing.TB) map[string]string {
	out := map[string]string{}
	for _, c := range d.lock.Codes() {
		out[c.Name] = c.PIN
	}
	return out
}

// A person connects a Nuki Web account, and Terraform manages a code of its lock.
func TestStory(t *testing.T) {
	t.Parallel()
	cloud := nukitest.Start(t, nukitest.Options{ListLag: 1, BusyReads: 1})
	cloud.Lock().AddCode(t, "Neighbor", "728394")
	timing := nuki.Timing{ReadBack: []time.Duration{0, time.Millisecond, time.Millisecond}, Shared: time.Nanosecond}
	timing.Poll, timing.PollCodes = 200*time.Millisecond, 200*time.Millisecond
	vendorstory.Run(t, vendorstory.Story{
		Connecting: app.Connecting{Vendors: []adapter.Vendor{cloud.Vendor(timing)}},
		Pages:      []map[string]string{{"api_token": nukitest.Token}},
		Door:       door{cloud.Lock()},
		PINs:       [3]string{"483926", "594837", "615948"},
		Secrets:    map[string]string{nukitest.Token: "api_token"},
	})
}
