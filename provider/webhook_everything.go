package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// everything stands for all event types, also those to come.
const everything = "*"

var wildcard = types.SetValueMust(types.StringType, []attr.Value{types.StringValue(everything)})

// oldEventTypes are all there were when the published test server of this API made its list. A server that stores all
// event types instead of "*" stores at least these.
var oldEventTypes = []string{
	"access_code.backup_access_code_pulled", "access_code.changed", "access_code.created", "access_code.delay_in_removing_from_device",
	"access_code.delay_in_setting_on_device", "access_code.deleted", "access_code.deleted_external_to_seam", "access_code.failed_to_remove_from_device",
	"access_code.failed_to_set_on_device", "access_code.modified_external_to_seam", "access_code.removed_from_device",
	"access_code.scheduled_on_device", "access_code.set_on_device", "access_code.unmanaged.converted_to_managed", "access_code.unmanaged.created",
	"access_code.unmanaged.failed_to_convert_to_managed", "access_code.unmanaged.removed", "acs_credential.deleted", "acs_user.deleted",
	"client_session.deleted", "connected_account.completed_first_sync", "connected_account.completed_first_sync_after_reconnection",
	"connected_account.connected", "connected_account.created", "connected_account.deleted", "connected_account.disconnected",
	"connected_account.successful_login", "device.battery_status_changed", "device.connected", "device.connection_became_flaky",
	"device.connection_stabilized", "device.converted_to_unmanaged", "device.deleted", "device.disconnected", "device.error.subscription_required",
	"device.error.subscription_required.resolved", "device.low_battery", "device.removed", "device.salto.privacy_mode_activated",
	"device.salto.privacy_mode_deactivated", "device.tampered", "device.third_party_integration_detected",
	"device.third_party_integration_no_longer_detected", "device.unmanaged.connected", "device.unmanaged.converted_to_managed",
	"device.unmanaged.disconnected", "enrollment_automation.deleted", "lock.locked", "lock.unlocked", "noise_sensor.noise_threshold_triggered",
	"phone.deactivated",
}

// isEverything says that the webhook receives all event types there are, as a list instead of "*".
func (m *webhookModel) isEverything(ctx context.Context) bool {
	return containsAll(m.eventTypes(ctx), oldEventTypes)
}
