-- +goose Up

-- People as the workspace's application knows them, whatever systems they have an account on.
create table user_identities (
  user_identity_id  uuid primary key,
  workspace_id      uuid not null references workspaces on delete cascade,
  user_identity_key text, -- the application's own name for it
  email_address     text,
  phone_number      text, -- E.164
  full_name         text,
  created_at        timestamptz not null default now()
);
create index on user_identities (workspace_id, created_at, user_identity_id);
create unique index user_identities_key on user_identities (workspace_id, user_identity_key);
create unique index user_identities_email on user_identities (workspace_id, lower(email_address));
create unique index user_identities_phone on user_identities (workspace_id, phone_number);

create table acs_systems (
  acs_system_id        uuid primary key,
  workspace_id         uuid not null references workspaces on delete cascade,
  connected_account_id uuid not null references connected_accounts on delete cascade,
  vendor_ref           text not null,
  name                 text not null,
  time_zone            text,
  error_message        text, -- why it does not answer; null: it does
  error_at             timestamptz,
  removed_at           timestamptz,
  created_at           timestamptz not null default now(),
  wake_seq             bigint not null default 1, -- counts the reasons to look at it
  due_at               timestamptz default now(), -- when to look at it; null: when something happens
  unique (connected_account_id, vendor_ref)
);
create index on acs_systems (workspace_id, created_at, acs_system_id) where removed_at is null;
create index on acs_systems (due_at) where due_at is not null;

create table acs_entrances (
  acs_entrance_id uuid primary key,
  workspace_id    uuid not null references workspaces on delete cascade,
  acs_system_id   uuid not null references acs_systems on delete cascade,
  vendor_ref      text not null,
  name            text not null,
  created_at      timestamptz not null default now(),
  unique (acs_system_id, vendor_ref)
);
create index on acs_entrances (workspace_id, created_at, acs_entrance_id);

create table acs_access_groups (
  acs_access_group_id uuid primary key,
  workspace_id        uuid not null references workspaces on delete cascade,
  acs_system_id       uuid not null references acs_systems on delete cascade,
  vendor_ref          text not null,
  name                text not null,
  entrance_refs       text[] not null, -- the entrances that it opens, as the system names them
  created_at          timestamptz not null default now(),
  unique (acs_system_id, vendor_ref)
);
create index on acs_access_groups (workspace_id, created_at, acs_access_group_id);

-- Managed users say what should be; unmanaged ones what was found. One table, because linking a found user to an
-- identity keeps its identifier.
create table acs_users (
  acs_user_id      uuid primary key,
  workspace_id     uuid not null references workspaces on delete cascade,
  acs_system_id    uuid not null references acs_systems on delete cascade,
  user_identity_id uuid references user_identities on delete set null,
  is_managed       boolean not null,
  full_name        text not null,
  email_address    text,
  phone_number     text,
  starts_at        timestamptz, -- null: it is not bound to a time
  ends_at          timestamptz,
  is_suspended     boolean not null default false,
  group_refs       text[] not null default '{}', -- the access groups that it is in, as the system names them
  deleting_at      timestamptz, -- since when it is to be gone
  vendor_ref       text,  -- the user on the system
  applied          jsonb, -- what the system was last seen to have of it; null: it is not there
  desired_gen      bigint not null default 1, -- counts the changes of what should be
  written_gen      bigint not null default 0, -- the last one that the system has taken
  blocked_gen      bigint not null default 0, -- the system refuses this one for good
  changed_at       timestamptz not null default now(), -- when what should be was last changed
  attempts         integer not null default 0, -- writes in a row that came to nothing
  next_attempt_at  timestamptz,
  synced_at        timestamptz, -- when it was last seen on the system as it should be
  error_code       text,
  error_message    text,
  error_at         timestamptz,
  created_at       timestamptz not null default now(),
  unique (acs_system_id, vendor_ref)
);
create index on acs_users (workspace_id, created_at, acs_user_id) where is_managed;
create index on acs_users (acs_system_id, created_at, acs_user_id);
create index on acs_users (user_identity_id) where user_identity_id is not null;
-- A person has one user on a system, which is how identity and system together name a user.
create unique index acs_users_identity on acs_users (acs_system_id, user_identity_id) where deleting_at is null;

-- +goose Down
drop table acs_users, acs_access_groups, acs_entrances, acs_systems, user_identities;
