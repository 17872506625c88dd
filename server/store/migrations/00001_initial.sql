-- +goose Up

-- Keys that every instance of the server shares (cursors, sessions), sealed with the master key.
create table server_keys (
  name       text primary key,
  sealed     bytea not null,
  created_at timestamptz not null default now()
);

create table workspaces (
  workspace_id         uuid primary key,
  name                 text not null,
  company_name         text not null default '',
  connect_partner_name text,
  is_sandbox           boolean not null,
  created_at           timestamptz not null default now()
);

create table credentials (
  credential_id uuid primary key,
  kind          text not null check (kind in ('api_key', 'pat', 'console_session')),
  name          text not null default '',
  hint          text not null, -- what may be shown of the token
  token_hash    bytea not null unique, -- SHA-256
  created_at    timestamptz not null default now(),
  expires_at    timestamptz,
  revoked_at    timestamptz
);

create table credential_workspaces (
  credential_id uuid not null references credentials on delete cascade,
  workspace_id  uuid not null references workspaces on delete cascade,
  primary key (credential_id, workspace_id)
);

create table connected_accounts (
  connected_account_id uuid primary key,
  workspace_id         uuid not null references workspaces on delete cascade,
  adapter              text not null, -- the protocol it speaks, such as devicecloud
  provider             text not null, -- device_provider_name of the API; empty when its devices tell
  display_name         text not null,
  config_sealed        bytea not null, -- address and credentials
  error_code           text, -- account_disconnected while its credentials are refused
  error_message        text,
  created_at           timestamptz not null default now(),
  wake_seq             bigint not null default 1,
  due_at               timestamptz default now() -- when to look at it; null: when something happens
);
create index on connected_accounts (workspace_id, created_at, connected_account_id);
create index on connected_accounts (due_at) where due_at is not null;

create table devices (
  device_id            uuid primary key,
  workspace_id         uuid not null references workspaces on delete cascade,
  connected_account_id uuid not null references connected_accounts on delete cascade,
  vendor_ref           text not null,
  device_type          text not null,
  provider             text not null,
  manufacturer         text not null,
  model                text not null,
  serial_number        text not null,
  name                 text not null,
  online               boolean not null,
  locked               boolean,
  battery_level        double precision,
  capabilities         jsonb not null,
  flags                text[] not null, -- the capability flags of the API that are true
  custom_metadata      jsonb not null default '{}',
  created_at           timestamptz not null default now(),
  online_changed_at    timestamptz not null default now(),
  removed_at           timestamptz,
  read_needed          boolean not null default true, -- what is on it may have changed since the last good read
  last_good_read_at    timestamptz,
  reread_at            timestamptz, -- what the last read showed is to be checked again then
  failures             integer not null default 0, -- reads in a row that failed
  wake_seq             bigint not null default 1,  -- counts the reasons to look at it
  due_at               timestamptz default now(),
  unique (connected_account_id, vendor_ref)
);
create index on devices (workspace_id, created_at, device_id) where removed_at is null;
create index on devices (due_at) where due_at is not null;

-- Managed codes say what should be; unmanaged ones what was found. One table, because conversion keeps the identifier.
create table access_codes (
  access_code_id    uuid primary key,
  workspace_id      uuid not null references workspaces on delete cascade,
  device_id         uuid not null references devices on delete cascade,
  is_managed        boolean not null,
  name              text,
  pin_sealed        bytea, -- null: hidden by the vendor, or not yet invented by it
  pin_mac           bytea, -- keyed hash, bound to the device: equality without the PIN
  starts_at         timestamptz,
  ends_at           timestamptz,
  status            text not null check (status in ('unset', 'setting', 'set', 'removing', 'unknown')),
  external_modification_allowed boolean not null default false,
  prefer_native_scheduling      boolean not null default true,
  vendor_ref        text,   -- the code on the device
  desired_gen       bigint not null default 1, -- counts the changes of what should be
  applied_gen       bigint not null default 0, -- the last one that the device has confirmed; 0: it is not there
  applied_at        timestamptz,
  blocked_gen       bigint not null default 0, -- the device refuses this one for good
  write_gen         bigint not null default 0, -- the one on its way; 0: none
  write_at          timestamptz, -- since when
  write_accepted    boolean not null default false, -- the vendor has taken it
  attempts          integer not null default 0, -- writes of desired_gen that came to nothing
  next_attempt_at   timestamptz,
  removing_since    timestamptz,
  error_code        text,
  error_message     text,
  error_at          timestamptz,
  error_code_id     uuid, -- duplicate_code_on_device: the other code
  warning_code      text,
  warning_message   text,
  warning_at        timestamptz,
  created_at        timestamptz not null default now()
);
create index on access_codes (device_id, is_managed, created_at, access_code_id);
create index on access_codes (workspace_id, created_at, access_code_id);
create unique index access_codes_vendor_ref on access_codes (device_id, vendor_ref);
create index on access_codes (device_id, pin_mac); -- not unique: what is wanted may collide with what somebody does at the device

create table action_attempts (
  action_attempt_id uuid primary key,
  workspace_id      uuid not null references workspaces on delete cascade,
  device_id         uuid not null,
  access_code_id    uuid not null,
  action_type       text not null,
  gen               bigint not null default 0, -- CREATE and UPDATE: the desired_gen they wait for
  options           jsonb not null default '{}', -- what to do with it when it succeeds
  status            text not null check (status in ('pending', 'success', 'error')),
  error_type        text,
  error_message     text,
  created_at        timestamptz not null default now(),
  deadline_at       timestamptz not null,
  finished_at       timestamptz
);
create index on action_attempts (workspace_id, device_id, created_at, action_attempt_id);
create index on action_attempts (workspace_id, created_at, action_attempt_id);
create index on action_attempts (device_id) where status = 'pending';

-- The outbox: written in the transaction of what it reports.
create table events (
  event_id             uuid primary key,
  workspace_id         uuid not null references workspaces on delete cascade,
  event_type           text not null,
  device_id            uuid,
  access_code_id       uuid,
  connected_account_id uuid,
  payload              jsonb not null, -- what the type carries beyond the common fields; never a PIN
  pin_sealed           bytea,          -- the PIN, for the types that carry one
  occurred_at          timestamptz not null default now(),
  created_at           timestamptz not null default clock_timestamp(),
  fanned_out_at        timestamptz
);
create index on events (workspace_id, created_at, event_id);
create index on events (workspace_id, device_id, created_at) where device_id is not null;
create index on events (workspace_id, access_code_id, created_at) where access_code_id is not null;
create index on events (created_at) where fanned_out_at is null;

create table webhooks (
  webhook_id    uuid primary key,
  workspace_id  uuid not null references workspaces on delete cascade,
  url           text not null,
  event_types   text[] not null,
  secret_sealed bytea not null,
  created_at    timestamptz not null default now()
);
create index on webhooks (workspace_id, created_at, webhook_id);

-- One holder per key at a time. The fence counts holders: a result is recorded only while its fence is the row's.
create table leases (
  key        text primary key,
  holder     uuid not null,
  fence      bigint not null,
  held_until timestamptz not null
);

-- +goose Down
drop table leases, webhooks, events, action_attempts, access_codes, devices, connected_accounts,
  credential_workspaces, credentials, workspaces, server_keys;
