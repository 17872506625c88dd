package spec_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// thresholds lists the noise thresholds of a device.
func thresholds(t *testing.T, s *apptest.Server, device string, in params) []api.NoiseThreshold {
	t.Helper()
	var out api.NoiseThresholdsResponse
	in = also(params{"device_id": device}, in)
	if status := s.Post(t, "/noise_sensors/noise_thresholds/list", in, &out); status != http.StatusOK {
		t.Fatalf("list the thresholds: %d", status)
	}
	return out.NoiseThresholds
}

// untilThreshold waits until the list shows a threshold for which ok holds, and returns it.
func untilThreshold(
	t *testing.T, s *apptest.Server, device, what string, ok func(api.NoiseThreshold) bool,
) (found api.NoiseThreshold) {
	t.Helper()
	apptest.Until(t, what, func() bool {
		list := thresholds(t, s, device, nil)
		i := slices.IndexFunc(list, ok)
		if i >= 0 {
			found = list[i]
		}
		return i >= 0
	})
	return found
}

// createThreshold creates a threshold and waits for its attempt.
func createThreshold(t *testing.T, s *apptest.Server, device string, in params) api.NoiseThresholdCreatedResponse {
	t.Helper()
	var out api.NoiseThresholdCreatedResponse
	in = also(params{"device_id": device, "sync": true}, in)
	if status := s.Post(t, "/noise_sensors/noise_thresholds/create", in, &out); status != http.StatusOK {
		t.Fatalf("create a threshold: %d", status)
	}
	return out
}

// changeThreshold updates or deletes a threshold and waits for the attempt.
func changeThreshold(t *testing.T, s *apptest.Server, what string, in params) api.ActionAttempt {
	t.Helper()
	var out api.ActionAttemptResponse
	in = also(params{"sync": true}, in)
	if status := s.Post(t, "/noise_sensors/noise_thresholds/"+what, in, &out); status != http.StatusOK {
		t.Fatalf("%s a threshold: %d", what, status)
	}
	return out.ActionAttempt
}

// onSensor returns the thresholds in the memory of a simulated noise sensor.
func onSensor(t *testing.T, s *apptest.Server, device string) map[string]map[string]any {
	t.Helper()
	var memory struct {
		NoiseSensor struct {
			Thresholds []map[string]any `json:"thresholds"`
		} `json:"noise_sensor"`
	}
	if err := json.Unmarshal(s.Lock(t, device).MemoryJSON(t), &memory); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, one := range memory.NoiseSensor.Thresholds {
		out[fmt.Sprint(one["name"])] = one
	}
	return out
}

// A threshold lives on the device from its creation to its deletion, and each step ends its attempt.
func TestNoiseThresholds_Life(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("noiseaware"))
	device := s.Device(t, "noiseaware")
	first := untilThreshold(t, s, device, "the vendor's threshold", func(n api.NoiseThreshold) bool { return true })
	if first.Name != "builtin_normal_hours" || first.StartsDailyAt != "07:00:00" || first.NoiseThresholdDecibels != 60 {
		t.Fatalf("the vendor's threshold: %+v", first)
	}
	made := createThreshold(t, s, device, params{
		"name":                "Night",
		"starts_daily_at":     "22:00:00",
		"ends_daily_at":       "07:00:00",
		"noise_threshold_nrs": 4,
	})
	night := made.NoiseThreshold
	if made.ActionAttempt.Status != "success" || made.ActionAttempt.ActionType != "CREATE_NOISE_THRESHOLD" ||
		*night.NoiseThresholdNrs != 4 || night.NoiseThresholdDecibels != 55 {
		t.Fatalf("created %+v by %+v", night, made.ActionAttempt)
	}
	if on := onSensor(t, s, device)["Night"]; on["custom_id"] != night.NoiseThresholdID ||
		on["starts_daily_at"] != "22:00:00" {
		t.Errorf("on the device: %v", on)
	}
	var one api.NoiseThresholdResponse
	s.Post(t, "/noise_sensors/noise_thresholds/get", params{"noise_threshold_id": night.NoiseThresholdID}, &one)
	if got := one.NoiseThreshold; string(mustJSON(t, got)) != string(mustJSON(t, night)) {
		t.Errorf("it is read as %+v", got)
	}
	update := params{"device_id": device, "noise_threshold_id": night.NoiseThresholdID}
	changed := changeThreshold(t, s, "update", also(update, params{"noise_threshold_decibels": 48, "name": "Late"}))
	result, _ := changed.Result.(map[string]any)["noise_threshold"].(map[string]any)
	if changed.Status != "success" || changed.ActionType != "UPDATE_NOISE_THRESHOLD" ||
		result["noise_threshold_decibels"] != 48.0 || result["name"] != "Late" || result["noise_threshold_nrs"] != nil {
		t.Errorf("updated: %+v", changed)
	}
	if on := onSensor(t, s, device)["Late"]; on["decibels"] != 48.0 {
		t.Errorf("on the device: %v", on)
	}
	if gone := changeThreshold(t, s, "delete", update); gone.Status != "success" ||
		gone.ActionType != "DELETE_NOISE_THRESHOLD" || len(gone.Result.(map[string]any)) != 0 {
		t.Errorf("deleted: %+v", gone)
	}
	if list := thresholds(t, s, device, nil); len(list) != 1 || len(onSensor(t, s, device)) != 1 {
		t.Errorf("after the deletion: %+v", list)
	}
	if got := refused(t, s, s.APIKey, "/noise_sensors/noise_thresholds/get",
		params{"noise_threshold_id": night.NoiseThresholdID}); got != "404 noise_threshold_not_found" {
		t.Errorf("a deleted threshold: %s", got)
	}
	// The vendor's own threshold is changed like any other.
	builtin := params{"device_id": device, "noise_threshold_id": first.NoiseThresholdID}
	if a := changeThreshold(
		t,
		s,
		"update",
		also(builtin, params{"noise_threshold_decibels": 66}),
	); a.Status != "success" {
		t.Errorf("updated the vendor's: %+v", a)
	}
	if a := changeThreshold(t, s, "delete", builtin); a.Status != "success" || len(onSensor(t, s, device)) != 0 {
		t.Errorf("deleted the vendor's: %+v", a)
	}
}

// Noise above a threshold that holds now is reported, with the vendor's metadata, until the noise ends. The window of
// the threshold spans midnight in its time zone.
func TestNoiseThresholds_Triggered(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("noiseaware"))
	device := s.Device(t, "noiseaware")
	simulate := func() string {
		return refused(t, s, s.APIKey, "/noise_sensors/simulate/trigger_noise_threshold", params{"device_id": device})
	}
	first := untilThreshold(t, s, device, "the vendor's threshold", func(n api.NoiseThreshold) bool { return true })
	changeThreshold(t, s, "delete", params{"device_id": device, "noise_threshold_id": first.NoiseThresholdID})
	if got := simulate(); got != "400 invalid_input" {
		t.Errorf("noise without a threshold: %s", got)
	}
	// The zone in which it is almost midnight, or just after. The names of these zones have the opposite sign.
	hour := time.Now().UTC().Hour()
	zone := fmt.Sprintf("Etc/GMT-%d", (24-hour)%24)
	if hour > 12 {
		zone = fmt.Sprintf("Etc/GMT-%d", 24-hour)
	} else if hour > 0 {
		zone = fmt.Sprintf("Etc/GMT+%d", hour)
	}
	night := createThreshold(t, s, device, params{
		"starts_daily_at":          "22:30:00[" + zone + "]",
		"ends_daily_at":            "02:30:00[" + zone + "]",
		"noise_threshold_decibels": 52,
	}).NoiseThreshold
	if night.StartsDailyAt != "22:30:00["+zone+"]" || night.Name == "" {
		t.Errorf("created %+v", night)
	}
	if got := simulate(); got != "200 " {
		t.Fatalf("noise: %s", got)
	}
	p := get(t, s, device).Properties
	if !slices.Equal(*p.CurrentlyTriggeringNoiseThresholdIds, []string{night.NoiseThresholdID}) ||
		*p.NoiseLevelDecibels <= 52 || *p.NoiseawareMetadata.NoiseLevelNrs <= 0 || p.NoiseawareMetadata.DeviceID == "" {
		t.Errorf("the device shows %s", mustJSON(t, p))
	}
	triggered := func() []api.Event {
		var out api.EventsResponse
		s.Post(t, "/events/list", params{
			"since":      "2020-01-01",
			"device_id":  device,
			"event_type": "noise_sensor.noise_threshold_triggered",
		}, &out)
		return out.Events
	}
	events := triggered()
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	e := events[0].AdditionalProperties
	metadata, _ := e["noiseaware_metadata"].(map[string]any)
	if e["noise_threshold_id"] != night.NoiseThresholdID || e["noise_threshold_name"] != night.Name ||
		e["noise_level_decibels"] != *p.NoiseLevelDecibels || metadata["device_id"] != p.NoiseawareMetadata.DeviceID {
		t.Errorf("the event: %v", e)
	}
	s.Lock(t, device).Control(t, http.MethodPost, "/noise", params{"decibels": 30})
	apptest.Until(t, "the noise ends", func() bool {
		return len(*get(t, s, device).Properties.CurrentlyTriggeringNoiseThresholdIds) == 0
	})
	if got := simulate(); got != "200 " || len(triggered()) != 2 {
		t.Errorf("noise again: %s, %d events", got, len(triggered()))
	}
}

// The server sets a threshold again that was changed or deleted in the vendor's app, and shows those that were created
// there.
func TestNoiseThresholds_Drift(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("noiseaware"))
	device := s.Device(t, "noiseaware")
	sensor := s.Lock(t, device)
	builtin := untilThreshold(t, s, device, "the vendor's threshold", func(n api.NoiseThreshold) bool { return true })
	night := createThreshold(t, s, device, params{
		"name":                     "Night",
		"starts_daily_at":          "22:00:00",
		"ends_daily_at":            "06:00:00",
		"noise_threshold_decibels": 50,
	}).NoiseThreshold
	on := func() map[string]any { return onSensor(t, s, device)["Night"] }
	app := params{"name": "Night", "starts_daily_at": "22:00:00", "ends_daily_at": "06:00:00", "decibels": 90}
	sensor.Control(t, http.MethodPut, "/noise_thresholds/"+fmt.Sprint(on()["threshold_id"]), app)
	apptest.Until(t, "a change is reverted", func() bool { return on()["decibels"] == 50.0 })
	was := on()["threshold_id"]
	sensor.Control(t, http.MethodDelete, "/noise_thresholds/"+fmt.Sprint(was), nil)
	apptest.Until(t, "a deletion is reverted", func() bool { return on() != nil && on()["threshold_id"] != was })
	untilThreshold(t, s, device, "it keeps its identifier", func(n api.NoiseThreshold) bool {
		return n.NoiseThresholdID == night.NoiseThresholdID
	})

	dawn := params{"name": "Dawn", "starts_daily_at": "06:00:00", "ends_daily_at": "07:00:00", "decibels": 55}
	sensor.Control(t, http.MethodPost, "/noise_thresholds", dawn)
	found := untilThreshold(t, s, device, "a foreign one is shown", func(n api.NoiseThreshold) bool {
		return n.Name == "Dawn"
	})
	at := "/noise_thresholds/" + fmt.Sprint(onSensor(t, s, device)["Dawn"]["threshold_id"])
	sensor.Control(t, http.MethodPut, at, also(dawn, params{"decibels": 56}))
	untilThreshold(t, s, device, "its change is shown", func(n api.NoiseThreshold) bool {
		return n.NoiseThresholdID == found.NoiseThresholdID && n.NoiseThresholdDecibels == 56
	})
	sensor.Control(t, http.MethodDelete, at, nil)
	apptest.Until(t, "its deletion is shown", func() bool { return len(thresholds(t, s, device, nil)) == 2 })
	if list := thresholds(t, s, device, nil); list[0].NoiseThresholdID != builtin.NoiseThresholdID {
		t.Errorf("the thresholds: %+v", list)
	}
}

// A change waits for a device that is offline.
func TestNoiseThresholds_Offline(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("minut"))
	device := s.Device(t, "minut")
	quiet := untilThreshold(t, s, device, "the quiet hours", func(n api.NoiseThreshold) bool {
		return n.Name == "builtin_quiet_hours"
	})
	s.Post(t, "/devices/simulate/disconnect", params{"device_id": device}, nil)
	update := params{"device_id": device, "noise_threshold_id": quiet.NoiseThresholdID, "noise_threshold_decibels": 47}
	attempt := changeThreshold(t, s, "update", also(update, params{"sync": false}))
	if attempt.Status != "pending" {
		t.Errorf("the attempt: %+v", attempt)
	}
	if got := refused(t, s, s.APIKey, "/noise_sensors/simulate/trigger_noise_threshold",
		params{"device_id": device}); got != "400 device_offline" {
		t.Errorf("noise at an offline device: %s", got)
	}
	s.Post(t, "/devices/simulate/connect", params{"device_id": device}, nil)
	apptest.Until(t, "the change arrives", func() bool {
		return onSensor(t, s, device)["builtin_quiet_hours"]["decibels"] == 47.0
	})
	apptest.Until(t, "the attempt ends", func() bool {
		var out api.ActionAttemptResponse
		s.Post(t, "/action_attempts/get", params{"action_attempt_id": attempt.ActionAttemptID}, &out)
		return out.ActionAttempt.Status == "success"
	})
	s.Post(t, "/noise_sensors/simulate/trigger_noise_threshold", params{"device_id": device}, nil)
	p := get(t, s, device).Properties
	if p.MinutMetadata == nil || p.MinutMetadata.LatestSensorValues.Sound.Value != *p.NoiseLevelDecibels ||
		len(*p.CurrentlyTriggeringNoiseThresholdIds) == 0 {
		t.Errorf("the device shows %s", mustJSON(t, p))
	}
}

// Requests that a sensor cannot fulfill are refused with an error that says why.
func TestNoiseThresholds_Refused(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("minut", "noiseaware", "august"))
	minut, aware := s.Device(t, "minut"), s.Device(t, "noiseaware")
	builtin := untilThreshold(t, s, minut, "the vendor's threshold", func(n api.NoiseThreshold) bool { return true })
	create := func(device string, more params) params {
		return also(params{
			"device_id":                device,
			"starts_daily_at":          "23:00:00",
			"ends_daily_at":            "05:00:00",
			"noise_threshold_decibels": 50,
		}, more)
	}
	update := params{"device_id": minut, "noise_threshold_id": builtin.NoiseThresholdID}
	for name, c := range map[string]struct {
		route string
		in    params
		want  string
	}{
		"an unknown device":      {"create", create(uuid.NewString(), nil), "404 device_not_found"},
		"a lock":                 {"create", create(s.Device(t, "august"), nil), "404 device_not_found"},
		"two levels":             {"create", create(aware, params{"noise_threshold_nrs": 4}), "400 invalid_input"},
		"no level":               {"create", create(aware, params{"noise_threshold_decibels": nil}), "400 invalid_input"},
		"a negative level":       {"create", create(aware, params{"noise_threshold_decibels": -1}), "400 invalid_input"},
		"a time without seconds": {"create", create(aware, params{"starts_daily_at": "23:00"}), "400 invalid_input"},
		"an unknown zone":        {"create", create(aware, params{"starts_daily_at": "23:00:00[Mars/Base]"}), "400 invalid_input"},
		"two zones":              {"create", create(aware, params{"starts_daily_at": "23:00:00[Europe/Berlin]"}), "400 invalid_input"},
		"no duration":            {"create", create(aware, params{"starts_daily_at": "05:00:00"}), "400 invalid_input"},
		"an overlap":             {"create", create(aware, params{"ends_daily_at": "08:00:00"}), "400 invalid_input"},
		"a fixed set":            {"create", create(minut, nil), "400 invalid_input"},
		"a score for Minut":      {"update", also(update, params{"noise_threshold_nrs": 4}), "400 invalid_input"},
		"a fixed threshold":      {"delete", update, "400 invalid_input"},
		"another device":         {"update", also(update, params{"device_id": aware}), "404 noise_threshold_not_found"},
		"an unknown threshold":   {"get", params{"noise_threshold_id": uuid.NewString()}, "404 noise_threshold_not_found"},
		"no threshold":           {"list", params{"device_id": s.Device(t, "august")}, "404 device_not_found"},
	} {
		if got := refused(t, s, s.APIKey, "/noise_sensors/noise_thresholds/"+c.route, c.in); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := refused(t, s, s.APIKey, "/noise_sensors/simulate/trigger_noise_threshold",
		params{"device_id": s.Device(t, "august")}); got != "404 device_not_found" {
		t.Errorf("noise at a lock: %s", got)
	}
	on, off := params{"is_programmed": true}, params{"is_programmed": false}
	if len(thresholds(t, s, minut, on)) != 2 || len(thresholds(t, s, minut, off)) != 0 {
		t.Error("the thresholds on the device are not listed as programmed")
	}
	// A refused change leaves the threshold on the device alone.
	s.Lock(t, minut).Control(t, http.MethodPut, "/faults", params{"failure_rate": params{"invalid": 1}})
	if a := changeThreshold(
		t,
		s,
		"update",
		also(update, params{"noise_threshold_decibels": 70}),
	); a.Status != "error" ||
		a.Error.Type != "device_refused" {
		t.Errorf("a change that the device refuses: %+v", a)
	}
	var one api.NoiseThresholdResponse
	s.Post(t, "/noise_sensors/noise_thresholds/get", params{"noise_threshold_id": builtin.NoiseThresholdID}, &one)
	if one.NoiseThreshold.NoiseThresholdDecibels != builtin.NoiseThresholdDecibels {
		t.Errorf("after the refusal: %+v", one.NoiseThreshold)
	}
}

// The owner of a noise sensor logs in, and the sensor appears with its kind. Minut accepts any address of example.com.
func TestWebview_LoginConnectsNoiseSensor(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august"))
	for vendor, c := range map[string]struct {
		person, kind string
		in           params
	}{
		"minut":      {"someone", "minut_sensor", params{"accepted_capabilities": []string{"noise_sensor"}}},
		"noiseaware": {"john", "noiseaware_activity_zone", params{"provider_category": "noise_sensors"}},
	} {
		w := webview(t, s, c.in)
		if !slices.Equal(w.AcceptedCapabilities, []api.AccountCapability{"noise_sensor"}) {
			t.Errorf("%s: takes %v", vendor, w.AcceptedCapabilities)
		}
		enter(t, w.URL, vendor, as(c.person))
		apptest.Until(t, "the account is connected", func() bool {
			return webviewNow(t, s, w.ConnectWebviewID).Status == "authorized"
		})
		account := *webviewNow(t, s, w.ConnectWebviewID).ConnectedAccountID
		var out api.NoiseSensorsResponse
		in := params{"connected_account_id": account, "manufacturer": vendor}
		apptest.Until(t, "the sensor is listed", func() bool {
			s.Post(t, "/noise_sensors/list", in, &out)
			return len(out.NoiseSensors) == 1
		})
		d := out.NoiseSensors[0]
		if d.DeviceType != c.kind || d.CapabilitiesSupported[0] != "noise_detection" ||
			d.Properties.ImageAltText != "A noise sensor" || d.DeviceProvider.ProviderCategory != "noise_sensors" {
			t.Errorf("%s: the sensor is %+v", vendor, d)
		}
	}
}
