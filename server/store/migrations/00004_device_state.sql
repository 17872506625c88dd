-- +goose Up
-- What some vendors report about a door and a keypad. Null: unknown, or the device has none.
set local lock_timeout = '200ms';

alter table devices
  add column door_open boolean,
  add column keypad_battery double precision; -- 0 to 1

create or replace view device_summaries as
select device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, nickname,
  is_managed, online, online_changed_at, flaky_since, removed_at, locked, battery_level, capabilities, reported_code_lengths, custom_metadata,
  account_error, hub_disconnected, subscription_missing_at, reported_time_zone, auto_lock_enabled, auto_lock_delay_seconds, backup_pool, created_at,
  door_open, keypad_battery
from devices;
