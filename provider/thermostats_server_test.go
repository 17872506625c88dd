package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// call posts to the server, and fails the test unless it succeeds.
func call(t *testing.T, srv *apptest.Server, path string, body map[string]any) func() {
	return func() {
		t.Helper()
		if status := srv.Post(t, path, body, nil); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
}

// setTo is a check that the thermostat is set to a heating set point in °C.
func setTo(t *testing.T, srv *apptest.Server, device, preset string, celsius float64) resource.TestCheckFunc {
	return func(*terraform.State) error {
		t.Helper()
		apptest.Until(t, fmt.Sprintf("%s is set to %v °C", preset, celsius), func() bool {
			var got api.DeviceResponse
			srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &got)
			setting := got.Device.Properties.CurrentClimateSetting
			return setting != nil && setting.ClimatePresetKey == preset && setting.HeatingSetPointCelsius != nil &&
				setPointOf(setting.HeatingSetPointCelsius, nil).same(inCelsius(celsius))
		})
		return nil
	}
}

func schedulesOn(t *testing.T, srv *apptest.Server, device string) []api.ThermostatSchedule {
	t.Helper()
	var list api.ThermostatSchedulesResponse
	srv.Post(t, "/thermostats/schedules/list", map[string]any{"device_id": device}, &list)
	return list.ThermostatSchedules
}

func TestServerThermostat_TakesPresetsAndSchedules(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("ecobee"))
	device := srv.Device(t, "ecobee")
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	starts, ends := at(-time.Hour), at(48*time.Hour)
	config := func(preset, more string) string {
		return onServer(srv, climatePreset(device, preset)+
			scheduleOn(device, occupied+".climate_preset_key", starts, ends, more))
	}
	const both = `hvac_mode_setting = "heat_cool"
  heating_set_point_fahrenheit = 68
  cooling_set_point_fahrenheit = 75`
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			var got api.DeviceResponse
			srv.Post(t, "/devices/get", map[string]any{"device_id": device}, &got)
			if presetOf(&got.Device, "occupied") != nil || len(schedulesOn(t, srv, device)) != 0 {
				return fmt.Errorf("the preset or the schedule is left")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: config(both, ""),
				ConfigStateChecks: append(degrees(occupied, map[string]float64{"heating_set_point_celsius": 20}),
					known(stay, map[string]string{"starts_at": starts, "name": ""})...),
				Check: setTo(t, srv, device, "occupied", 20),
			},
			{Config: config(both, ""), ConfigPlanChecks: plansNothing()},
			importsBy(stay, "thermostat_schedule_id", "starts_at", "ends_at"),
			{
				ResourceName:                         occupied,
				ImportState:                          true,
				ImportStateId:                        device + "/occupied",
				ImportStateVerify:                    true,
				ImportStateVerifyIdentifierAttribute: "climate_preset_key",
			},
			{ // changed behind Terraform's back
				PreConfig: call(t, srv, "/thermostats/update_climate_preset", map[string]any{
					"device_id": device, "climate_preset_key": "occupied", "heating_set_point_celsius": 15,
				}),
				Config:           config(both, ""),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, occupied),
				Check:            setTo(t, srv, device, "occupied", 20),
			},
			{ // the unit alone is no change
				Config: config(strings.Replace(both, "heating_set_point_fahrenheit = 68",
					"heating_set_point_celsius = 20", 1), ""),
				ConfigPlanChecks: plansNothing(),
			},
			{
				Config: config(
					`hvac_mode_setting = "heat"`,
					"name = \"Stay\"\n  is_override_allowed = true\n  max_override_period_minutes = 90",
				),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, stay),
				Check:            setTo(t, srv, device, "occupied", 20),
			},
			{
				Config:           config(`hvac_mode_setting = "heat"`, ""),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, stay),
				Check: func(*terraform.State) error {
					is := schedulesOn(t, srv, device)[0]
					if textOf(is.Name) != "" || is.MaxOverridePeriodMinutes != nil || *is.IsOverrideAllowed {
						return fmt.Errorf("removed settings stay: %+v", is)
					}
					return nil
				},
			},
			{Config: config(`hvac_mode_setting = "heat"`, ""), ConfigPlanChecks: plansNothing()},
			{ // deleted behind Terraform's back
				PreConfig: func() {
					call(t, srv, "/thermostats/schedules/delete", map[string]any{
						"thermostat_schedule_id": schedulesOn(t, srv, device)[0].ThermostatScheduleID,
					})()
				},
				Config:           config(`hvac_mode_setting = "heat"`, ""),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, stay),
			},
			{
				Config:      config("hvac_mode_setting = \"heat\"\n  heating_set_point_celsius = 90", ""),
				ExpectError: says("Error: Set point out of range"),
			},
			{
				Config: strings.Replace(config(`hvac_mode_setting = "heat"`, ""), `climate_preset_key = "occupied"`,
					`climate_preset_key = "guests"`, 1),
				ExpectError: says("Could not delete climate preset", "create_before_destroy"),
			},
		},
	})
}

func TestServerThermostatSchedule_ThatEndsIsNoError(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("ecobee"))
	device := srv.Device(t, "ecobee")
	ends := time.Now().Add(3 * time.Second)
	w := newDirectory(t, map[string]string{"main.tf": required + onServer(srv, climatePreset(device, heatsTo70F)+
		scheduleOn(device, occupied+".climate_preset_key", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
			ends.UTC().Format(time.RFC3339), ""))})
	w.expect(true, "apply", "-auto-approve")
	apptest.Until(t, "the schedule has ended", func() bool { return time.Now().After(ends) })
	w.expect(true, "plan", "-detailed-exitcode")
	w.expect(true, "destroy", "-auto-approve")
}

func TestServerThermostatsAreListed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("ecobee"))
	device := srv.Device(t, "ecobee")
	const data = "data.deviceaccess_thermostats.these"
	these := func(conditions string) string {
		return onServer(srv, "data \"deviceaccess_thermostats\" \"these\" {\n"+conditions+"}\n")
	}
	thermostats := tfjsonpath.New("thermostats")
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: these("  device_type = \"ecobee_thermostat\"\n  manufacturer = \"ecobee\"\n"),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(data, thermostats, knownvalue.ListSizeExact(1)),
				statecheck.ExpectKnownValue(data, thermostats.AtSliceIndex(0), knownvalue.ObjectPartial(
					map[string]knownvalue.Check{
						"device_id":                         isText(device),
						"online":                            knownvalue.Bool(true),
						"min_heating_cooling_delta_celsius": knownvalue.Float64Exact(2.78),
						"min_heating_set_point_fahrenheit":  knownvalue.NotNull(),
						"available_hvac_mode_settings":      knownvalue.NotNull(),
						"available_climate_presets":         knownvalue.NotNull(),
					},
				)),
			},
		},
		{
			Config: these("  manufacturer = \"nest\"\n"),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(data, thermostats, knownvalue.ListSizeExact(0)),
			},
		},
		{
			Config:      these("  manufacturer = \"acme\"\n"),
			ExpectError: says("Could not list thermostats", `manufacturer = "acme"`),
		},
	}})
}
