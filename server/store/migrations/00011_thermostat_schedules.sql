-- +goose Up
-- Schedules of thermostats, and the device of each daily program. The programs themselves are in devices.climate.
set local lock_timeout = '200ms';

create table thermostat_schedules (
  thermostat_schedule_id uuid primary key,
  workspace_id           uuid not null,
  device_id              uuid not null references devices on delete cascade,
  name                   text,
  climate_preset_key     text not null,
  starts_at              timestamptz not null,
  ends_at                timestamptz not null,
  override_allowed       boolean not null default false, -- a change at the device lasts
  max_override_minutes   integer check (max_override_minutes > 0), -- for so long; null: until the next schedule or period
  errors                 jsonb not null default '[]', -- why the device could not be set
  created_at             timestamptz not null default now(),
  unique (device_id, starts_at)
);

create table thermostat_daily_programs (
  thermostat_daily_program_id uuid primary key,
  workspace_id                uuid not null,
  device_id                   uuid not null references devices on delete cascade
);
create index on thermostat_daily_programs (device_id);

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'there is no migration back: restore a backup'; end $$;
-- +goose StatementEnd
