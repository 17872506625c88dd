package rest_test

import (
	"fmt"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// The list of this vendor shows a code only a while after it was typed in, and so not at the first look.
func TestSimulatedCodeIsNoticedThoughTheListLags(t *testing.T) {
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
