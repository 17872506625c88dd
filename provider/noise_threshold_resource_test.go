package provider

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

const (
	thresholdType = "deviceaccess_noise_threshold"
	night         = thresholdType + ".night"
)

// noiseThreshold is a threshold of a sensor at night with these attributes.
func noiseThreshold(device, attributes string) string {
	return fmt.Sprintf("resource %q \"night\" {\n  device_id = %q\n  starts_daily_at = \"22:00:00[Europe/Paris]\"\n  "+
		"ends_daily_at = \"07:00:00[Europe/Paris]\"\n  %s\n}\n", thresholdType, device, attributes)
}

func TestNoiseThreshold_Lives(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	config := func(attributes string) string { return f.config(noiseThreshold(fakeSensor, attributes)) }
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if len(f.thresholds) != 0 {
				return fmt.Errorf("thresholds are left")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config:            config("noise_threshold_decibels = 60"),
				ConfigStateChecks: known(night, map[string]string{"name": "Night", "noise_threshold_nrs": ""}),
			},
			{Config: config("noise_threshold_decibels = 60"), ConfigPlanChecks: plansNothing()},
			importsBy(night, "noise_threshold_id"),
			{ // changed behind Terraform's back
				PreConfig: func() {
					f.do(func() { oneRecord(t, f.thresholds)["noise_threshold_decibels"] = 90 })
				},
				Config:           config("noise_threshold_decibels = 60"),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, night),
			},
			{
				Config:            config("name = \"Quiet\"\n  noise_threshold_decibels = 55.5"),
				ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate, night),
				ConfigStateChecks: degrees(night, map[string]float64{"noise_threshold_decibels": 55.5}),
			},
			{ // deleted behind Terraform's back
				PreConfig:        func() { f.do(func() { clear(f.thresholds) }) },
				Config:           config("noise_threshold_decibels = 60"),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, night),
			},
		},
	})
}

func TestNoiseThreshold_OfNoiseAware_HasTwoUnits(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	f.devices[1]["device_type"] = "noiseaware_activity_zone"
	config := func(attributes string) string { return f.config(noiseThreshold(fakeSensor, attributes)) }
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config("noise_threshold_nrs = 40"),
			ConfigStateChecks: degrees(night, map[string]float64{
				"noise_threshold_nrs": 40, "noise_threshold_decibels": 55,
			}),
		},
		{Config: config("noise_threshold_nrs = 40"), ConfigPlanChecks: plansNothing()},
		{
			Config:           config("noise_threshold_nrs = 45"),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, night),
		},
	}})
}

func TestNoiseThreshold_IsCheckedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	of := func(starts, ends, more string) string {
		return fmt.Sprintf(
			"resource %q \"night\" {\n  device_id = %q\n  starts_daily_at = %q\n  ends_daily_at = %q\n  "+
				"%s\n}\n",
			thresholdType,
			fakeSensor,
			starts,
			ends,
			more,
		)
	}
	const level = "noise_threshold_decibels = 60"
	for config, want := range map[string][]string{
		of("22:00:00", "07:00:00", ""):                                   {"Error: Missing level"},
		of("22:00:00", "07:00:00", level+"\n  noise_threshold_nrs = 40"): {"Error: Conflicting arguments"},
		of("22:00", "07:00:00", level):                                   {"Error: Invalid time of day", "22:00:00"},
		of("22:00:00", "24:00:00", level):                                {"Error: Invalid time of day"},
		of("22:00:00[Europe/Paris]", "07:00:00", level):                  {"Error: Different time zones"},
		of("22:00:00", "07:00:00", "noise_threshold_nrs = 40"):           {"Error: Level in another unit"},
		noiseThreshold(fakeThermostat, level):                            {"Error: Not a noise sensor", "deviceaccess_noise_sensors"},
	} {
		drive(t, resource.TestCase{Steps: []resource.TestStep{
			{Config: f.config(config), PlanOnly: true, ExpectError: says(want...)},
		}})
	}
	f.expectWrites(t, "in the end")
}

func TestNoiseThreshold_WaitsForItsSensor(t *testing.T) {
	t.Parallel()
	const soon = "\n  timeouts {\n    create = \"1s\"\n    update = \"1s\"\n    delete = \"1s\"\n  }"
	for name, c := range map[string]struct {
		attempt func(*fakeAttempt)
		creates bool // successfully
		says    []string
	}{
		"it is offline": {
			func(a *fakeAttempt) { a.looks = 1 << 30 }, true,
			[]string{"Noise threshold may not be on its sensor yet", "The threshold is in the state"},
		},
		"it refuses": {
			func(a *fakeAttempt) {
				a.failure = map[string]any{"type": "invalid_input", "message": "The sensor has room for two."}
			}, false,
			[]string{"The sensor has room for two.", "is marked as tainted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeClimate(t)
			config := func(level int) string {
				return required + f.config(
					noiseThreshold(fakeSensor, fmt.Sprintf("noise_threshold_decibels = %d", level)+soon),
				)
			}
			w := newDirectory(t, map[string]string{"main.tf": config(60)})
			answers := func(attempt func(*fakeAttempt)) { f.do(func() { f.nextAttempt = attempt }) }
			answers(c.attempt)
			w.expect(c.creates, "apply", "-auto-approve")
			expectSaid(t, "the creation", plainly(w.seen.String()), c.says...)
			if w.core.IsTainted(night) == c.creates {
				t.Errorf("tainted: %t", w.core.IsTainted(night))
			}
			answers(nil)
			w.expect(true, "apply", "-auto-approve")
			answers(c.attempt)
			w.rewrite(config(70))
			w.expect(false, "apply", "-auto-approve")
			w.expect(false, "destroy", "-auto-approve")
			expectSaid(t, "the destroy", plainly(w.seen.String()), "The noise threshold", `"Night" on the device`)
			answers(nil)
			w.expect(true, "destroy", "-auto-approve")
		})
	}
}

func TestNoiseThreshold_IsListedAndImportedByIdentity(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	f.thresholds["t1"] = map[string]any{
		"noise_threshold_id": "t1", "device_id": fakeSensor, "name": "Night", "noise_threshold_decibels": 55.0,
		"noise_threshold_nrs": 40.0, "starts_daily_at": "22:00:00", "ends_daily_at": "07:00:00",
	}
	p := f.plugin(t)
	results := p.lists(&tfprotov6.ListResourceRequest{TypeName: thresholdType, IncludeResource: true})
	if len(results) != 1 || results[0].DisplayName != "Night on Front Door" {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	identity := map[string]string{"noise_threshold_id": "t1"}
	expectNames(t, "the listed identity", p.names(thresholdType, results[0].Identity), identity)
	read := p.imports(&tfprotov6.ImportResourceStateRequest{
		TypeName: thresholdType, Identity: p.identity(thresholdType, identity),
	})
	if state := p.state(thresholdType, read.NewState); state["device_id"] != fakeSensor {
		t.Errorf("the state is %v", state)
	}
	generated := p.generates(thresholdType, results[0].Resource)
	if !generated["noise_threshold_decibels"].IsNull() || generated["noise_threshold_nrs"].IsNull() {
		t.Errorf("the generated configuration has %v", generated)
	}
	f.expectWrites(t, "in the end")
}
