package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

func TestServerLockWithoutSubscription_GetsCodeAfterApply(t *testing.T) {
	t.Parallel()
	const pin = "683468"
	for name, config := range map[string]func(device string) string{
		"single": func(device string) string { return accessCodeOn(device, `code = "`+pin+`"`) },
		"shared": func(device string) string { return codeSet(`code = "`+pin+`"`, device) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := apptest.Shared(t, apptest.WithProfiles("nuki"))
			device := srv.Device(t, "nuki")
			lock := srv.Lock(t, device)
			lock.Control(t, http.MethodPost, "/subscription", map[string]any{"expired": true})
			apptest.Until(t, "the server knows", func() bool {
				var answer api.DeviceResponse
				srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &answer)
				return len(answer.Device.Errors) > 0
			})
			w := newDirectory(t, map[string]string{"main.tf": required + onServer(srv, config(device))})
			said := w.plain("apply", "-auto-approve")
			expectSaid(t, "the apply", said, "Warning: ", "applies the change when the subscription is renewed")
			if n := strings.Count(said, "(subscription_required)"); n != 1 || strings.Contains(said, "keeps trying") {
				t.Errorf("the reason is said %d times:\n%s", n, said)
			}
			lock.Control(t, http.MethodPost, "/subscription", map[string]any{"expired": false})
			apptest.Until(t, "the lock has the code", func() bool { return lock.Has(t, pin) })
			apptest.Until(t, "the server knows", func() bool { return managedOn(t, srv, device)[0].Status == "set" })
			w.expect(true, "plan", "-detailed-exitcode")
			w.expect(true, "destroy", "-auto-approve")
			if n := srv.Count("/access_codes/create"); n != 1 {
				t.Errorf("%d codes were created", n)
			}
		})
	}
}
