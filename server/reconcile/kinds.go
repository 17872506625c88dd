package reconcile

import (
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
)

// toObservedClimate converts an adapter's thermostat to the type of package climate.
func toObservedClimate(t *adapter.Thermostat) *climate.Observed {
	if t == nil {
		return nil
	}
	o := &climate.Observed{
		Setting:       toClimateSetting(t.Setting),
		Temperature:   t.Temperature,
		Humidity:      t.Humidity,
		Heating:       t.Heating,
		Cooling:       t.Cooling,
		FanRunning:    t.FanRunning,
		AuxiliaryHeat: t.AuxiliaryHeat,
		ActivePreset:  t.ActivePreset,
	}
	if !domain.ValidRef(o.ActivePreset) {
		o.ActivePreset = ""
	}
	for _, p := range t.Presets {
		if !domain.ValidRef(p.Key) {
			continue
		}
		o.Presets = append(o.Presets, climate.VendorPreset{
			Key:     p.Key,
			Name:    domain.CleanName(p.Name),
			Setting: toClimateSetting(p.Setting),
		})
	}
	return o
}

func toClimateSetting(s adapter.ThermostatSetting) climate.Setting {
	return climate.Setting{
		Mode: s.Mode,
		Fan:  s.Fan,
		Heat: s.Heat,
		Cool: s.Cool,
	}
}

// toObservedNoise converts an adapter's noise sensor to the type of package noise.
func toObservedNoise(n *adapter.NoiseSensor) *noise.Observed {
	if n == nil {
		return nil
	}
	o := &noise.Observed{Decibels: n.Decibels, NRS: n.NRS}
	for _, t := range n.Thresholds {
		o.Thresholds = append(o.Thresholds, noise.Found{
			Ref:         string(t.Ref),
			Key:         t.Key,
			Name:        t.Name,
			StartsDaily: t.StartsDaily,
			EndsDaily:   t.EndsDaily,
			TimeZone:    t.TimeZone,
			Decibels:    t.Decibels,
			NRS:         t.NRS,
		})
	}
	for _, ref := range n.Triggering {
		o.Triggering = append(o.Triggering, string(ref))
	}
	return o
}
