package reconcile_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Neither the systems of an account nor a single system is read while the account has emitted too
// many events.
func TestEventRate_SystemsAreNotRead(t *testing.T) {
	t.Parallel()
	doors := make([]string, 1000)
	for i := range doors {
		doors[i] = fmt.Sprintf(`{"entrance_id":"e%d","name":"A door"}`, i)
	}
	var asked atomic.Int32
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, `{"groups":[],"users":[],"entrances":[`+strings.Join(doors, ",")+`]}`)
	}))
	t.Cleanup(vendor.Close)
	b := newBedWith(t, access.Options{InventoryEventRate: 0.1, InventoryEventBurst: 10})
	d := b.start(accesscloud.Config{BaseURL: vendor.URL})
	apptest.Until(t, "the listing is postponed", func() (put bool) {
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select due_at > now() + interval '2 hours' from acs_systems").Scan(&put),
		)
		return put
	})
	account, err := b.access.Accounts.GetAccount(t.Context(), b.account)
	b.must(err)
	before := asked.Load()
	if wait, err := d.DrainAccount(t.Context(), nil, account); err != nil || wait < 40*time.Second ||
		asked.Load() != before {
		t.Errorf("%d requests, next listing in %s: %v", asked.Load()-before, wait, err)
	}
}
