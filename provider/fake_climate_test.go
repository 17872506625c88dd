package provider

import (
	"maps"
	"net/http"
	"slices"
	"testing"
)

const (
	fakeThermostat = "55555555-2222-4222-8222-222222222222"
	fakeSensor     = "66666666-2222-4222-8222-222222222222"
)

// startFakeClimate is a fake with a thermostat and a noise sensor, which it lists.
func startFakeClimate(t *testing.T) *fake {
	t.Helper()
	f := startFake(t)
	thermostat := device(fakeThermostat, "ecobee_thermostat", map[string]any{
		"available_hvac_mode_settings":      []string{"off", "heat", "cool", "heat_cool"},
		"available_fan_mode_settings":       []string{"auto", "on"},
		"min_heating_set_point_celsius":     7.22,
		"max_heating_set_point_celsius":     26.11,
		"min_cooling_set_point_celsius":     18.33,
		"max_cooling_set_point_celsius":     33.33,
		"min_heating_cooling_delta_celsius": 2.78,
		"available_climate_presets": []map[string]any{{
			"climate_preset_key": "sleep", "display_name": "Sleep", "name": nil, "can_edit": false, "can_delete": false,
			"can_use_with_thermostat_daily_programs": false, "manual_override_allowed": true,
			"hvac_mode_setting": "heat", "heating_set_point_celsius": 17.0, "heating_set_point_fahrenheit": 62.6,
		}},
	})
	thermostat["capabilities_supported"] = []string{"thermostat"}
	sensor := device(fakeSensor, "minut_sensor", map[string]any{})
	sensor["capabilities_supported"] = []string{"noise_detection"}
	f.devices = []map[string]any{thermostat, sensor, device(lockA, "august_lock", map[string]any{})}
	return f
}

// climate are the operations on thermostats and noise sensors.
func (f *fake) climate() map[string]fakeHandler {
	routes := map[string]fakeHandler{
		"/thermostats/list":                  f.listKind("thermostat", "thermostats"),
		"/noise_sensors/list":                f.listKind("noise_detection", "noise_sensors"),
		"/thermostats/create_climate_preset": f.createPreset,
		"/thermostats/update_climate_preset": f.updatePreset,
		"/thermostats/delete_climate_preset": f.deletePreset,
	}
	schedules := f.records("/thermostats/schedules", "thermostat_schedule", "thermostat_schedules", f.schedules)
	maps.Copy(routes, schedules)
	routes["/thermostats/schedules/create"] = func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		body["errors"] = []any{}
		schedules["/thermostats/schedules/create"](w, r, body)
	}
	routes["/thermostats/schedules/list"] = f.listOf("thermostat_schedules", f.schedules)
	thresholds := f.records("/noise_sensors/noise_thresholds", "noise_threshold", "noise_thresholds", f.thresholds)
	routes["/noise_sensors/noise_thresholds/get"] = thresholds["/noise_sensors/noise_thresholds/get"]
	routes["/noise_sensors/noise_thresholds/list"] = f.listOf("noise_thresholds", f.thresholds)
	routes["/noise_sensors/noise_thresholds/create"] = f.createThreshold
	for _, operation := range []string{"update", "delete"} {
		routes["/noise_sensors/noise_thresholds/"+operation] = f.changeThreshold(operation)
	}
	return routes
}

func (f *fake) listKind(capability, name string) fakeHandler {
	return func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		found := []map[string]any{}
		for _, device := range f.devices {
			capabilities, _ := device["capabilities_supported"].([]string)
			if slices.Contains(capabilities, capability) {
				found = append(found, device)
			}
		}
		answer(map[string]any{"devices": found, name: found})(w, r)
	}
}

// listOf lists the records of the device that is asked for.
func (f *fake) listOf(name string, records fakeRecords) fakeHandler {
	return func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		found := []map[string]any{}
		for _, id := range slices.Sorted(maps.Keys(records)) {
			if records[id]["device_id"] == body["device_id"] {
				found = append(found, records[id])
			}
		}
		answer(map[string]any{name: found})(w, r)
	}
}

// presets are those of a device, or nil if there is no such device.
func (f *fake) presets(deviceID any) (properties map[string]any, presets []map[string]any) {
	for _, device := range f.devices {
		if device["device_id"] == deviceID {
			properties = device["properties"].(map[string]any)
			presets, _ = properties["available_climate_presets"].([]map[string]any)
		}
	}
	return properties, presets
}

// preset is the preset of the fake thermostat with a key, or nil.
func (f *fake) preset(key string) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, device := range f.devices {
		_, presets := f.presets(device["device_id"])
		for _, preset := range presets {
			if preset["climate_preset_key"] == key {
				return preset
			}
		}
	}
	return nil
}

func (f *fake) createPreset(w http.ResponseWriter, r *http.Request, body map[string]any) {
	properties, presets := f.presets(body["device_id"])
	for _, preset := range presets {
		if preset["climate_preset_key"] == body["climate_preset_key"] {
			answerError(http.StatusConflict, "duplicate_climate_preset", "The device has a preset with this key")(w, r)
			return
		}
	}
	preset := map[string]any{
		"name": nil, "display_name": body["climate_preset_key"], "can_edit": true, "can_delete": true,
		"can_use_with_thermostat_daily_programs": true, "manual_override_allowed": true,
	}
	maps.Copy(preset, body)
	convertSetPoints(preset, body)
	delete(preset, "device_id")
	properties["available_climate_presets"] = append(presets, preset)
	answer(map[string]any{})(w, r)
}

// convertSetPoints adds the other unit of each set point, rounded as servers do.
func convertSetPoints(preset, body map[string]any) {
	for _, kind := range []setPointKind{heatingSetPoint, coolingSetPoint} {
		if degrees, ok := body[kind.celsius()].(float64); ok {
			preset[kind.celsius()], preset[kind.fahrenheit()] = roundTemperature(degrees), toFahrenheit(degrees)
		}
		if degrees, ok := body[kind.fahrenheit()].(float64); ok {
			preset[kind.celsius()], preset[kind.fahrenheit()] = toCelsius(degrees), roundTemperature(degrees)
		}
	}
}

func (f *fake) updatePreset(w http.ResponseWriter, r *http.Request, body map[string]any) {
	_, presets := f.presets(body["device_id"])
	for _, preset := range presets {
		if preset["climate_preset_key"] == body["climate_preset_key"] {
			maps.Copy(preset, body)
			convertSetPoints(preset, body)
			delete(preset, "device_id")
			answer(map[string]any{})(w, r)
			return
		}
	}
	f.answerNotFound("climate_preset_not_found", "The device has no such preset")(w, r)
}

func (f *fake) deletePreset(w http.ResponseWriter, r *http.Request, body map[string]any) {
	properties, presets := f.presets(body["device_id"])
	left := slices.DeleteFunc(slices.Clone(presets), func(preset map[string]any) bool {
		return preset["climate_preset_key"] == body["climate_preset_key"]
	})
	for _, schedule := range f.schedules {
		if schedule["climate_preset_key"] == body["climate_preset_key"] {
			answerError(http.StatusBadRequest, "climate_preset_in_use", "A schedule uses the preset")(w, r)
			return
		}
	}
	if len(left) == len(presets) {
		f.answerNotFound("climate_preset_not_found", "The device has no such preset")(w, r)
		return
	}
	properties["available_climate_presets"] = left
	answer(map[string]any{})(w, r)
}

func (f *fake) createThreshold(w http.ResponseWriter, r *http.Request, body map[string]any) {
	id := f.newID()
	threshold := map[string]any{"noise_threshold_id": id, "name": "Night", "noise_threshold_decibels": 0.0}
	maps.Copy(threshold, body)
	f.thresholds[id] = threshold
	made := map[string]any{"noise_threshold": threshold}
	f.attempt(made, "CREATE_NOISE_THRESHOLD", func() {
		if threshold["noise_threshold_nrs"] != nil {
			threshold["noise_threshold_decibels"] = 55.0
		}
	})
	answer(made)(w, r)
}

// changeThreshold updates a threshold, or deletes it, once its attempt has succeeded.
func (f *fake) changeThreshold(operation string) fakeHandler {
	return func(w http.ResponseWriter, r *http.Request, body map[string]any) {
		id, _ := body["noise_threshold_id"].(string)
		threshold := f.thresholds[id]
		if threshold == nil {
			f.answerNotFound("noise_threshold_not_found", "There is no such threshold")(w, r)
			return
		}
		done := map[string]any{}
		if operation == "update" {
			f.attempt(done, "UPDATE_NOISE_THRESHOLD", func() { maps.Copy(threshold, body) })
		} else {
			f.attempt(done, "DELETE_NOISE_THRESHOLD", func() { delete(f.thresholds, id) })
		}
		answer(done)(w, r)
	}
}
