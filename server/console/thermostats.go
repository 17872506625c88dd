package console

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/thermostat"
)

// deviceName is what the events of a device need to know of it.
type deviceName struct {
	id   uuid.UUID
	zone string
}

// thermostatRow is a thermostat in the list.
type thermostatRow struct {
	device.Device
	climate.Current
	temperature *float64
	humidity    *float64
	schedule    string
}

func toThermostatRow(d device.Device) thermostatRow {
	t := thermostat.View(d)
	r := thermostatRow{Device: d, Current: t.Current()}
	if o := t.State.Observed; o != nil {
		r.temperature, r.humidity = o.Temperature, o.Humidity
	}
	return r
}

// mode is the mode in words; empty: unknown.
func (r thermostatRow) mode() string { return modeName(r.Setting.Mode) }

// setTo says what the thermostat is set to.
func (r thermostatRow) setTo() (out []string) {
	if r.Setting.Mode.Heats() && r.Setting.Heat != nil {
		out = append(out, "heat to "+temperature(r.Setting.Heat))
	}
	if r.Setting.Mode.Cools() && r.Setting.Cool != nil {
		out = append(out, "cool to "+temperature(r.Setting.Cool))
	}
	return out
}

// modeNames are the modes in words.
var modeNames = map[capability.HVACMode]string{
	capability.Off:      "Off",
	capability.Heat:     "Heat",
	capability.Cool:     "Cool",
	capability.HeatCool: "Heat and cool",
	capability.Eco:      "Eco",
}

func modeName(m capability.HVACMode) string { return cmp.Or(modeNames[m], string(m)) }

func (h *handler) listThermostats(rq *request) error {
	list, devices, err := h.findDevices(rq, rq.deviceFilter("thermostat"))
	if err != nil {
		return err
	}
	running, err := h.Access.Overview.CurrentSchedules(rq.r.Context(), list.IDs)
	if err != nil {
		return err
	}
	rows := make([]thermostatRow, len(devices))
	for i, d := range devices {
		rows[i] = toThermostatRow(d)
		rows[i].schedule = running[d.ID]
	}
	return rq.show(thermostatsPage(rq, rows, list.Next.String()))
}

// thermostatView is what the page of a thermostat shows.
type thermostatView struct {
	thermostatRow
	limits    capability.Thermostat
	presets   []climate.AvailablePreset
	override  bool
	desired   *climate.Desired
	schedules []thermostat.Schedule
	active    uuid.UUID // the running schedule
	events    deviceEvents
}

// isActive reports whether a preset is in effect.
func (v thermostatView) isActive(p climate.AvailablePreset) bool {
	return v.Preset != nil && v.Preset.Key == p.Key
}

// heats and cools report whether any mode has that set point.
func (v thermostatView) heats() bool { return anyMode(v.limits.Modes, capability.HVACMode.Heats) }
func (v thermostatView) cools() bool { return anyMode(v.limits.Modes, capability.HVACMode.Cools) }

func anyMode(modes []capability.HVACMode, has func(capability.HVACMode) bool) bool {
	for _, m := range modes {
		if has(m) {
			return true
		}
	}
	return false
}

// setPointRange says which set points a device accepts; empty: any.
func setPointRange(low, high *float64) string {
	if low == nil || high == nil {
		return ""
	}
	return "From " + temperature(low) + " to " + temperature(high)
}

func (h *handler) showThermostat(rq *request) error {
	ctx := rq.r.Context()
	d, err := h.Access.Thermostats.Get(ctx, rq.reader(), rq.param("thermostat"), "")
	if err != nil {
		return err
	}
	view := thermostat.View(d)
	v := thermostatView{
		thermostatRow: toThermostatRow(d),
		limits:        view.Limits,
		presets:       view.AvailablePresets(),
		override:      view.OverrideActive(),
		desired:       view.State.Desired,
		active:        view.State.Baseline.Schedule,
	}
	if v.schedules, err = h.upcomingSchedules(rq, d.ID.String()); err != nil {
		return err
	}
	if v.events, err = h.findDeviceEvents(rq, deviceName{d.ID, d.TimeZone}); err != nil {
		return err
	}
	return rq.show(thermostatPage(rq, v))
}

// upcomingSchedules returns the schedules of a thermostat that have not ended.
func (h *handler) upcomingSchedules(rq *request, id string) (out []thermostat.Schedule, err error) {
	all, err := h.Access.Thermostats.ListSchedules(rq.r.Context(), rq.reader(), id)
	for _, s := range all {
		if s.EndsAt.After(rq.now) {
			out = append(out, s)
		}
	}
	return out, err
}

// presetName returns the name of a preset of the thermostat by its key.
func (v thermostatView) presetName(key string) string {
	for _, p := range v.presets {
		if p.Key == key {
			return p.DisplayName()
		}
	}
	return key
}

// presetOptions are the presets to choose from.
func (v thermostatView) presetOptions() (out []option) {
	for _, p := range v.presets {
		out = append(out, option{p.Key, p.DisplayName()})
	}
	return out
}

// thermostatURL is the URL of the thermostat in the path.
func (rq *request) thermostatURL() string { return rq.url("/thermostats/" + rq.param("thermostat")) }

func (h *handler) setMode(rq *request) error {
	heat, heatErr := rq.degrees("heat", "The heating set point")
	cool, coolErr := rq.degrees("cool", "The cooling set point")
	if err := domain.All(heatErr, coolErr); err != nil {
		return err
	}
	setting := climate.Setting{Mode: capability.HVACMode(rq.form("mode"))}
	if setting.Mode.Heats() {
		setting.Heat = heat
	}
	if setting.Mode.Cools() {
		setting.Cool = cool
	}
	if _, err := h.Access.Thermostats.SetMode(
		rq.r.Context(),
		rq.principal,
		rq.param("thermostat"),
		setting,
	); err != nil {
		return err
	}
	return rq.done(rq.thermostatURL(), "mode")
}

func (h *handler) setFan(rq *request) error {
	setting := climate.Setting{Fan: capability.FanMode(rq.form("fan"))}
	if _, err := h.Access.Thermostats.SetFan(
		rq.r.Context(),
		rq.principal,
		rq.param("thermostat"),
		setting,
	); err != nil {
		return err
	}
	return rq.done(rq.thermostatURL(), "fan")
}

func (h *handler) activatePreset(rq *request) error {
	_, err := h.Access.Thermostats.ActivatePreset(
		rq.r.Context(), rq.principal, rq.param("thermostat"), rq.form("preset"),
	)
	if err != nil {
		return err
	}
	return rq.done(rq.thermostatURL(), "preset")
}

func (h *handler) createSchedule(rq *request) error {
	ctx := rq.r.Context()
	d, err := h.Access.Thermostats.Get(ctx, rq.reader(), rq.param("thermostat"), "")
	if err != nil {
		return err
	}
	name, override := rq.form("name"), rq.form("override") != ""
	_, err = h.Access.Thermostats.CreateSchedule(ctx, rq.principal, d.ID.String(), thermostat.ScheduleFields{
		Name:            &name,
		Preset:          rq.form("preset"),
		StartsAt:        rq.clockTime("starts", d.TimeZone),
		EndsAt:          rq.clockTime("ends", d.TimeZone),
		OverrideAllowed: &override,
		SetMaxOverride:  true,
	})
	if err != nil {
		return err
	}
	return rq.done(rq.thermostatURL(), "schedule")
}

func (h *handler) deleteSchedule(rq *request) error {
	ctx := rq.r.Context()
	s, err := h.Access.Thermostats.GetSchedule(ctx, rq.reader(), rq.param("schedule"))
	if err != nil {
		return err
	}
	if s.DeviceID.String() != rq.param("thermostat") {
		return errNoPage
	}
	if err := h.Access.Thermostats.DeleteSchedule(ctx, rq.principal, s.ID.String()); err != nil {
		return err
	}
	return rq.done(rq.thermostatURL(), "schedule-deleted")
}

// localClock shows a time in a zone as a field of a form takes it.
func localClock(at time.Time, zone string) string {
	place, err := time.LoadLocation(zone)
	if err != nil {
		place = time.UTC
	}
	return at.In(place).Format(clockLayout)
}
