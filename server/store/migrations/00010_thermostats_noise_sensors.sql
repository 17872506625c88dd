-- +goose Up
-- State of devices that are not locks: the documents of packages climate and noise. Null: another kind of device, or
-- not reported yet.
set local lock_timeout = '200ms';

alter table devices
  add column climate jsonb,
  add column noise jsonb;

create or replace view device_summaries as
select device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, nickname,
  is_managed, online, online_changed_at, flaky_since, removed_at, locked, battery_level, capabilities, reported_code_lengths, custom_metadata,
  account_error, hub_disconnected, subscription_missing_at, reported_time_zone, auto_lock_enabled, auto_lock_delay_seconds, backup_pool, created_at,
  door_open, keypad_battery, climate, noise
from devices;

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'there is no migration back: restore a backup'; end $$;
-- +goose StatementEnd
