package reconcile_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

func TestDuplicateDevice_IsRecordedOnce(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	d := device.FoundDevice{Ref: "x", Name: "Side door", Online: true}
	b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{d, d}))
}

func TestUnstorableName_DelaysNothing(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	f := found("k1", "2580")
	f.Name = "a\x00b"
	b.read(f)
	b.must(
		b.access.Devices.RecordDevices(t.Context(), holder{}, b.account,
			[]device.FoundDevice{{Ref: "x", Name: "Side\x00door"}}),
	)
}
