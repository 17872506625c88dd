package spec_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
)

// whole checks that an event has exactly the fields of its type.
func (s *tale) whole(t *testing.T, e api.Event) {
	t.Helper()
	fields := e.AdditionalProperties
	for _, field := range contractFields(e.EventType) {
		if _, there := fields[field]; !there {
			t.Errorf("%s lacks %s", e.EventType, field)
		}
	}
	if e.WorkspaceID != s.s.WorkspaceID || e.CreatedAt.IsZero() || e.OccurredAt.IsZero() ||
		e.OccurredAt.After(e.CreatedAt.Add(time.Second)) {
		t.Errorf("%s: workspace %s, created %s, occurred %s", e.EventType, e.WorkspaceID, e.CreatedAt, e.OccurredAt)
	}
	for field, value := range fields {
		if (strings.HasSuffix(field, "_errors") || strings.HasSuffix(field, "_warnings")) &&
			reflect.TypeOf(value).Kind() != reflect.Slice {
			t.Errorf("%s: %s is %v", e.EventType, field, value)
		}
		if options, ok := enums[field]; ok && !slices.Contains(options, fmt.Sprint(value)) {
			t.Errorf("%s: %s is %v", e.EventType, field, value)
		}
	}
	for _, about := range []string{"device", "connected_account"} {
		_, is := fields[about+"_id"]
		if _, there := fields[about+"_custom_metadata"].(map[string]any); is != there {
			t.Errorf("%s: %s_custom_metadata is %v", e.EventType, about, fields[about+"_custom_metadata"])
		}
	}
	if !slices.Contains(carryPINs, e.EventType) {
		for _, pin := range pins {
			if strings.Contains(fmt.Sprint(fields), pin) {
				t.Errorf("%s carries a PIN", e.EventType)
			}
		}
	}
	var one api.EventResponse
	if s.post(t, "/events/get", map[string]any{"event_id": e.EventID}, &one); !reflect.DeepEqual(one.Event, e) {
		t.Errorf("%s is read otherwise than it is listed", e.EventType)
	}
}

// enums are the allowed values of fields.
var enums = map[string][]string{
	"method":         {"keycode", "manual", "automatic", "unknown", "remote", "card"},
	"error_code":     {"account_disconnected", "hub_disconnected", "device_disconnected"},
	"battery_status": {"critical", "low", "good", "full"},
}

// contractFields returns the fields that the published events require of a type, in addition to the
// common ones.
func contractFields(eventType string) []string {
	account := []string{"connected_account_errors", "connected_account_warnings"}
	device := append([]string{"device_errors", "device_warnings"}, account...)
	code := append([]string{"access_code_errors", "access_code_warnings"}, device...)
	about, more := []string{}, []string{}
	group, rest, _ := strings.Cut(eventType, ".")
	switch group {
	case "access_code":
		about = []string{"access_code_id", "device_id", "connected_account_id"}
	case "device", "lock", "noise_sensor", "thermostat":
		about = []string{"device_id", "connected_account_id"}
	case "connected_account":
		about = []string{"connected_account_id"}
	case "connect_webview":
		about = []string{"connect_webview_id"}
	case "action_attempt":
		about = []string{"action_attempt_id", "action_type", "status"}
	case "client_session":
		about = []string{"client_session_id"}
	case "phone":
		about = []string{"device_id"}
	case "acs_system", "acs_user", "acs_entrance", "acs_access_group":
		about = []string{"connected_account_id", "acs_system_id"}
		if group != "acs_system" {
			about = append(about, group+"_id")
		}
	case "webhook": // not in the contract
		about = []string{"webhook_id", "disabled_reason"}
	}
	switch {
	case group == "access_code" && slices.Contains([]string{
		"set_on_device",
		"scheduled_on_device",
		"deleted",
		"issued",
	}, rest):
		more = []string{"code"}
	case group == "access_code" && slices.Contains([]string{"name_changed", "code_changed", "time_frame_changed"}, rest):
		more = []string{"from", "to", "description"}
	case eventType == "access_code.backup_access_code_pulled":
		more = []string{"backup_access_code_id"}
	case eventType == "access_code.mutations_requested":
		more = []string{"requested_mutations"}
	case group == "access_code" && (strings.Contains(rest, "delay_in_") || strings.Contains(rest, "failed_to_")):
		more = code
	case eventType == "device.connection_became_flaky":
		more = device
	case strings.HasPrefix(eventType, "device.error.subscription_required"):
		more = device
	case eventType == "device.disconnected", eventType == "device.unmanaged.disconnected":
		more = append([]string{"error_code"}, device...)
	case eventType == "device.low_battery":
		more = []string{"battery_level"}
	case eventType == "device.battery_status_changed":
		more = []string{"battery_status", "battery_level"}
	case eventType == "device.name_changed":
		more = []string{"device_name"}
	case eventType == "lock.locked", eventType == "lock.unlocked":
		more = []string{"method"}
	case eventType == "thermostat.climate_preset_activated":
		more = []string{"climate_preset_key", "thermostat_schedule_id", "is_fallback_climate_preset"}
	case eventType == "thermostat.manually_adjusted":
		more = []string{"method"}
	case group == "thermostat":
		more = []string{"temperature_celsius", "temperature_fahrenheit"}
		if strings.Contains(rest, "threshold") {
			more = append(more, "lower_limit_celsius", "lower_limit_fahrenheit")
			more = append(more, "upper_limit_celsius", "upper_limit_fahrenheit")
		}
	case eventType == "connected_account.created", eventType == "connected_account.successful_login":
		more = []string{"connect_webview_id"}
	case eventType == "connect_webview.login_succeeded":
		more = []string{"connected_account_id"}
	case eventType == "connected_account.disconnected":
		more = account
	case eventType == "acs_system.disconnected":
		more = append([]string{"acs_system_errors", "acs_system_warnings"}, account...)
	}
	return append(about, more...)
}

// Every type that the server emits is in the contract, has the contract's fields in the server's own table, and is
// caused by a step above. A new emitter needs a new step.
func TestEvents_EveryTypeIsTested(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{
		event.WebhookDisabled:                    true, // tested in package webhook
		event.ClientSessionDeleted:               true, // tested with client sessions
		"connected_account.deleted":              true, // tested with the command that disconnects
		"noise_sensor.noise_threshold_triggered": true, // tested with noise sensors
		event.PhoneDeactivated:                   true, // tested with phones
		// Tested with access systems, which have no device.
		"acs_system.added":         true,
		"acs_system.connected":     true,
		"acs_system.disconnected":  true,
		"acs_user.created":         true,
		"acs_user.deleted":         true,
		"acs_entrance.added":       true,
		"acs_entrance.removed":     true,
		"acs_access_group.deleted": true,
		// Tested in thermostats_schedules_test.go and thermostats_device_test.go.
		"thermostat.climate_preset_activated":                 true,
		"thermostat.manually_adjusted":                        true,
		"thermostat.temperature_changed":                      true,
		"thermostat.temperature_reached_set_point":            true,
		"thermostat.temperature_threshold_exceeded":           true,
		"thermostat.temperature_threshold_no_longer_exceeded": true,
	}
	for _, step := range slices.Concat(life, delays, refusals, ends, flaps, unmanaged, backups, logins, unpaid, hubs, issues) {
		for _, eventType := range step.want {
			tried[eventType] = true
		}
	}
	for eventType, fields := range event.EmittedEvents() {
		if !slices.Contains(event.Types(), eventType) {
			t.Errorf("%s is no event type of the contract", eventType)
		}
		if want := contractFields(
			eventType,
		); !slices.Equal(
			slices.Sorted(slices.Values(fields)),
			slices.Sorted(slices.Values(want)),
		) {
			t.Errorf("%s: the server's table has %v, the contract %v", eventType, fields, want)
		}
		if !tried[eventType] {
			t.Errorf("%s is caused by no step", eventType)
		}
	}
}
