-- +goose Up

alter table devices
  add column auto_lock_enabled       boolean, -- null: not known
  add column auto_lock_delay_seconds double precision,
  add column hub_disconnected        boolean not null default false, -- it is the hub that makes it offline
  add column subscription_missing_at timestamptz, -- since when its vendor does nothing for it that has to be paid for
  add column reported_time_zone      text; -- where it is, as somebody has reported it
alter table access_codes add column offline_kind text; -- hourly, daily or one_time: its vendor makes it, and the lock knows it without being told

-- +goose Down
alter table access_codes drop column offline_kind;
alter table devices drop column auto_lock_enabled, drop column auto_lock_delay_seconds, drop column hub_disconnected,
  drop column subscription_missing_at, drop column reported_time_zone;
