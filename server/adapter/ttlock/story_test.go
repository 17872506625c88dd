package ttlock_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock/ttlocktest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/vendorstory"
)

// door is the lock as its owner sees it in the app.
type door struct{ cloud *ttlocktest.Server }

// Add implements vendorstory.Door.
func (d door) Add(_ testing.TB, name, pin string) { d.cloud.AddCode(0, name, pin) }

// Change implements vendorstory.Door.
func (d door) Change(_ testing.TB, name, pin string) {
	d.cloud.ChangeCode(0, d.cloud.CodeID(0, name), pin)
}

// Delete implements vendorstory.Door.
func (d door) Delete(_ testing.TB, name string) { d.cloud.DeleteCode(0, d.cloud.CodeID(0, name)) }

// PINs implements vendorstory.Door.
func (d door) PINs(testing.TB) map[string]string {
	out := map[string]string{}
	for _, c := range d.cloud.Codes(0) {
		out[c.Name] = c.PIN
	}
	return out
}

// A person connects an account, and Terraform manages a code of its lock. No push arrives, so reads find the drift.
func TestStory(t *testing.T) {
	t.Parallel()
	cloud := ttlocktest.Start(t, ttlocktest.Options{NeverUsed: true})
	vendor := ttlock.VendorAt(cloud.URL)
	vendor.Pace = adapter.Pace{List: time.Second, Read: time.Second}
	vendorstory.Run(t, vendorstory.Story{
		Connecting: app.Connecting{
			Vendors: []adapter.Vendor{vendor},
			Clients: map[string]adapter.Client{ttlock.Name: client},
		},
		Pages:   []map[string]string{{"username": ttlocktest.Username, "password": ttlocktest.Password}},
		Door:    door{cloud},
		PINs:    [3]string{"483926", "594837", "615948"},
		Secrets: ttlocktest.Secrets(),
	})
}
