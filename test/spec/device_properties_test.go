package spec_test

import (
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// August's lock has a separate keypad, Schlage's has one of its own.
func TestDevice_PublishedProperties(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august", "schlage"))
	for provider, separate := range map[string]bool{"august": true, "schlage": false} {
		p := get(t, s, s.Device(t, provider)).Properties
		if *p.Model.CanConnectAccessoryKeypad != separate || *p.Model.HasBuiltInKeypad == separate ||
			*p.SupportsAccessoryKeypad != separate || *p.Model.AccessoryKeypadSupported != separate {
			t.Errorf("%s: model %+v", provider, p.Model)
		}
		if (p.KeypadBattery != nil) != separate || (p.AccessoryKeypad != nil) != separate ||
			separate && (p.KeypadBattery.Level != 0.9 || !p.AccessoryKeypad.IsConnected) {
			t.Errorf("%s: keypad %+v, its battery %+v", provider, p.AccessoryKeypad, p.KeypadBattery)
		}
		if *p.HasDirectPower || !*p.HasNativeEntryEvents || p.DoorOpen != nil {
			t.Errorf("%s: %+v", provider, p)
		}
		if !strings.HasPrefix(p.ImageURL, "data:image/svg+xml,") || p.ImageAltText == "" {
			t.Errorf("%s: picture %q, %q", provider, p.ImageURL, p.ImageAltText)
		}
	}
}
