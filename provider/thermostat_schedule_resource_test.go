package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

const (
	scheduleType = "deviceaccess_thermostat_schedule"
	stay         = scheduleType + ".stay"
)

// schedule is a schedule of the fake thermostat in 2040, with an expression for the key and more attributes.
func schedule(key, attributes string) string {
	return scheduleOn(fakeThermostat, key, "2040-06-01T15:00:00+02:00", "2040-06-03T09:00:00Z", attributes)
}

func scheduleOn(device, key, starts, ends, attributes string) string {
	return fmt.Sprintf("resource %q \"stay\" {\n  device_id = %q\n  climate_preset_key = %s\n  starts_at = %q\n  "+
		"ends_at = %q\n  %s\n}\n", scheduleType, device, key, starts, ends, attributes)
}

// oneRecord is the only record of a kind.
func oneRecord(t *testing.T, records fakeRecords) map[string]any {
	t.Helper()
	for _, record := range records {
		return record
	}
	t.Fatal("there is no record")
	return nil
}

func TestThermostatSchedule_LivesWithItsPreset(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	config := func(attributes string) string {
		return f.config(
			climatePreset(fakeThermostat, heatsTo70F) + schedule(occupied+".climate_preset_key", attributes),
		)
	}
	const overridable = "name = \"Stay 17\"\n  is_override_allowed = true\n  max_override_period_minutes = 90"
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config(overridable), ConfigStateChecks: known(stay, map[string]string{
			"starts_at": "2040-06-01T15:00:00+02:00", "climate_preset_key": "occupied",
		})},
		{Config: config(overridable), ConfigPlanChecks: plansNothing()},
		importsBy(stay, "thermostat_schedule_id", "starts_at"), // the same instant has another spelling
		{ // changed behind Terraform's back
			PreConfig:        func() { f.do(func() { oneRecord(t, f.schedules)["ends_at"] = "2040-06-09T00:00:00Z" }) },
			Config:           config(overridable),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, stay),
		},
		{
			Config:           config(""),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate, stay),
			ConfigStateChecks: known(stay, map[string]string{
				"name": "", "max_override_period_minutes": "",
			}),
		},
		{ // deleted behind Terraform's back
			PreConfig:        func() { f.do(func() { clear(f.schedules) }) },
			Config:           config(""),
			ConfigPlanChecks: plans(plancheck.ResourceActionCreate, stay),
		},
	}})
}

func TestThermostatSchedule_ThatHasEndedStaysInTheState(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	starts, ends := at(-48*time.Hour), at(-time.Hour)
	config := func(ends, attributes string) string {
		return required + f.config(scheduleOn(fakeThermostat, `"sleep"`, starts, ends, attributes))
	}
	w := newDirectory(t, map[string]string{"main.tf": config(ends, "")})
	expectSaid(t, "the plan of its creation", w.plain("plan"), "The schedule has ended", "applying this plan will fail")
	w.expect(true, "apply", "-auto-approve")                                      // which this server takes
	f.do(func() { oneRecord(t, f.schedules)["starts_at"] = at(-24 * time.Hour) }) // servers move a start in the past
	w.expect(true, "plan", "-detailed-exitcode")
	f.do(func() { clear(f.schedules) })
	w.expect(true, "plan", "-detailed-exitcode")
	later := at(48 * time.Hour)
	w.rewrite(config(later, ""))
	expectSaid(t, "the plan of a change", w.plain("plan"), stay+" must be replaced", "ends_at # forces replacement")
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "plan", "-detailed-exitcode")
	w.rewrite(config(later, `name = "Stay"`))
	w.expect(true, "plan")
	if action := w.saved.Action(stay); action != "update" {
		t.Errorf("the next plan is to %s it", action)
	}
	f.do(func() { clear(f.schedules) }) // before it has ended
	w.expect(true, "plan")
	if action := w.saved.Action(stay); action != "create" {
		t.Errorf("a schedule deleted before its end: the plan is to %s it", action)
	}
}

func TestThermostatSchedule_StartKeepsItsValueOnceItHasPassed(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state, server time.Duration
		keeps         bool
	}{
		"both passed":            {-2 * time.Hour, -time.Hour, true},
		"both to come":           {time.Hour, 2 * time.Hour, false},
		"moved to the past":      {time.Hour, -time.Hour, false},
		"moved from the past":    {-time.Hour, time.Hour, false},
		"the same in the past":   {-time.Hour, -time.Hour, true},
		"the same in the future": {time.Hour, time.Hour, true},
	} {
		known := now.Add(c.state)
		m := thermostatScheduleModel{StartsAt: instantOf(&known)}
		m.fill(&api.ThermostatSchedule{StartsAt: now.Add(c.server)}, now)
		if keeps := m.StartsAt.time().Equal(known); keeps != c.keeps {
			t.Errorf("%s: keeps = %t", name, keeps)
		}
	}
	var imported thermostatScheduleModel
	imported.fill(&api.ThermostatSchedule{StartsAt: now.Add(-time.Hour)}, now)
	if imported.StartsAt.time() == nil {
		t.Error("an import has no start")
	}
}

func TestThermostatSchedule_UpdatesAskForWhatDiffers(t *testing.T) {
	t.Parallel()
	state := thermostatScheduleModel{
		ThermostatScheduleID:     types.StringValue("s1"),
		Name:                     types.StringValue("Stay"),
		IsOverrideAllowed:        types.BoolValue(true),
		MaxOverridePeriodMinutes: types.Int64Value(5),
	}
	for attribute, change := range map[string]func(*thermostatScheduleModel){
		"climate_preset_key":          func(m *thermostatScheduleModel) { m.ClimatePresetKey = types.StringValue("away") },
		"name":                        func(m *thermostatScheduleModel) { m.Name = types.StringNull() },
		"starts_at":                   func(m *thermostatScheduleModel) { m.StartsAt = instant{types.StringValue("2040-01-01T00:00:00Z")} },
		"ends_at":                     func(m *thermostatScheduleModel) { m.EndsAt = instant{types.StringValue("2040-01-01T00:00:00Z")} },
		"is_override_allowed":         func(m *thermostatScheduleModel) { m.IsOverrideAllowed = types.BoolValue(false) },
		"max_override_period_minutes": func(m *thermostatScheduleModel) { m.MaxOverridePeriodMinutes = types.Int64Null() },
	} {
		plan := state
		change(&plan)
		request, changes := plan.updateRequest(&state)
		asked := asks(t, request)
		if _, given := asked[attribute]; !changes || !given || len(asked) != 2 {
			t.Errorf("%s: asks for %v", attribute, asked)
		}
		if got := plan.changedAttribute(&state).String(); got != attribute {
			t.Errorf("%s: the reason of a replacement is %s", attribute, got)
		}
	}
	if _, changes := state.updateRequest(&state); changes {
		t.Error("no change asks for an update")
	}
}

func TestThermostatSchedule_PlanIsCheckedAgainstTheThermostat(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	const starts, ends = "2040-06-01T15:00:00Z", "2040-06-03T09:00:00Z"
	for name, c := range map[string]struct {
		config string
		want   []string
	}{
		"it ends first":    {scheduleOn(fakeThermostat, `"sleep"`, ends, starts, ""), []string{"Error: Invalid time frame"}},
		"not a thermostat": {scheduleOn(fakeSensor, `"sleep"`, starts, ends, ""), []string{"Error: Not a thermostat"}},
		"a period without an override": {
			scheduleOn(fakeThermostat, `"sleep"`, starts, ends, "max_override_period_minutes = 5"),
			[]string{"Error: Missing is_override_allowed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drive(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: f.config(c.config), PlanOnly: true, ExpectError: says(c.want...)},
			}})
		})
	}
	w := newDirectory(t, map[string]string{"main.tf": required + f.config(schedule(`"guests"`, ""))})
	expectSaid(t, "the plan", w.plain("plan"), "Climate preset not found", "Its presets: sleep.")
	w.rewrite(
		required + f.config(climatePreset(fakeThermostat, heatsTo70F)+schedule(occupied+".climate_preset_key", "")),
	)
	if said := w.plain("plan"); strings.Contains(said, "Climate preset not found") {
		t.Errorf("a planned preset is missing: %s", said)
	}
}

func TestThermostatSchedule_IsListedAndImportedByIdentity(t *testing.T) {
	t.Parallel()
	f := startFakeClimate(t)
	f.schedules["s1"] = map[string]any{
		"thermostat_schedule_id": "s1", "device_id": fakeThermostat, "workspace_id": fakeWorkspace,
		"name": "Stay 17", "climate_preset_key": "sleep", "starts_at": "2040-06-01T15:00:00.000Z",
		"ends_at": "2040-06-03T09:00:00.000Z", "created_at": "2026-01-02T03:04:05Z", "errors": []any{},
	}
	p := f.plugin(t)
	results := p.lists(&tfprotov6.ListResourceRequest{TypeName: scheduleType, IncludeResource: true})
	if len(results) != 1 || results[0].DisplayName != "Stay 17 from 2040-06-01T15:00:00Z on Front Door" {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	identity := map[string]string{"thermostat_schedule_id": "s1"}
	expectNames(t, "the listed identity", p.names(scheduleType, results[0].Identity), identity)
	read := p.imports(&tfprotov6.ImportResourceStateRequest{
		TypeName: scheduleType, Identity: p.identity(scheduleType, identity),
	})
	if state := p.state(scheduleType, read.NewState); state["device_id"] != fakeThermostat {
		t.Errorf("the state is %v", state)
	}
	f.expectWrites(t, "in the end")
}
