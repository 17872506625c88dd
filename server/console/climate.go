package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func (h *handler) climateRoutes() []route {
	const thermostat, noise = "/thermostats/{thermostat}", "/noise-sensors/{sensor}"
	return []route{
		page("/thermostats", h.listThermostats),
		page(thermostat, h.showThermostat),
		action(domain.RoleOperator, thermostat+"/mode", "/thermostats/set_hvac_mode", h.setMode),
		action(domain.RoleOperator, thermostat+"/fan", "/thermostats/set_fan_mode", h.setFan),
		action(domain.RoleOperator, thermostat+"/preset", "/thermostats/activate_climate_preset", h.activatePreset),
		action(domain.RoleOperator, thermostat+"/schedules", "/thermostats/schedules/create", h.createSchedule),
		action(
			domain.RoleOperator,
			thermostat+"/schedules/{schedule}/delete",
			"/thermostats/schedules/delete",
			h.deleteSchedule,
		),
		page("/noise-sensors", h.listNoiseSensors),
		page(noise, h.showNoiseSensor),
		action(domain.RoleOperator, noise+"/thresholds", "/noise_sensors/noise_thresholds/create", h.createThreshold),
		action(
			domain.RoleOperator,
			noise+"/thresholds/{threshold}",
			"/noise_sensors/noise_thresholds/update",
			h.updateThreshold,
		),
		action(
			domain.RoleOperator,
			noise+"/thresholds/{threshold}/delete",
			"/noise_sensors/noise_thresholds/delete",
			h.deleteThreshold,
		),
	}
}

var climateNotices = map[string]string{
	"mode":              "The thermostat will be set. The page shows the new mode once the device confirms it.",
	"fan":               "The fan will be set. The page shows the new mode once the device confirms it.",
	"preset":            "The preset will be activated. The page shows it once the device confirms it.",
	"schedule":          "The schedule was created.",
	"schedule-deleted":  "The schedule was deleted.",
	"threshold":         "The threshold will be set on the sensor.",
	"threshold-deleted": "The threshold will be deleted from the sensor.",
}

// deviceEventRows is the number of events on the page of a device.
const deviceEventRows = 25

// deviceEvents are events of a device, and where the next page of them starts.
type deviceEvents struct {
	list []overview.Event
	next string
	zone string
}

// findDeviceEvents returns the page of a device's events in the URL.
func (h *handler) findDeviceEvents(rq *request, d deviceName) (deviceEvents, error) {
	list, next, err := h.Access.Overview.EventsOfDevice(
		rq.r.Context(),
		rq.workspace.ID,
		d.id,
		overview.ParsePosition(rq.query(afterParam)),
		deviceEventRows,
	)
	return deviceEvents{list, next.String(), d.zone}, err
}

// eventNames are the names of event types whose words do not say what happened.
var eventNames = map[string]string{
	"device.connected":                                    "Came online",
	"device.disconnected":                                 "Went offline",
	"device.added":                                        "Device found",
	"device.low_battery":                                  "Battery low",
	"device.connection_became_flaky":                      "Connection unstable",
	"device.connection_stabilized":                        "Connection stable",
	"device.unmanaged.converted_to_managed":               "Now managed",
	"thermostat.manually_adjusted":                        "Changed",
	"thermostat.temperature_reached_set_point":            "Temperature reached the set point",
	"thermostat.temperature_threshold_exceeded":           "Temperature outside of its limits",
	"thermostat.temperature_threshold_no_longer_exceeded": "Temperature within its limits",
	"noise_sensor.noise_threshold_triggered":              "Noise above a threshold",
}

// eventName returns an event type in words.
func eventName(eventType string) string {
	if name := eventNames[eventType]; name != "" {
		return name
	}
	_, words, _ := strings.Cut(eventType, ".")
	words = strings.NewReplacer("_", " ", ".", ": ").Replace(words)
	return cmp.Or(capitalized(words), eventType)
}

// eventDetails returns the fields of an event that people want to know. It names each of them, so that no other field
// gets onto a page.
func eventDetails(e overview.Event) string {
	var out []string
	text := func(field, format string) {
		if v, ok := e.Fields[field].(string); ok && v != "" {
			out = append(out, fmt.Sprintf(format, v))
		}
	}
	degrees := func(field, format string) {
		if v, ok := e.Fields[field].(float64); ok {
			out = append(out, fmt.Sprintf(format, temperature(&v)))
		}
	}
	degrees("temperature_celsius", "%s")
	text("hvac_mode_setting", "mode %s")
	degrees("heating_set_point_celsius", "heat to %s")
	degrees("cooling_set_point_celsius", "cool to %s")
	text("climate_preset_key", "preset %s")
	degrees("lower_limit_celsius", "at least %s")
	degrees("upper_limit_celsius", "at most %s")
	text("noise_threshold_name", "threshold %s")
	if v, ok := e.Fields["noise_level_decibels"].(float64); ok {
		out = append(out, decibels(&v))
	}
	text("battery_status", "battery %s")
	if method, _ := e.Fields["method"].(string); method == "external" {
		out = append(out, "at the device or in the vendor's app")
	} else if method == "seam" {
		out = append(out, "by this server")
	}
	return capitalized(strings.Join(slices.Compact(out), ", "))
}

// modelName is the manufacturer and the model of a device, without a repetition.
func modelName(d device.Device) string {
	if strings.HasPrefix(strings.ToLower(d.Model), strings.ToLower(d.Manufacturer)) {
		return d.Model
	}
	return d.Manufacturer + " " + d.Model
}

// temperature returns a temperature in both units; empty: unknown.
func temperature(celsius *float64) string {
	if celsius == nil {
		return ""
	}
	return fmt.Sprintf("%.1f °C (%.0f °F)", *celsius, climate.Fahrenheit(*celsius))
}

// decibels returns a level of noise; empty: unknown.
func decibels(level *float64) string {
	if level == nil {
		return ""
	}
	return fmt.Sprintf("%.0f dB", *level)
}

// number reads a field with a number, which can have a decimal comma. It is nil if the field is empty.
func (rq *request) number(field, label string) (*float64, error) {
	text := rq.form(field)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil {
		return nil, domain.Invalidf(field, "%s is no number. Enter digits, such as 21.5.", label)
	}
	return &n, nil
}

// maxDegrees keeps the arithmetic of temperatures finite.
const maxDegrees = 1000

// degrees reads a temperature in the unit that the form names, in °C.
func (rq *request) degrees(field, label string) (*float64, error) {
	n, err := rq.number(field, label)
	if n == nil || err != nil {
		return nil, err
	}
	if rq.form("unit") == "fahrenheit" {
		*n = climate.Celsius(*n)
	}
	if !(*n > -maxDegrees && *n < maxDegrees) {
		return nil, domain.Invalidf(field, "%s is no temperature. Enter a number such as 21.5.", label)
	}
	return n, nil
}

// clockLayout is the layout of a datetime-local field.
const clockLayout = "2006-01-02T15:04"

// clockTime reads a field with a local time in a zone, and returns it in the layout of the API. Another text is
// returned unchanged, for the domain to refuse.
func (rq *request) clockTime(field, zone string) string {
	place, err := time.LoadLocation(zone)
	if err != nil {
		place = time.UTC
	}
	at, err := time.ParseInLocation(clockLayout, rq.form(field), place)
	if err != nil {
		return rq.form(field)
	}
	return at.Format(time.RFC3339)
}

// zoneFact is the name of a zone on pages.
func zoneFact(zone string) string {
	if zone == "" {
		return "UTC, because the time zone of the device is unknown"
	}
	return zone
}

// deviceURL is the URL of the page of a device.
func (rq *request) deviceURL(d device.Device) string {
	switch {
	case d.Capabilities.Thermostat != nil:
		return rq.url("/thermostats/" + d.ID.String())
	case d.Capabilities.NoiseSensor != nil:
		return rq.url("/noise-sensors/" + d.ID.String())
	}
	return rq.url("/locks/" + d.ID.String())
}
