package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func TestThermostats_ShowAndSet(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("ecobee", "minut"))
	device := "/thermostats/" + b.Device(t, "ecobee")
	mustContain(t, mustOpen(t, b, "/thermostats"), device, "°C", "°F")
	mustLack(t, mustOpen(t, b, "/thermostats?q=absent"), device)
	mustLack(t, mustOpen(t, b, "/thermostats"), "Minut")

	viewer := mustOpen(t, b, device)
	mustContain(t, viewer, "Temperature", "Presets", "Schedules")
	mustLack(t, viewer, "Set mode", "Activate", "New schedule")

	mustContain(t, mustSend(t, b, device+"/mode", "mode", "heat", "unit", "fahrenheit", "heat", "68"), "will be set")
	apptest.Until(t, "the thermostat heats to 20 °C", func() bool {
		return strings.Contains(mustOpen(t, b, device), "Heat to 20.0 °C (68 °F)")
	})
	mustContain(t, mustOpen(t, b, device), "Changed", "y this server")

	status, body := sendForm(
		t,
		b,
		domain.RoleOperator,
		device+"/mode",
		"mode",
		"heat",
		"unit",
		"celsius",
		"heat",
		"warm",
	)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("a set point that is no number: %d", status)
	}
	mustContain(t, body, "is no number")
}

// Today leads to the page of a thermostat and of a noise sensor.
func TestToday_LeadsToClimateAndNoise(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("ecobee", "minut"))
	thermostat, sensor := b.Device(t, "ecobee"), b.Device(t, "minut")
	var offline, battery string
	apptest.Until(t, "both devices are offline", func() bool {
		b.Exec(t, "update devices set online = false, battery_level = null")
		offline = mustOpen(t, b, "")
		return strings.Count(offline, "The device is offline.") == 2
	})
	apptest.Until(t, "both batteries are low", func() bool {
		b.Exec(t, "update devices set online = true, battery_level = 0.05")
		battery = mustOpen(t, b, "")
		return strings.Count(battery, "The battery is at 5 %.") == 2
	})
	for _, page := range []string{offline, battery} {
		mustContain(t, page, "/thermostats/"+thermostat, "/noise-sensors/"+sensor)
		mustLack(t, page, "/locks/"+thermostat, "/locks/"+sensor)
	}
}

func TestThermostats_PresetsAndSchedules(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("ecobee"))
	id := b.Device(t, "ecobee")
	device := "/thermostats/" + id
	if status := b.Post(t, "/thermostats/create_climate_preset", map[string]any{
		"device_id": id, "climate_preset_key": "frost", "name": "Frost guard", "hvac_mode_setting": "heat",
		"heating_set_point_celsius": 10,
	}, nil); status != http.StatusOK {
		t.Fatalf("create a preset: %d", status)
	}
	body := mustSend(t, b, device+"/preset", "preset", "frost")
	mustContain(t, body, "Frost guard", "Heat, heat to 10.0 °C (50 °F)")
	apptest.Until(t, "the preset is in effect", func() bool {
		return strings.Contains(mustOpen(t, b, device), "In effect")
	})

	now := time.Now().UTC()
	body = mustSend(
		t,
		b,
		device+"/schedules",
		"name",
		"Winter break",
		"preset",
		"frost",
		"starts",
		now.Add(time.Hour).Format("2006-01-02T15:04"),
		"ends",
		now.Add(2*time.Hour).Format("2006-01-02T15:04"),
	)
	mustContain(t, body, "Winter break", "Later")
	schedule := regexp.MustCompile(device + `/schedules/[0-9a-f-]+/delete`).FindString(body)
	if status, _ := sendForm(t, b, domain.RoleViewer, schedule); status != http.StatusForbidden {
		t.Errorf("a viewer deletes a schedule: %d", status)
	}
	mustLack(t, mustSend(t, b, schedule), "Winter break")

	status, body := sendForm(
		t,
		b,
		domain.RoleOperator,
		device+"/schedules",
		"preset",
		"frost",
		"starts",
		"",
		"ends",
		"soon",
	)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("a schedule without times: %d\n%s", status, body)
	}
}

func TestNoiseSensors_Thresholds(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("minut", "noiseaware", "august"))
	device := "/noise-sensors/" + b.Device(t, "noiseaware")
	mustContain(t, mustOpen(t, b, "/noise-sensors"), device, "dB")
	if status, _ := openPage(
		t,
		b,
		domain.RoleViewer,
		"/noise-sensors/"+b.Device(t, "august"),
	); status != http.StatusNotFound {
		t.Errorf("the page of a lock as a noise sensor: %d", status)
	}
	if strings.Contains(mustOpen(t, b, device), "New threshold") {
		t.Error("a viewer is offered a new threshold")
	}
	device = "/noise-sensors/" + b.Device(t, "minut")
	threshold := regexp.MustCompile(device + `/thresholds/[0-9a-f-]+`).FindString(operatorPage(t, b, device))
	mustSend(
		t,
		b,
		threshold,
		"name",
		"Night party",
		"level",
		"61",
		"unit",
		"decibels",
		"starts",
		"22:30",
		"ends",
		"06:00",
	)
	mustContain(t, mustOpen(t, b, device), "Night party", "61 dB", "22:30:00", "06:00:00")

	status, body := sendForm(
		t,
		b,
		domain.RoleOperator,
		threshold,
		"name",
		"x",
		"level",
		"loud",
		"starts",
		"22:30",
		"ends",
		"06:00",
	)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("a level that is no number: %d", status)
	}
	mustContain(t, body, "is no number")
}

func TestNoiseSensors_CreateAndDeleteThreshold(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("noiseaware"))
	device := "/noise-sensors/" + b.Device(t, "noiseaware")
	mustSend(
		t,
		b,
		device+"/thresholds",
		"name",
		"Quiet hours",
		"level",
		"72",
		"unit",
		"nrs",
		"starts",
		"03:00",
		"ends",
		"04:00",
	)
	body := operatorPage(t, b, device)
	mustContain(t, body, "Quiet hours", "noise risk score 72")
	_, rest, _ := strings.Cut(body, "Quiet hours")
	mustSend(t, b, regexp.MustCompile(device+`/thresholds/[0-9a-f-]+/delete`).FindString(rest))
	apptest.Until(t, "the threshold has left the sensor", func() bool {
		return !strings.Contains(mustOpen(t, b, device), "Quiet hours")
	})
}

// operatorPage returns a page as an operator sees it.
func operatorPage(t *testing.T, b *bed, path string) string {
	t.Helper()
	_, body := openPage(t, b, domain.RoleOperator, path)
	return body
}

func TestLooks_Climate(t *testing.T) {
	t.Parallel()
	b := newBed(t, apptest.WithProfiles("ecobee", "minut"))
	id := b.Device(t, "ecobee")
	now := time.Now()
	if status := b.Post(t, "/thermostats/schedules/create", map[string]any{
		"device_id": id, "climate_preset_key": firstPreset(t, b, id), "name": "Guest stay",
		"starts_at": now.Add(-time.Minute).Format(time.RFC3339), "ends_at": now.Add(time.Hour).Format(time.RFC3339),
	}, nil); status != http.StatusOK {
		t.Fatalf("create a schedule: %d", status)
	}
	checkLooks(t, b,
		visit{"thermostats", "/thermostats"}, visit{"thermostat", "/thermostats/" + id},
		visit{"noise sensors", "/noise-sensors"}, visit{"noise sensor", "/noise-sensors/" + b.Device(t, "minut")},
	)
}

// firstPreset returns the key of a preset of a thermostat.
func firstPreset(t *testing.T, b *bed, id string) string {
	t.Helper()
	match := regexp.MustCompile(`name="preset" value="([^"]+)"`).
		FindStringSubmatch(operatorPage(t, b, "/thermostats/"+id))
	if match == nil {
		t.Fatal("the thermostat has no preset")
	}
	return match[1]
}
