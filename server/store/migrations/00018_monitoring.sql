-- What metrics count: rows that need attention, which are few, and the time of the last backup.
-- +goose NO TRANSACTION
-- +goose Up
create table if not exists last_backup (
  is_only     boolean primary key default true check (is_only),
  finished_at timestamptz not null
);
drop index concurrently if exists access_codes_not_set;
create index concurrently access_codes_not_set on access_codes (status, desired_at, device_id)
  where is_managed and not in_pool and status <> 'set';
drop index concurrently if exists devices_offline;
create index concurrently devices_offline on devices (online_changed_at) where removed_at is null and is_managed and not online;
drop index concurrently if exists devices_low_battery;
create index concurrently devices_low_battery on devices (battery_level)
  where removed_at is null and is_managed and battery_level < 0.25;
drop index concurrently if exists acs_users_pending;
create index concurrently acs_users_pending on acs_users (acs_user_id)
  where is_managed and (desired_gen > written_gen or deleting_at is not null);
