package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

const (
	presetType = "deviceaccess_climate_preset"
	occupied   = presetType + ".occupied"
)

// climatePreset is a preset of a thermostat with the key occupied and these attributes.
func climatePreset(device, attributes string) string {
	return fmt.Sprintf("resource %q \"occupied\" {\n  device_id = %q\n  climate_preset_key = \"occupied\"\n  %s\n}\n",
		presetType, device, attributes)
}

// degrees are checks of set points.
func degrees(address string, attributes map[string]float64) (checks []statecheck.StateCheck) {
	for name, value := range attributes {
		checks = append(
			checks,
			statecheck.ExpectKnownValue(address, tfjsonpath.New(name), knownvalue.Float64Exact(value)),
		)
	}
	return checks
}

const heatsTo70F = `hvac_mode_setting = "heat"
  heating_set_point_fahrenheit = 70`

func TestClimatePreset_LivesInBothUnits(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	config := func(attributes string) string { return f.config(climatePreset(fakeThermostat, attributes)) }
	drive(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if f.preset("occupied") != nil {
				return fmt.Errorf("the preset is left")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: config(heatsTo70F),
				ConfigStateChecks: degrees(occupied, map[string]float64{
					"heating_set_point_celsius": 21.11, "heating_set_point_fahrenheit": 70,
				}),
				Check: func(*terraform.State) error {
					if asked := f.bodies("/thermostats/create_climate_preset")[0]; asked["heating_set_point_celsius"] != nil {
						return fmt.Errorf("both units are sent: %v", asked)
					}
					return nil
				},
			},
			{Config: config(heatsTo70F), ConfigPlanChecks: plansNothing()},
			{ // the same temperature in the other unit
				Config:           config("hvac_mode_setting = \"heat\"\n  heating_set_point_celsius = 21.11"),
				ConfigPlanChecks: plansNothing(),
			},
			{ // changed behind Terraform's back
				PreConfig:        func() { f.preset("occupied")["heating_set_point_celsius"] = 15.0 },
				Config:           config(heatsTo70F),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, occupied),
			},
			{
				Config: config(`name = "Guests"
  hvac_mode_setting = "heat_cool"
  heating_set_point_celsius = 20
  cooling_set_point_fahrenheit = 75
  fan_mode_setting = "auto"
  climate_preset_mode = "occupied"`),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, occupied),
				ConfigStateChecks: degrees(occupied, map[string]float64{
					"heating_set_point_fahrenheit": 68, "cooling_set_point_celsius": 23.89,
				}),
			},
			{ // what is not configured stays, unless the mode has no use for it
				Config:           config(`hvac_mode_setting = "cool"`),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, occupied),
				ConfigStateChecks: append(
					degrees(occupied, map[string]float64{"cooling_set_point_celsius": 23.89}),
					known(occupied, map[string]string{
						"name": "", "fan_mode_setting": "auto", "heating_set_point_celsius": "",
					})...),
			},
			{Config: config(`hvac_mode_setting = "cool"`), ConfigPlanChecks: plansNothing()},
			{
				ResourceName:  occupied,
				ImportState:   true,
				ImportStateId: fakeThermostat + "/occupied",
				ImportStateCheck: func(states []*terraform.InstanceState) error {
					if got := states[0].Attributes["cooling_set_point_fahrenheit"]; got != "75" {
						return fmt.Errorf("imported %v", states[0].Attributes)
					}
					return nil
				},
			},
			{ // deleted behind Terraform's back
				PreConfig: func() {
					f.do(func() {
						properties, presets := f.presets(fakeThermostat)
						properties["available_climate_presets"] = presets[:1]
					})
				},
				Config:           config(heatsTo70F),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate, occupied),
			},
		},
	})
}

// Terraform compares numbers more exactly than the tests that do without the command.
func TestClimatePreset_NumbersAreConsistentForTerraform(t *testing.T) {
	f := startFakeClimate(t)
	config := func(setPoints string) string {
		return f.config(climatePreset(fakeThermostat, "hvac_mode_setting = \"heat_cool\"\n  "+setPoints))
	}
	inFahrenheit := config("heating_set_point_fahrenheit = 67.3\n  cooling_set_point_fahrenheit = 75.1")
	story(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: inFahrenheit},
		{Config: inFahrenheit, ConfigPlanChecks: plansNothing()},
		{Config: config("heating_set_point_celsius = 18.7\n  cooling_set_point_celsius = 23.9")},
	}})
}

func TestClimatePreset_PlanIsCheckedAgainstTheThermostat(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	for attributes, want := range map[string][]string{
		"hvac_mode_setting = \"heat\"\n  cooling_set_point_celsius = 24": {
			"Error: Conflicting arguments", "has no cooling set point",
		},
		"heating_set_point_celsius = 20\n  heating_set_point_fahrenheit = 68": {"Error: Conflicting arguments", "both set"},
		`hvac_mode_setting = "eco"`:                                          {"Error: Mode not available", "off, heat, cool, heat_cool"},
		`fan_mode_setting = "circulate"`:                                     {"Error: Fan mode not available", "auto, on"},
		"hvac_mode_setting = \"heat\"\n  heating_set_point_fahrenheit = 100": {"Error: Set point out of range", "at most 79 °F"},
		"hvac_mode_setting = \"heat_cool\"\n  heating_set_point_celsius = 22\n  cooling_set_point_celsius = 23": {
			"Error: Set points too close", "at most 20.22 °C",
		},
	} {
		drive(t, resource.TestCase{Steps: []resource.TestStep{
			{Config: f.config(climatePreset(fakeThermostat, attributes)), PlanOnly: true, ExpectError: says(want...)},
		}})
	}
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:      f.config(climatePreset(fakeSensor, heatsTo70F)),
			PlanOnly:    true,
			ExpectError: says("Error: Not a thermostat", "deviceaccess_thermostats"),
		},
	}})
	f.expectWrites(t, "in the end")
}

func TestClimatePreset_OfTheDeviceItselfIsNotChanged(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	sleep := func(attributes string) string {
		return fmt.Sprintf("resource %q \"sleep\" {\n  device_id = %q\n  climate_preset_key = \"sleep\"\n  %s\n}\n",
			presetType, fakeThermostat, attributes)
	}
	w := newDirectory(t, map[string]string{"main.tf": required + f.config(sleep(`hvac_mode_setting = "heat"`))})
	expectSaid(t, "the plan of a creation", w.plain("plan"), "Preset exists already", "cannot be changed here")
	w.expect(true, "import", presetType+".sleep", fakeThermostat+"/sleep")
	w.expect(true, "plan", "-detailed-exitcode")
	w.rewrite(required + f.config(sleep("hvac_mode_setting = \"heat\"\n  heating_set_point_celsius = 20")))
	w.expect(false, "plan")
	expectSaid(t, "the plan of a change", plainly(w.seen.String()), "Preset cannot be changed")
	expectSaid(t, "the plan of a deletion", w.plain("plan", "-destroy"), "Preset cannot be deleted", "destroy = false")
}

func TestClimatePreset_CreationOfAnExistingOneNamesTheImport(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	w := newDirectory(t, map[string]string{"main.tf": required + f.config(climatePreset(fakeThermostat, heatsTo70F))})
	f.then("/thermostats/create_climate_preset",
		answerError(http.StatusConflict, "duplicate_climate_preset", "The device has a preset with this key"))
	w.expect(false, "apply", "-auto-approve")
	expectSaid(t, "the apply", plainly(w.seen.String()), "import it as `"+fakeThermostat+"/occupied`")
}

func TestClimatePreset_ThatAScheduleUses_SaysHowToReplaceIt(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	config := func(key, lifecycle string) string {
		return required + f.config(fmt.Sprintf("resource %q \"occupied\" {\n  device_id = %q\n  "+
			"climate_preset_key = %q\n  hvac_mode_setting = \"heat\"\n%s}\n", presetType, fakeThermostat, key, lifecycle)+
			schedule(occupied+".climate_preset_key", ""))
	}
	w := newDirectory(t, map[string]string{"main.tf": config("occupied", "")})
	w.expect(true, "apply", "-auto-approve")
	w.rewrite(config("guests", ""))
	w.expect(false, "apply", "-auto-approve")
	expectSaid(t, "the apply", plainly(w.seen.String()), "A schedule uses the preset", "`create_before_destroy`")
	w.expect(true, "destroy", "-auto-approve")
}

func TestClimatePreset_IsListedAndImportedByIdentity(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	p := f.plugin(t)
	f.createPreset(httptest.NewRecorder(), nil, map[string]any{
		"device_id": fakeThermostat, "climate_preset_key": "night shift/late", "hvac_mode_setting": "heat",
		"heating_set_point_fahrenheit": 70.0,
	})
	results := p.lists(&tfprotov6.ListResourceRequest{TypeName: presetType, IncludeResource: true})
	if len(results) != 1 || results[0].DisplayName != "night shift/late on Front Door" {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	identity := map[string]string{"device_id": fakeThermostat, "climate_preset_key": "night shift/late"}
	expectNames(t, "the listed identity", p.names(presetType, results[0].Identity), identity)
	for name, request := range map[string]*tfprotov6.ImportResourceStateRequest{
		"by identity": {TypeName: presetType, Identity: p.identity(presetType, identity)},
		"by text":     {TypeName: presetType, ID: fakeThermostat + "/night shift/late"},
	} {
		read := p.imports(request)
		expectNames(t, name, p.names(presetType, read.NewIdentity), identity)
		if state := p.state(presetType, read.NewState); state["hvac_mode_setting"] != "heat" {
			t.Errorf("%s: %v", name, state)
		}
	}
	generated := p.generates(presetType, results[0].Resource)
	if !generated["heating_set_point_fahrenheit"].IsNull() || generated["heating_set_point_celsius"].IsNull() {
		t.Errorf("the generated configuration has %v", generated)
	}
	f.expectWrites(t, "in the end")
}
