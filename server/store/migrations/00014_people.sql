-- Devices of user identities, merged user identities, deletions of access groups, and commands to entrances.

-- +goose Up
set local lock_timeout = '200ms';
lock table workspaces, devices, user_identities, acs_systems, acs_access_groups in share row exclusive mode;

-- The devices that a user identity was given access to.
create table user_identity_devices (
  user_identity_id uuid not null references user_identities on delete cascade,
  device_id        uuid not null references devices on delete cascade,
  primary key (user_identity_id, device_id)
);
create index on user_identity_devices (device_id);

-- What a client session can see in addition to its accounts: the managed devices of its identity.
create view client_session_device_scope as
  select s.client_session_id, d.device_id
  from client_sessions s join user_identity_devices g using (user_identity_id) join devices d using (device_id)
  where d.workspace_id = s.workspace_id and d.removed_at is null and d.is_managed;

-- The identifiers and keys of merged user identities, which name the identity that they were merged into.
create table merged_user_identities (
  merged_user_identity_id uuid primary key,
  workspace_id            uuid not null references workspaces on delete cascade,
  user_identity_id        uuid not null references user_identities on delete cascade,
  user_identity_key       text,
  merged_at               timestamptz not null default clock_timestamp()
);
create index on merged_user_identities (user_identity_id);
create unique index merged_user_identities_key on merged_user_identities (workspace_id, user_identity_key);

-- The access groups that must be deleted from their systems.
create table acs_group_deletions (
  acs_access_group_id uuid primary key references acs_access_groups on delete cascade,
  requested_at        timestamptz not null default now(),
  attempts            integer not null default 0, -- consecutive failures
  next_attempt_at     timestamptz,
  is_refused          boolean not null default false, -- the system refuses permanently
  error_message       text -- of the last failure
);

-- The pending commands to unlock an entrance. They end with their action attempts.
create table acs_unlocks (
  action_attempt_id uuid primary key,
  acs_system_id     uuid not null references acs_systems on delete cascade,
  entrance_ref      text not null, -- the vendor_ref of the entrance
  created_at        timestamptz not null default clock_timestamp()
);
create index on acs_unlocks (acs_system_id, created_at);
