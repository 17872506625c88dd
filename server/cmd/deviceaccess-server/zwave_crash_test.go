package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
)

// A server that is killed while it writes knows afterwards what it has written, also on a lock that hides its PINs.
func TestAServerThatIsKilledInMidWriteDoublesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t, zwave.Masked)
	lock := h.gateway.Lease(t, zwave.Masked)
	lock.Program(t, 1, "11223344") // somebody's; from here on it is known that the lock hides PINs
	h.within("the lock appears", func() bool { return len(h.locks()) == 1 })
	device := h.locks()[0]
	unmanaged := func() int {
		var out struct {
			Codes []any `json:"access_codes"`
		}
		h.post(h.server, h.key, "/access_codes/unmanaged/list", fmt.Sprintf(`{"device_id":%q}`, device), &out)
		return len(out.Codes)
	}
	h.within("the code of somebody else's appears", func() bool { return unmanaged() == 1 })
	killed := func(path, body string) (code string) {
		t.Helper()
		var out struct {
			Code shownCode `json:"access_code"`
		}
		if status := h.post(h.server, h.key, path, body, &out); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
		h.within("the write is on its way", func() bool { return h.gateway.Paused(t) })
		if err := h.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = h.process.Wait()
		h.gateway.Resume(t)
		h.server, h.process = h.serve()
		return out.Code.ID
	}
	want := []string{"11223344"}
	for pin, hang := range map[string]string{"86420975": "before", "75319864": "after"} {
		lock.Fault(t, zwave.Faults{Hang: hang})
		code := killed("/access_codes/create", fmt.Sprintf(`{"device_id":%q,"code":%q}`, device, pin))
		h.within("the code is set", func() bool { return h.code(code).Status == "set" })
		want = append(want, pin)
		slices.Sort(want)
		if got := pins(t, lock); !slices.Equal(got, want) || unmanaged() != 1 {
			t.Fatalf("killed %s the lock has it: %d codes are on it, %d are unmanaged", hang, len(got), unmanaged())
		}

		changed := "9" + pin[1:]
		lock.Fault(t, zwave.Faults{Hang: hang})
		killed("/access_codes/update", fmt.Sprintf(`{"access_code_id":%q,"code":%q}`, code, changed))
		want[slices.Index(want, pin)] = changed
		slices.Sort(want)
		h.within("the lock has the changed code", func() bool {
			return slices.Equal(pins(t, lock), want) && h.code(code).Status == "set" && unmanaged() == 1
		})
	}
}
