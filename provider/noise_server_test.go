package provider

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// thresholdNamed is the threshold of a sensor with a name, or nil.
func thresholdNamed(t *testing.T, srv *apptest.Server, device, name string) *api.NoiseThreshold {
	t.Helper()
	var list api.NoiseThresholdsResponse
	srv.Post(
		t,
		"/noise_sensors/noise_thresholds/list",
		map[string]any{"device_id": device, "is_programmed": true},
		&list,
	)
	for _, threshold := range list.NoiseThresholds {
		if threshold.Name == name {
			return &threshold
		}
	}
	return nil
}

// clearSensor deletes the thresholds that a sensor begins with.
func clearSensor(t *testing.T, srv *apptest.Server, device string) {
	t.Helper()
	var list api.NoiseThresholdsResponse
	srv.Post(t, "/noise_sensors/noise_thresholds/list", map[string]any{"device_id": device}, &list)
	for _, threshold := range list.NoiseThresholds {
		call(t, srv, "/noise_sensors/noise_thresholds/delete", map[string]any{
			"device_id": device, "noise_threshold_id": threshold.NoiseThresholdID, "sync": true,
		})()
	}
}

func TestServerNoiseThreshold_OfNoiseAware(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("noiseaware"))
	device := srv.Device(t, "noiseaware")
	clearSensor(t, srv, device)
	config := func(attributes string) string { return onServer(srv, noiseThreshold(device, attributes)) }
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if thresholdNamed(t, srv, device, "Night") != nil {
				return fmt.Errorf("the threshold is left")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: config("name = \"Night\"\n  noise_threshold_decibels = 60"),
				Check: func(*terraform.State) error {
					if got := thresholdNamed(t, srv, device, "Night"); got == nil || got.NoiseThresholdDecibels != 60 {
						return fmt.Errorf("the sensor has %+v", got)
					}
					return nil
				},
			},
			{Config: config("name = \"Night\"\n  noise_threshold_decibels = 60"), ConfigPlanChecks: plansNothing()},
			importsBy(night, "noise_threshold_id"),
			{ // changed behind Terraform's back
				PreConfig: func() {
					call(t, srv, "/noise_sensors/noise_thresholds/update", map[string]any{
						"noise_threshold_id":       thresholdNamed(t, srv, device, "Night").NoiseThresholdID,
						"device_id":                device,
						"noise_threshold_decibels": 90,
						"sync":                     true,
					})()
				},
				Config:           config("name = \"Night\"\n  noise_threshold_decibels = 60"),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, night),
			},
			{
				Config:           config("name = \"Night\"\n  noise_threshold_nrs = 40"),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, night),
			},
			{Config: config("name = \"Night\"\n  noise_threshold_nrs = 40"), ConfigPlanChecks: plansNothing()},
			{ // deleted behind Terraform's back
				PreConfig:        func() { clearSensor(t, srv, device) },
				Config:           config("name = \"Night\"\n  noise_threshold_decibels = 55"),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, night),
			},
		},
	})
}

func TestServerNoiseThreshold_OfTheVendorIsImportedAndChanged(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("minut"))
	device := srv.Device(t, "minut")
	var list api.NoiseThresholdsResponse
	srv.Post(t, "/noise_sensors/noise_thresholds/list", map[string]any{"device_id": device}, &list)
	if len(list.NoiseThresholds) == 0 {
		t.Fatal("the sensor has no thresholds")
	}
	first := list.NoiseThresholds[0]
	config := func(decibels float64) string {
		return required + onServer(
			srv,
			fmt.Sprintf("resource %q \"night\" {\n  device_id = %q\n  starts_daily_at = %q\n"+
				"  ends_daily_at = %q\n  noise_threshold_decibels = %v\n}\n", thresholdType, device,
				first.StartsDailyAt, first.EndsDailyAt, decibels),
		)
	}
	w := newDirectory(t, map[string]string{"main.tf": config(first.NoiseThresholdDecibels)})
	w.expect(true, "import", night, first.NoiseThresholdID)
	w.expect(true, "plan", "-detailed-exitcode")
	w.rewrite(config(first.NoiseThresholdDecibels + 5))
	w.expect(true, "apply", "-auto-approve")
	if got := thresholdNamed(t, srv, device, first.Name); got == nil ||
		got.NoiseThresholdDecibels != first.NoiseThresholdDecibels+5 {
		t.Errorf("the sensor has %+v", got)
	}
	w.expect(true, "plan", "-detailed-exitcode")
	w.expect(false, "destroy", "-auto-approve")
	expectSaid(t, "the destroy", plainly(w.seen.String()), "Could not delete noise threshold", "`destroy = false`")
}

func TestServerNoiseThreshold_OfAnOfflineSensorIsNotTainted(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("noiseaware"))
	device := srv.Device(t, "noiseaware")
	clearSensor(t, srv, device)
	w := newDirectory(t, map[string]string{"main.tf": required + onServer(srv, noiseThreshold(device,
		"name = \"Night\"\n  noise_threshold_decibels = 60\n  timeouts {\n    create = \"1s\"\n  }"))})
	call(t, srv, "/devices/simulate/disconnect", map[string]any{"device_id": device})()
	w.expect(true, "apply", "-auto-approve")
	expectSaid(t, "the creation", plainly(w.seen.String()), "Noise threshold may not be on its sensor yet")
	w.expect(true, "plan", "-detailed-exitcode")
	call(t, srv, "/devices/simulate/connect", map[string]any{"device_id": device})()
	apptest.Until(t, "the sensor has it", func() bool { return thresholdNamed(t, srv, device, "Night") != nil })
	w.expect(true, "plan", "-detailed-exitcode")
	w.expect(true, "destroy", "-auto-approve")
}

func TestServerNoiseSensorsAreListed(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("minut"))
	const data = "data.deviceaccess_noise_sensors.these"
	sensors := tfjsonpath.New("noise_sensors")
	drive(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: onServer(srv, "data \"deviceaccess_noise_sensors\" \"these\" {\n  manufacturer = \"minut\"\n}\n"),
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(data, sensors, knownvalue.ListSizeExact(1)),
			statecheck.ExpectKnownValue(data, sensors.AtSliceIndex(0), knownvalue.ObjectPartial(
				map[string]knownvalue.Check{
					"device_id":   isText(srv.Device(t, "minut")),
					"device_type": isText("minut_sensor"),
					"online":      knownvalue.Bool(true),
					"capabilities_supported": knownvalue.ListPartial(
						map[int]knownvalue.Check{0: isText("noise_detection")},
					),
				},
			)),
		},
	}}})
}
