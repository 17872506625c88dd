package zigbee2mqtt_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// A code that appears in a slot after the end of our code is another one, even on a lock that does not report
// changes.
func TestVacatedSlotBelongsToOthers(t *testing.T) {
	t.Parallel()
	const ours, theirs = "60216021", "70317031"
	spec := adapter.CodeSpec{Key: "ours", PIN: ours}
	deleted := func(b *bed) {
		if _, err := b.DeleteCode(b.Context(), b.ref, b.put(spec.Key, ours)); err != nil {
			b.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		profile zigbee.Profile
		leave   func(b *bed)
	}{
		"deleted":                          {zigbee.Plain, deleted},
		"deleted, PINs are hidden":         {zigbee.Hidden, deleted},
		"not taken":                        {zigbee.Plain, refused(spec)},
		"not taken, PINs are hidden":       {zigbee.Masked, refused(spec)},
		"overwritten there, and not shown": {zigbee.Plain, func(b *bed) { b.put(spec.Key, ours) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, test.profile)
			test.leave(b)
			b.lock.ProgramSilently(t, 3, theirs)
			put, err := b.PutCode(t.Context(), b.ref, spec)
			if err != nil {
				t.Fatal(err)
			}
			if codes := b.lock.State(t).Codes; codes[3] != theirs || put.Ref != "4" || codes[4] != ours {
				t.Errorf("the ref of our code is %s, the lock has %v", put.Ref, codes)
			}
		})
	}
}

func refused(spec adapter.CodeSpec) func(b *bed) {
	return func(b *bed) {
		b.lock.Drop(b, 1)
		if _, err := b.PutCode(b.Context(), b.ref, spec); err == nil {
			b.Fatal("the lock has taken it all the same")
		}
	}
}
