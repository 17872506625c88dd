package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestNothingThatIsPrintedOrLoggedHoldsASecret(t *testing.T) {
	t.Parallel()
	const pin, changed, adopted = "905173846251", "715938426052", "640297158306"
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: adopted})
	config := func(pin string) string {
		return f.config(webhook("https://example.com/a", "") + accessCode(fmt.Sprintf("code = %q", pin)) + fmt.Sprintf(`
resource "deviceaccess_access_code" "adopted" {
  device_id = %[1]q
}
import {
  to = deviceaccess_access_code.adopted
  id = "%[1]s/%[2]s"
}
data "deviceaccess_unmanaged_access_codes" "these" {
  device_id = %[1]q
}
`, fakeDevice, id))
	}
	w := newWorkspace(t, map[string]string{"versions.tf": required, "main.tf": config(pin)})
	echo := `{"code": "` + pin + `", "Authorization": "Bearer ` + fakeKey + `"}`
	f.then("/access_codes/create",
		answerRaw(http.StatusBadRequest, "application/json", `{"ok": false, "error": {"type": "invalid_input", "message": "PIN `+pin+` is no good",
			"validation_errors": {"code": {"_errors": ["`+pin+`"]}}}}`))
	w.expect(false, "apply", "-auto-approve")
	f.then("/access_codes/create", answerRaw(http.StatusBadGateway, "text/html", "<p>"+echo+"</p>"))
	w.expect(false, "apply", "-auto-approve")
	w.expect(true, "apply", "-auto-approve")
	w.write("main.tf", config(changed))
	w.expect(true, "plan")
	f.do(func() {
		f.nextAttempt = func(a *fakeAttempt) { a.failure = map[string]any{"type": "x", "message": changed + " does not fit"} }
	})
	w.expect(false, "apply", "-auto-approve")
	f.do(func() { f.nextAttempt = nil })
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "show")
	w.write("main.tf", strings.Replace(config(changed+"x"), "api_key  = \"", "api_key  = \"\\n", 1))
	w.expect(false, "plan") // neither the PIN nor the key is well-formed
	w.write("main.tf", config(changed))
	w.expect(true, "destroy", "-auto-approve")

	log := w.seen.String()
	for name, secret := range map[string]string{
		"the PIN": pin, "the changed PIN": changed, "the adopted PIN": adopted, "the API key": fakeKey, "the webhook's secret": fakeSecret,
	} {
		if at := strings.Index(log, secret); at >= 0 {
			t.Errorf("%s is in what was written:\n%s", name, log[max(0, at-500):min(len(log), at+200)])
		}
	}
	for _, wanted := range []string{"request answered", "path=/access_codes/create", "PIN (hidden) is no good", "(hidden) does not fit"} {
		if !strings.Contains(log, wanted) {
			t.Errorf("%q is not in what was written, so this test looks at the wrong thing", wanted)
		}
	}
}
