package access

import "maps"

// eventFields are the event types that the server emits, each with the fields that it must carry in addition to
// those of all events: the table of spec/contract.md section 7. The table's other types have no cause here,
// because no vendor reports tampering, privacy modes, third-party integrations, keypads of their own, or
// doorbells.
var eventFields = func() map[string][]string {
	code := []string{"access_code_id", "device_id", "connected_account_id"}
	device := []string{"device_id", "connected_account_id"}
	account := []string{"connected_account_id"}
	accountTrouble := []string{"connected_account_errors", "connected_account_warnings"}
	deviceTrouble := append([]string{"device_errors", "device_warnings"}, accountTrouble...)
	codeTrouble := append([]string{"access_code_errors", "access_code_warnings"}, deviceTrouble...)
	attempt := []string{"action_attempt_id", "action_type", "status"}
	table := map[string][]string{
		"access_code.created":                                with(code),
		"access_code.changed":                                with(code),
		"access_code.mutations_requested":                    with(code, "requested_mutations"),
		"access_code.name_changed":                           with(code, "from", "to", "description"),
		"access_code.code_changed":                           with(code, "from", "to", "description"),
		"access_code.time_frame_changed":                     with(code, "from", "to", "description"),
		"access_code.scheduled_on_device":                    with(code, "code"),
		"access_code.set_on_device":                          with(code, "code"),
		"access_code.removed_from_device":                    with(code),
		"access_code.deleted":                                with(code, "code"),
		"access_code.delay_in_setting_on_device":             with(code, codeTrouble...),
		"access_code.failed_to_set_on_device":                with(code, codeTrouble...),
		"access_code.failed_to_update":                       with(code, codeTrouble...),
		"access_code.delay_in_removing_from_device":          with(code, codeTrouble...),
		"access_code.failed_to_remove_from_device":           with(code, codeTrouble...),
		"access_code.failed_to_expire":                       with(code, codeTrouble...),
		"access_code.modified_external_to_seam":              with(code),
		"access_code.deleted_external_to_seam":               with(code),
		"access_code.backup_access_code_pulled":              with(code, "backup_access_code_id"),
		"access_code.issued":                                 with(code, "code"),
		"access_code.failed_to_issue":                        with(code, codeTrouble...),
		"access_code.delay_in_issuing":                       with(code, codeTrouble...),
		"access_code.unmanaged.created":                      with(code),
		"access_code.unmanaged.removed":                      with(code),
		"access_code.unmanaged.converted_to_managed":         with(code),
		"access_code.unmanaged.failed_to_convert_to_managed": with(code, codeTrouble...),

		"device.added":     with(device),
		"device.removed":   with(device),
		"device.deleted":   with(device),
		"device.connected": with(device),
		"device.disconnected": with(
			device,
			append([]string{"error_code"}, deviceTrouble...)...),
		"device.connection_became_flaky":              with(device, deviceTrouble...),
		"device.connection_stabilized":                with(device),
		"device.error.subscription_required":          with(device, deviceTrouble...),
		"device.error.subscription_required.resolved": with(device, deviceTrouble...),

		"device.name_changed":           with(device, "device_name"),
		"device.low_battery":            with(device, "battery_level"),
		"device.battery_status_changed": with(device, "battery_status", "battery_level"),
		"device.converted_to_unmanaged": with(device),

		"device.unmanaged.converted_to_managed": with(device),
		"device.unmanaged.connected":            with(device),
		"device.unmanaged.disconnected":         with(device, append([]string{"error_code"}, deviceTrouble...)...),

		"acs_system.added":     with(account, "acs_system_id"),
		"acs_system.connected": with(account, "acs_system_id"),
		"acs_system.disconnected": with(
			account,
			"acs_system_id",
			"acs_system_errors",
			"acs_system_warnings",
			"connected_account_errors",
			"connected_account_warnings",
		),
		"acs_user.created":         with(account, "acs_system_id", "acs_user_id"),
		"acs_user.deleted":         with(account, "acs_system_id", "acs_user_id"),
		"acs_access_group.deleted": with(account, "acs_system_id", "acs_access_group_id"),
		"acs_entrance.added":       with(account, "acs_system_id", "acs_entrance_id"),
		"acs_entrance.removed":     with(account, "acs_system_id", "acs_entrance_id"),

		"lock.locked":        with(device, "method"),
		"lock.unlocked":      with(device, "method"),
		"lock.access_denied": with(device),

		"connected_account.created":                                 with(account, "connect_webview_id"),
		"connected_account.connected":                               with(account),
		"connected_account.successful_login":                        with(account, "connect_webview_id"),
		"connected_account.deleted":                                 with(account),
		"connected_account.disconnected":                            with(account, accountTrouble...),
		"connected_account.completed_first_sync":                    with(account),
		"connected_account.completed_first_sync_after_reconnection": with(account),

		"connect_webview.login_succeeded": {"connect_webview_id", "connected_account_id"},
		"connect_webview.login_failed":    {"connect_webview_id"},

		ClientSessionDeleted: {"client_session_id"},
		WebhookDisabled:      {"webhook_id", "disabled_reason"},
	}
	for _, action := range attemptEvents {
		table[action+".succeeded"] = with(attempt)
		table[action+".failed"] = with(attempt)
	}
	return table
}()

// with returns the fields followed by more.
func with(fields []string, more ...string) []string {
	return append(append([]string(nil), fields...), more...)
}

// attemptEvents are the action types whose end is announced, each with the prefix of its event type.
var attemptEvents = map[string]string{
	LockDoor:                "action_attempt.lock_door",
	UnlockDoor:              "action_attempt.unlock_door",
	SimulateKeypadCodeEntry: "action_attempt.simulate_keypad_code_entry",
	SimulateManualLock:      "action_attempt.simulate_manual_lock_via_keypad",
}

// EmittedEvents returns the event types that the server emits, each with the fields that it must carry in
// addition to those of all events.
func EmittedEvents() map[string][]string { return maps.Clone(eventFields) }
