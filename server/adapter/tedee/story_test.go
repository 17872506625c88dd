package tedee_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee/tedeetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/vendorstory"
)

// keypad is the keypad of the fake's lock.
type keypad struct{ cloud *tedeetest.Cloud }

func (k keypad) Add(_ testing.TB, name, pin string) { k.cloud.AddCode(name, pin) }

func (k keypad) find(t testing.TB, name string) int64 {
	t.Helper()
	for _, c := range k.cloud.Codes() {
		if c.Name == name {
			return c.ID
		}
	}
	t.Fatalf("the keypad has no code %q", name)
	return 0
}

func (k keypad) Change(t testing.TB, name, pin string) { k.cloud.ChangeCode(k.find(t, name), pin) }

func (k keypad) Delete(t testing.TB, name string) { k.cloud.DeleteCode(k.find(t, name)) }

func (k keypad) PINs(testing.TB) map[string]string {
	pins := map[string]string{}
	for _, c := range k.cloud.Codes() {
		pins[c.Name] = c.PIN
	}
	return pins
}

// A person connects a Tedee account, and Terraform adopts, changes, and destroys a code of its lock.
func TestStory(t *testing.T) {
	t.Parallel()
	cloud := tedeetest.Start(t, tedeetest.Options{})
	cloud.AddCode("Neighbor", "70519")
	v := tedee.VendorAt(cloud.URL)
	v.Pace = adapter.Pace{List: time.Second, Read: time.Second}
	vendorstory.Run(t, vendorstory.Story{
		Connecting: app.Connecting{Vendors: []adapter.Vendor{v}},
		Pages:      []map[string]string{{"personal_key": tedeetest.Key}},
		Door:       keypad{cloud},
		PINs:       [3]string{"482917", "615283", "930472"},
		Secrets:    map[string]string{tedeetest.Key: "personal access key"},
	})
}
