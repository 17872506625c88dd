package app_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
)

// gatewayThermostat is a thermostat behind a real gateway, and its own memory in °C.
type gatewayThermostat struct {
	deviceType string
	connection adapter.Connection
	setPoint   func() float64          // of heating
	adjust     func(celsius float64)   // at the wall
	reading    func(d api.Device) bool // what the device measures is shown
}

// A thermostat behind a real zwave-js takes a schedule.
func TestRealGatewayThermostat_ZWaveJS(t *testing.T) {
	t.Parallel()
	g := zwave.Start(t, zwave.Wall)
	m := g.LeaseThermostat(t, zwave.Wall)
	celsius := func(fahrenheit float64) float64 { return (fahrenheit - 32) / 1.8 }
	takesSchedule(t, gatewayThermostat{
		deviceType: "zwave_thermostat",
		connection: &zwavejs.Connection{Config: zwavejs.Config{URL: g.URL}},
		setPoint:   func() float64 { return celsius(m.State(t).Heat) },
		adjust:     func(c float64) { m.Adjust(t, zwave.Adjustment{Heat: new(math.Round(c*1.8 + 32))}) },
		reading: func(d api.Device) bool {
			return near(d.Properties.RelativeHumidity, 0.41) && near(d.Properties.TemperatureFahrenheit, 70)
		},
	})
}

// A thermostat behind a real zigbee2mqtt takes a schedule.
func TestRealGatewayThermostat_Zigbee2MQTT(t *testing.T) {
	t.Parallel()
	g := zigbee.Start(t, zigbee.Wall)
	m := g.LeaseThermostat(t, zigbee.Wall)
	user, password := g.User(t)
	takesSchedule(t, gatewayThermostat{
		deviceType: "zigbee_thermostat",
		connection: &zigbee2mqtt.Connection{Config: zigbee2mqtt.Config{
			Broker:   g.Broker,
			Topic:    zigbee.Topic,
			Username: user,
			Password: password,
		}},
		setPoint: func() float64 { return float64(*m.State(t).Heat) / 100 },
		adjust:   func(c float64) { m.Adjust(t, zigbee.ThermostatState{Heat: new(int(c * 100))}) },
		reading:  func(d api.Device) bool { return near(d.Properties.TemperatureCelsius, 21) },
	})
}

func near(got *float64, want float64) bool { return got != nil && math.Abs(*got-want) < 0.01 }

// takesSchedule tells the story: the thermostat appears, a schedule sets its set point, a change at the wall is
// overruled, and a command replaces the schedule.
func takesSchedule(t *testing.T, m gatewayThermostat) {
	t.Helper()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	admin := app.Admin{Access: s.App.Access}
	if _, err := admin.Connect(t.Context(), uuid.MustParse(s.WorkspaceID), "Home", m.connection); err != nil {
		t.Fatal(err)
	}
	post := func(path string, in map[string]any, out any) {
		t.Helper()
		if status := s.Post(t, path, in, out); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	var device api.Device
	apptest.Until(t, "the thermostat appears with its state", func() bool {
		var list api.ThermostatsResponse
		post("/thermostats/list", map[string]any{}, &list)
		for _, d := range list.Thermostats {
			if d.DeviceType == m.deviceType && m.reading(d) && d.Properties.CurrentClimateSetting != nil {
				device = d
			}
		}
		return device.DeviceID != ""
	})
	if !*device.CanHvacHeatCool || device.DeviceProvider.ProviderCategory != "thermostats" {
		t.Errorf("the device is %+v", device.Properties)
	}
	const scheduled, ordered = 23.0, 18.0
	post("/thermostats/create_climate_preset", map[string]any{
		"device_id":                 device.DeviceID,
		"climate_preset_key":        "guests",
		"hvac_mode_setting":         "heat",
		"fan_mode_setting":          "on",
		"heating_set_point_celsius": scheduled,
	}, nil)
	post("/thermostats/schedules/create", map[string]any{
		"device_id":           device.DeviceID,
		"climate_preset_key":  "guests",
		"starts_at":           time.Now().Add(-time.Minute).UTC().Format(time.RFC3339),
		"ends_at":             time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		"is_override_allowed": false,
	}, nil)
	is := func(want float64) func() bool {
		return func() bool { return math.Abs(m.setPoint()-want) < 0.3 }
	}
	apptest.Until(t, "the device has the set point of the schedule", is(scheduled))
	apptest.Until(t, "the schedule is in effect", func() bool {
		var got api.ThermostatResponse
		post("/thermostats/get", map[string]any{"device_id": device.DeviceID}, &got)
		now := got.Thermostat.Properties.CurrentClimateSetting
		return now.ClimatePresetKey == "guests" && now.HvacModeSetting == "heat" && now.FanModeSetting == "on"
	})
	m.adjust(28)
	apptest.Until(t, "the change at the wall is overruled", is(scheduled))
	var attempt api.ActionAttemptResponse
	post("/thermostats/heat", map[string]any{
		"device_id":                 device.DeviceID,
		"heating_set_point_celsius": ordered,
		"sync":                      true,
	}, &attempt)
	if attempt.ActionAttempt.Status != "success" || !is(ordered)() {
		t.Errorf("the command ended with %s, and the device has %.2f °C", attempt.ActionAttempt.Status, m.setPoint())
	}
}
