package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
)

// Another list was asked for before the news and arrives after it. It takes nothing back, so that the next list does
// not report the news again.
func TestOvertakenList_ReportsNothingTwice(t *testing.T) {
	t.Parallel()
	for profile, c := range map[string]struct {
		event string
		shows func(f *device.FoundDevice, news bool)
	}{
		"nest": {"thermostat.temperature_changed", func(f *device.FoundDevice, news bool) {
			shown := climate.Observed{Temperature: new(20.0)}
			if news {
				shown.Temperature = new(25.0)
			}
			f.Thermostat = &shown
		}},
		"minut": {"noise_sensor.noise_threshold_triggered", func(f *device.FoundDevice, news bool) {
			shown := noise.Observed{Thresholds: f.NoiseSensor.Thresholds}
			if news {
				shown.Triggering = []string{shown.Thresholds[0].Ref}
			}
			f.NoiseSensor = &shown
		}},
	} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := prepare(t, options{profile: profile})
			found := b.described()
			listed := func(news bool, ago time.Duration) {
				t.Helper()
				f := found
				c.shows(&f, news)
				f.Asked = b.access.Devices.Now().Add(-ago)
				b.must(b.access.Devices.RecordDevices(t.Context(), holder{}, b.account, []device.FoundDevice{f}))
			}
			listed(false, 0)
			if profile == "minut" {
				b.readThresholds(*found.NoiseSensor)
			}
			listed(true, 0)
			if n := len(b.tales(c.event)); n != 1 {
				t.Fatalf("%d events", n)
			}
			listed(false, 10*time.Second)
			listed(true, 0)
			if n := len(b.tales(c.event)); n != 1 {
				t.Errorf("%d events after a list that was overtaken", n)
			}
			listed(false, 0)
			listed(true, 0)
			if n := len(b.tales(c.event)); n == 1 {
				t.Error("later news is not reported")
			}
		})
	}
}
