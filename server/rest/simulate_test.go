package rest_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// The list of this vendor shows a new code only after a delay.
func TestSimulatedCode_ListLags(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("schlage"), apptest.WithSpeed(1))
	for i := range 2 {
		code := fmt.Sprint(4810 + i)
		made := must(t, s, "/access_codes/simulate/create_unmanaged_access_code", "access_code",
			in{"device_id": s.Device(t, "schlage"), "code": code, "name": "Typed in"})
		if made["code"] != code {
			t.Errorf("the code: %v", made)
		}
	}
}

// Waiting simulations do not block other requests.
func TestWaitingSimulationsReleaseSlot(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.DatabaseURL = storetest.New(t) + "&lock_timeout=600000" // those that wait do not fail meanwhile
	})
	device := s.Device(t, "august")
	gate := s.Gate(t, "before update", "connected_accounts", "true")
	const most = admission.DefaultSlots * 3 / 4 // of one address
	var all sync.WaitGroup
	defer all.Wait()
	defer gate.Open()
	var ended atomic.Int32
	for range most {
		all.Go(func() {
			call(t, s, http.MethodPost, "/devices/simulate/disconnect", in{"device_id": device})
			ended.Add(1)
		})
	}
	gate.Await(most, "connected_accounts")
	must(t, s, "/workspaces/get", "workspace", in{})
	if n := ended.Load(); n > 0 {
		t.Errorf("another request was answered when %d that wait had ended", n)
	}
}
