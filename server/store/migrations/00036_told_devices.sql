-- +goose Up

-- What is told of a device, without what the server notes about its work on it: two thirds of the columns.
create view told_devices as
select device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, nickname,
  is_managed, online, online_changed_at, flaky_since, removed_at, locked, battery_level, capabilities, reported_code_lengths, custom_metadata,
  account_error, hub_disconnected, subscription_missing_at, reported_time_zone, auto_lock_enabled, auto_lock_delay_seconds, backup_pool, created_at
from devices;

-- What is told of a code's device with the code: a quarter of them, read with each code.
create view code_devices as
select device_id, workspace_id, connected_account_id, online, online_changed_at, removed_at, hub_disconnected, subscription_missing_at,
  capabilities, reported_code_lengths, account_error, backup_pool
from devices;

-- +goose Down
drop view told_devices, code_devices;
