package zwavejs_test

import (
	"testing"

	lab "github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
)

// A code that a lock stores without opening is shown as disabled until it is written again.
func TestDisabledCodeIsEnabledByPutCode(t *testing.T) {
	t.Parallel()
	for _, profile := range []lab.Profile{lab.Plain, lab.Masked, lab.Users} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			h := sharedHouse(t, profile)
			if _, err := h.adapter.PutCode(t.Context(), h.device, spec("one", "864209")); err != nil {
				t.Fatal(err)
			}
			put := spec("two", "975310")
			result, err := h.adapter.PutCode(t.Context(), h.device, put)
			if err != nil {
				t.Fatal(err)
			}
			put.Ref = result.Ref
			disabled := func() (is bool) {
				codes, err := h.adapter.Codes(t.Context(), h.device, true)
				if err != nil || len(codes.Codes) != 2 {
					t.Fatalf("%d codes, %v", len(codes.Codes), err)
				}
				for _, c := range codes.Codes {
					if c.Disabled && c.Ref != put.Ref {
						t.Fatal("the other code is disabled")
					}
					is = is || c.Disabled
				}
				return is
			}
			if disabled() {
				t.Fatal("it is disabled from the start")
			}
			h.Disable(t, slot(t, put.Ref))
			until(t, "it is shown as disabled", disabled)
			if _, err := h.adapter.PutCode(t.Context(), h.device, put); err != nil {
				t.Fatal(err)
			}
			if h.State(t).Codes[slot(t, put.Ref)].Disabled || disabled() {
				t.Fatal("it was put, and is disabled")
			}
		})
	}
}
