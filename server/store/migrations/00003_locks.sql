-- +goose Up

-- What was last told of a device in events: a transition is what differs from it, for long enough.
alter table devices
  add column locked_changed_at timestamptz not null default now(),
  add column told_online       boolean not null default true, -- device.connected rather than device.disconnected
  add column told_locked       boolean, -- lock.locked rather than lock.unlocked; null: neither yet
  add column told_battery      text;    -- the last battery_status; null: none yet
update devices set told_online = online, told_locked = locked;

alter table connected_accounts add column first_synced_at timestamptz, add column error_at timestamptz;
update connected_accounts a set first_synced_at = now()
where exists (select 1 from devices d where d.connected_account_id = a.connected_account_id);

alter table access_codes
  add column wanted_at      timestamptz not null default now(), -- since when desired_gen is what should be
  add column applied_sealed bytea; -- name, PIN and time frame as the device has confirmed them; null: unknown

-- An attempt to move a bolt is about no code.
alter table action_attempts
  alter column access_code_id drop not null,
  add column started_at timestamptz, -- LOCK_DOOR, UNLOCK_DOOR: the command may have been sent, and is sent no more
  add column told_at    timestamptz; -- LOCK_DOOR, UNLOCK_DOOR: the vendor has told of it

-- What vendors have told of bolts, so that an operation that is told twice is one.
create table lock_operations (
  device_id uuid not null references devices on delete cascade,
  operation text not null, -- the vendor's identifier of it, or what it says where there is none
  seen_at   timestamptz not null default now(),
  primary key (device_id, operation)
);

-- +goose Down
drop table lock_operations;
delete from action_attempts where access_code_id is null;
alter table action_attempts drop column started_at, drop column told_at, alter column access_code_id set not null;
alter table access_codes drop column wanted_at, drop column applied_sealed;
alter table connected_accounts drop column first_synced_at, drop column error_at;
alter table devices drop column locked_changed_at, drop column told_online, drop column told_locked, drop column told_battery;
