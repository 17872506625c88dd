package event

import (
	"maps"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// eventFields are the event types that the server emits, each with the fields that it must carry in addition to
// those of all events: the events of api/openapi.yaml. The table's other types have no cause here,
// because no vendor reports privacy modes, third-party integrations, keypads of their own, or
// doorbells.
var eventFields = func() map[string][]string {
	code := []string{"access_code_id", "device_id", "connected_account_id"}
	device := []string{"device_id", "connected_account_id"}
	account := []string{"connected_account_id"}
	accountTrouble := []string{"connected_account_errors", "connected_account_warnings"}
	deviceTrouble := append([]string{"device_errors", "device_warnings"}, accountTrouble...)
	codeTrouble := append([]string{"access_code_errors", "access_code_warnings"}, deviceTrouble...)
	attempt := []string{"action_attempt_id", "action_type", "status"}
	temperature := []string{"temperature_celsius", "temperature_fahrenheit"}
	temperatureAndLimits := append([]string{
		"lower_limit_celsius",
		"lower_limit_fahrenheit",
		"upper_limit_celsius",
		"upper_limit_fahrenheit",
	}, temperature...)
	table := map[string][]string{
		"access_code.created":                                fieldsWith(code),
		"access_code.changed":                                fieldsWith(code),
		"access_code.mutations_requested":                    fieldsWith(code, "requested_mutations"),
		"access_code.name_changed":                           fieldsWith(code, "from", "to", "description"),
		"access_code.code_changed":                           fieldsWith(code, "from", "to", "description"),
		"access_code.time_frame_changed":                     fieldsWith(code, "from", "to", "description"),
		"access_code.scheduled_on_device":                    fieldsWith(code, "code"),
		"access_code.set_on_device":                          fieldsWith(code, "code"),
		"access_code.removed_from_device":                    fieldsWith(code),
		"access_code.deleted":                                fieldsWith(code, "code"),
		"access_code.delay_in_setting_on_device":             fieldsWith(code, codeTrouble...),
		"access_code.failed_to_set_on_device":                fieldsWith(code, codeTrouble...),
		"access_code.failed_to_update":                       fieldsWith(code, codeTrouble...),
		"access_code.delay_in_removing_from_device":          fieldsWith(code, codeTrouble...),
		"access_code.failed_to_remove_from_device":           fieldsWith(code, codeTrouble...),
		"access_code.failed_to_expire":                       fieldsWith(code, codeTrouble...),
		"access_code.modified_external_to_seam":              fieldsWith(code),
		"access_code.deleted_external_to_seam":               fieldsWith(code),
		"access_code.backup_access_code_pulled":              fieldsWith(code, "backup_access_code_id"),
		"access_code.issued":                                 fieldsWith(code, "code"),
		"access_code.failed_to_issue":                        fieldsWith(code, codeTrouble...),
		"access_code.delay_in_issuing":                       fieldsWith(code, codeTrouble...),
		"access_code.unmanaged.created":                      fieldsWith(code),
		"access_code.unmanaged.removed":                      fieldsWith(code),
		"access_code.unmanaged.converted_to_managed":         fieldsWith(code),
		"access_code.unmanaged.failed_to_convert_to_managed": fieldsWith(code, codeTrouble...),

		"device.added":     fieldsWith(device),
		"device.removed":   fieldsWith(device),
		"device.deleted":   fieldsWith(device),
		"device.connected": fieldsWith(device),
		"device.tampered":  fieldsWith(device),
		"device.disconnected": fieldsWith(
			device,
			append([]string{"error_code"}, deviceTrouble...)...),
		"device.connection_became_flaky":              fieldsWith(device, deviceTrouble...),
		"device.connection_stabilized":                fieldsWith(device),
		"device.error.subscription_required":          fieldsWith(device, deviceTrouble...),
		"device.error.subscription_required.resolved": fieldsWith(device, deviceTrouble...),

		"device.name_changed":           fieldsWith(device, "device_name"),
		"device.low_battery":            fieldsWith(device, "battery_level"),
		"device.battery_status_changed": fieldsWith(device, "battery_status", "battery_level"),
		"device.converted_to_unmanaged": fieldsWith(device),

		"device.unmanaged.converted_to_managed": fieldsWith(device),
		"device.unmanaged.connected":            fieldsWith(device),
		"device.unmanaged.disconnected": fieldsWith(
			device,
			append([]string{"error_code"}, deviceTrouble...)...),

		"acs_system.added":     fieldsWith(account, "acs_system_id"),
		"acs_system.connected": fieldsWith(account, "acs_system_id"),
		"acs_system.disconnected": fieldsWith(
			account,
			"acs_system_id",
			"acs_system_errors",
			"acs_system_warnings",
			"connected_account_errors",
			"connected_account_warnings",
		),
		"acs_user.created":         fieldsWith(account, "acs_system_id", "acs_user_id"),
		"acs_user.deleted":         fieldsWith(account, "acs_system_id", "acs_user_id"),
		"acs_access_group.deleted": fieldsWith(account, "acs_system_id", "acs_access_group_id"),
		"acs_entrance.added":       fieldsWith(account, "acs_system_id", "acs_entrance_id"),
		"acs_entrance.removed":     fieldsWith(account, "acs_system_id", "acs_entrance_id"),

		"lock.locked":        fieldsWith(device, "method"),
		"lock.unlocked":      fieldsWith(device, "method"),
		"lock.access_denied": fieldsWith(device),

		"noise_sensor.noise_threshold_triggered": fieldsWith(device),
		"thermostat.climate_preset_activated": fieldsWith(
			device, "climate_preset_key", "thermostat_schedule_id", "is_fallback_climate_preset",
		),
		"thermostat.manually_adjusted":                        fieldsWith(device, "method"),
		"thermostat.temperature_changed":                      fieldsWith(device, temperature...),
		"thermostat.temperature_reached_set_point":            fieldsWith(device, temperature...),
		"thermostat.temperature_threshold_exceeded":           fieldsWith(device, temperatureAndLimits...),
		"thermostat.temperature_threshold_no_longer_exceeded": fieldsWith(device, temperatureAndLimits...),

		"connected_account.created":                                 fieldsWith(account, "connect_webview_id"),
		"connected_account.connected":                               fieldsWith(account),
		"connected_account.successful_login":                        fieldsWith(account, "connect_webview_id"),
		"connected_account.deleted":                                 fieldsWith(account),
		"connected_account.disconnected":                            fieldsWith(account, accountTrouble...),
		"connected_account.completed_first_sync":                    fieldsWith(account),
		"connected_account.completed_first_sync_after_reconnection": fieldsWith(account),

		"connect_webview.login_succeeded": {"connect_webview_id", "connected_account_id"},
		"connect_webview.login_failed":    {"connect_webview_id"},

		ClientSessionDeleted: {"client_session_id"},
		PhoneDeactivated:     {"device_id"},
		WebhookDisabled:      {"webhook_id", "disabled_reason"},
	}
	for _, action := range AttemptEvents {
		table[action+".succeeded"] = fieldsWith(attempt)
		table[action+".failed"] = fieldsWith(attempt)
	}
	return table
}()

// fieldsWith returns the fields followed by more.
func fieldsWith(fields []string, more ...string) []string {
	return append(append([]string(nil), fields...), more...)
}

// AttemptEvents are the action types whose end is announced, each with the prefix of its event type.
var AttemptEvents = map[string]string{
	domain.LockDoor:                "action_attempt.lock_door",
	domain.UnlockDoor:              "action_attempt.unlock_door",
	domain.SimulateKeypadCodeEntry: "action_attempt.simulate_keypad_code_entry",
	domain.SimulateManualLock:      "action_attempt.simulate_manual_lock_via_keypad",
}

// EmittedEvents returns the event types that the server emits, each with the fields that it must carry in
// addition to those of all events.
func EmittedEvents() map[string][]string { return maps.Clone(eventFields) }
