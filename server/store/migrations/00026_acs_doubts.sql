-- +goose Up
alter table acs_systems
  add column unlisted_at   timestamptz,                    -- since when the list of its account does not show it
  add column emptied_at    timestamptz,                    -- since when it has been empty all of a sudden, which is not believed yet
  add column write_refused boolean not null default false; -- error_message is about writes: it can be read all the same

alter table acs_users
  add column write_at    timestamptz,                -- when it was last sent to be made; null: what became of that is known
  add column disputes    integer not null default 0, -- how often in a row it was found otherwise than it had been put
  add column disputed_at timestamptz,                -- the last time
  alter column created_at set default clock_timestamp(); -- whoever waits for a system's lock is not to appear before those who were quicker

-- Users that were deleted. What was sent to make one may arrive afterwards.
create table acs_users_gone (
  acs_user_id   uuid primary key,
  acs_system_id uuid not null references acs_systems on delete cascade,
  gone_at       timestamptz not null
);
create index on acs_users_gone (acs_system_id, gone_at);

-- +goose Down
drop table acs_users_gone;
alter table acs_users drop column write_at, drop column disputes, drop column disputed_at, alter column created_at set default now();
alter table acs_systems drop column unlisted_at, drop column emptied_at, drop column write_refused;
