-- The schema of the server. server/docs/schema.md says how later migrations must look.
--
-- Conventions: columns ending in _sealed are encrypted (see data_keys), columns ending in _mac are keyed hashes that
-- allow a search for equality, and columns ending in _at are times. due_at is when a worker must look at the row; null
-- means not before something happens. wake_seq counts the reasons to look at a row, so that a worker notices a reason
-- that came up while it worked.

-- +goose Up

------------------------------------------------------------------------------------------------------------------------
-- Encryption keys

-- Secrets that all instances of the server share, such as the key of page cursors, sealed with the master key.
create table server_keys (
  name       text primary key,
  sealed     bytea not null,
  created_at timestamptz not null default now()
);

-- Keys that seal columns. The first byte of a sealed value is the key's identifier; a value whose first byte names no
-- key is sealed with the master key. A rotation is in progress while the current key has no resealed_at.
create table data_keys (
  key_id      smallint primary key check (key_id between 1 and 255),
  wrapped     bytea not null, -- encrypted with the master key
  is_current  boolean not null,
  created_at  timestamptz not null default now(),
  retired_at  timestamptz, -- when another key became the current one
  resealed_at timestamptz  -- when the last value sealed with another key was resealed
);
create unique index data_keys_current on data_keys (is_current) where is_current;

------------------------------------------------------------------------------------------------------------------------
-- Workspaces and credentials

create table workspaces (
  workspace_id                    uuid primary key,
  name                            text not null,
  company_name                    text not null default '',
  connect_partner_name            text,
  is_sandbox                      boolean not null,
  is_suspended                    boolean not null default false, -- only requests about the workspace itself are allowed
  is_publishable_key_auth_enabled boolean not null default true,
  connect_webview_customization   jsonb not null default '{}',
  created_by                      uuid, -- the credential that created it, kept after that is deleted; null: the server
  created_at                      timestamptz not null default now(),
  retention_due_at                timestamptz not null default now() -- when to delete expired rows next
);
create index on workspaces (retention_due_at);
-- The scheduler shares workers among the credentials that created workspaces.
create index workspaces_by_creator on workspaces (created_by) where created_by is not null;

create table credentials (
  credential_id uuid primary key,
  kind          text not null check (kind in ('api_key', 'pat', 'console_session', 'publishable_key')),
  name          text not null default '',
  hint          text not null, -- the part of the token that may be shown
  token_hash    bytea not null unique, -- SHA-256
  public_token  text, -- the token of a publishable key, which is not secret
  created_at    timestamptz not null default now(),
  expires_at    timestamptz,
  revoked_at    timestamptz
);

-- The workspaces that a credential may act in.
create table credential_workspaces (
  credential_id uuid not null references credentials on delete cascade,
  workspace_id  uuid not null references workspaces on delete cascade,
  primary key (credential_id, workspace_id)
);
create index on credential_workspaces (workspace_id);

-- The newest valid publishable key of each workspace.
create view publishable_keys as
  select distinct on (w.workspace_id) w.workspace_id, c.public_token
  from credential_workspaces w join credentials c using (credential_id)
  where c.kind = 'publishable_key' and c.revoked_at is null and (c.expires_at is null or c.expires_at > now())
  order by w.workspace_id, c.created_at desc;

------------------------------------------------------------------------------------------------------------------------
-- Connected accounts and their devices

-- An account at a vendor, or a gateway. Deleted accounts stay, without their credentials.
create table connected_accounts (
  connected_account_id  uuid primary key,
  workspace_id          uuid not null references workspaces on delete cascade,
  adapter               text not null, -- the protocol, such as devicecloud
  provider              text not null, -- device_provider_name in the API; empty: each device has its own
  display_name          text not null,
  config_sealed         bytea not null, -- address and credentials
  address_mac           bytea, -- of the address: each address has one account
  gateway_mac           bytea, -- of the gateway's own identifier, since a gateway can have many addresses; null: unknown, or no gateway
  user_identifier       jsonb not null default '{}', -- the login or the gateway, without secrets
  customer_key          text,
  custom_metadata       jsonb not null default '{}',
  manage_new_devices    boolean not null default true, -- newly found devices become managed
  accepted_capabilities text[] not null default '{lock}',
  error_code            text, -- account_disconnected while the vendor rejects the credentials
  error_message         text,
  error_at              timestamptz,
  created_at            timestamptz not null default now(),
  first_synced_at       timestamptz,
  deleted_at            timestamptz,
  wake_seq              bigint not null default 1,
  due_at                timestamptz default now()
);
create index connected_accounts_listed on connected_accounts (workspace_id, created_at, connected_account_id) where deleted_at is null;
-- Resetting a sandbox visits all accounts of a workspace, including deleted ones.
create index connected_accounts_of_workspace on connected_accounts (workspace_id, connected_account_id);
create index on connected_accounts (workspace_id, customer_key) where customer_key is not null;
create index on connected_accounts (due_at) where due_at is not null;
create unique index connected_accounts_address on connected_accounts (adapter, address_mac) where deleted_at is null;
-- Not unique: an operator may connect a gateway twice. Code that searches by gateway takes an advisory lock.
create index connected_accounts_gateway on connected_accounts (adapter, gateway_mac) where deleted_at is null and gateway_mac is not null;

create table devices (
  device_id               uuid primary key,
  workspace_id            uuid not null references workspaces on delete cascade,
  connected_account_id    uuid not null references connected_accounts on delete cascade,
  -- The vendor's reference of the device; detached:<device_id> if the device left its account for good, and
  -- deleted:<device_id> if it was deleted through the API.
  vendor_ref              text not null,
  is_managed              boolean not null default true, -- unmanaged devices are listed, but neither read nor written
  created_at              timestamptz not null default now(),
  removed_at              timestamptz,
  -- What the vendor says about it.
  device_type             text not null,
  provider                text not null,
  manufacturer            text not null,
  model                   text not null,
  serial_number           text not null,
  name                    text not null,
  capabilities            jsonb not null,
  flags                   text[] not null, -- the capability flags of the API that are true
  -- What the workspace says about it.
  nickname                text, -- null: the vendor's name applies
  custom_metadata         jsonb not null default '{}',
  reported_code_lengths   integer[], -- lengths of codes, as reported by a user; null: the vendor's apply
  reported_time_zone      text,      -- as reported by a user
  -- Observed state.
  online                  boolean not null,
  online_changed_at       timestamptz not null default now(),
  locked                  boolean,
  locked_changed_at       timestamptz not null default now(),
  operated_at             timestamptz, -- time of the last lock operation, by the reporter's clock; null: unknown
  battery_level           double precision,
  auto_lock_enabled       boolean, -- null: unknown
  auto_lock_delay_seconds double precision,
  recent_disconnects      timestamptz[] not null default '{}', -- the last times it went offline
  flaky_since             timestamptz, -- since when its connection is flaky
  hub_disconnected        boolean not null default false, -- it is offline because its hub is
  subscription_missing_at timestamptz, -- since when the vendor refuses operations for want of a subscription
  account_error           jsonb, -- the error of its account: code, message, at; null: the account works
  backup_pool             jsonb not null default '{}', -- state of its pool of backup codes
  -- What the last events announced. An event is due when the observed state differs from it for long enough.
  announced_online        boolean not null default true, -- device.connected, not device.disconnected
  announced_locked        boolean, -- lock.locked, not lock.unlocked; null: neither yet
  announced_battery       text,    -- the last battery_status; null: none yet
  -- Work on it.
  read_needed             boolean not null default true, -- its codes may have changed since the last good read
  last_good_read_at       timestamptz,
  reread_at               timestamptz, -- when to verify what the last read showed
  empty_since             timestamptz, -- since when its code list is unexpectedly empty, within the grace period
  failures                integer not null default 0, -- consecutive failed reads
  wake_seq                bigint not null default 1,
  due_at                  timestamptz default now(),
  unique (connected_account_id, vendor_ref)
);
create index devices_managed on devices (workspace_id, created_at, device_id) where removed_at is null and is_managed;
create index devices_unmanaged on devices (workspace_id, created_at, device_id) where removed_at is null and not is_managed;
create index on devices (due_at) where due_at is not null;

-- The columns of a device that the API shows: a third of them.
create view device_summaries as
select device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, nickname,
  is_managed, online, online_changed_at, flaky_since, removed_at, locked, battery_level, capabilities, reported_code_lengths, custom_metadata,
  account_error, hub_disconnected, subscription_missing_at, reported_time_zone, auto_lock_enabled, auto_lock_delay_seconds, backup_pool, created_at
from devices;

-- The columns of a device that the API needs to show one of its codes.
create view code_devices as
select device_id, workspace_id, connected_account_id, online, online_changed_at, removed_at, hub_disconnected, subscription_missing_at,
  capabilities, reported_code_lengths, account_error, backup_pool
from devices;

-- Lock operations that vendors reported, so that one reported twice is recorded once.
create table lock_operations (
  device_id uuid not null references devices on delete cascade,
  operation text not null, -- the vendor's identifier, or its description if there is none
  seen_at   timestamptz not null default now(),
  primary key (device_id, operation)
);

------------------------------------------------------------------------------------------------------------------------
-- Access codes

-- Managed codes are desired state, unmanaged codes are observed state. They share a table because a conversion keeps
-- the identifier. Rows that are inserted often, here and below, have no foreign key to workspaces: each insert would
-- lock the workspace's row. Workspaces are never deleted.
create table access_codes (
  access_code_id                uuid primary key,
  workspace_id                  uuid not null,
  device_id                     uuid not null references devices on delete cascade,
  is_managed                    boolean not null,
  status                        text not null check (status in ('unset', 'setting', 'set', 'removing', 'unknown')),
  created_at                    timestamptz not null default now(),
  -- Desired state.
  name                          text,
  pin_sealed                    bytea, -- null: hidden by the vendor, or not yet generated by it
  pin_mac                       bytea, -- bound to the device
  starts_at                     timestamptz,
  ends_at                       timestamptz,
  external_modification_allowed boolean not null default false,
  prefer_native_scheduling      boolean not null default true,
  common_code_key               text, -- codes with the same key share a PIN
  offline_kind                  text, -- hourly, daily, or one_time: the vendor computes the PIN, and the lock accepts it without a write
  desired_gen                   bigint not null default 1, -- counts the changes of the desired state
  desired_at                    timestamptz not null default now(), -- when desired_gen was last increased
  -- Applied state.
  vendor_ref                    text, -- identifies the code on the device
  applied_gen                   bigint not null default 0, -- the last desired_gen that the device confirmed; 0: the code is not on it
  applied_at                    timestamptz,
  applied_sealed                bytea, -- name, PIN, and times that the device confirmed; null: unknown
  external_change               text, -- what was last done to the code at the device: modified or removed; null: unknown
  -- Writes to the device.
  blocked_gen                   bigint not null default 0, -- the desired_gen that the device refuses permanently
  write_gen                     bigint not null default 0, -- the desired_gen of the write in flight; 0: none
  write_at                      timestamptz, -- when that write began
  write_accepted                boolean not null default false, -- the vendor accepted it
  write_ref                     text,  -- the vendor_ref that it writes to
  write_pin_mac                 bytea, -- of the PIN that it writes, since the desired one may change meanwhile
  attempts                      integer not null default 0, -- failed writes of desired_gen
  next_attempt_at               timestamptz,
  removing_since                timestamptz,
  drift_count                   integer not null default 0, -- consecutive times that it was found changed after a write
  drifted_at                    timestamptz,
  -- The backup pool.
  uses_backup_pool              boolean not null default false, -- a backup code can replace it
  is_backup                     boolean not null default false, -- created as a backup code
  in_pool                       boolean not null default false, -- a backup code that is unused; the API does not show it
  pulled_backup_code_id         uuid, -- the backup code that replaces it
  -- Problems.
  error_code                    text,
  error_message                 text,
  error_at                      timestamptz,
  error_code_id                 uuid, -- the other code of duplicate_code_on_device
  warning_code                  text,
  warning_message               text,
  warning_at                    timestamptz
);
create index on access_codes (device_id, is_managed, created_at, access_code_id);
create index on access_codes (workspace_id, created_at, access_code_id);
create unique index access_codes_vendor_ref on access_codes (device_id, vendor_ref);
-- Not unique: a desired PIN may collide with one that was set at the device.
create index on access_codes (device_id, pin_mac);
create index on access_codes (workspace_id, common_code_key) where common_code_key is not null;
create index access_codes_in_pool on access_codes (workspace_id) where in_pool;

-- Tombstones of codes that were deleted while the outcome of their creation was unknown: it may take effect late.
create table access_code_tombstones (
  access_code_id uuid primary key,
  device_id      uuid not null references devices on delete cascade,
  deleted_at     timestamptz not null
);
create index on access_code_tombstones (device_id, deleted_at);

------------------------------------------------------------------------------------------------------------------------
-- Action attempts

create table action_attempts (
  action_attempt_id uuid primary key,
  workspace_id      uuid not null,
  device_id         uuid, -- null: about the whole workspace
  access_code_id    uuid, -- null: not about a code
  action_type       text not null,
  desired_gen       bigint not null default 0, -- CREATE and UPDATE: the desired_gen that it waits for
  options           jsonb not null default '{}', -- what to do when it succeeds
  status            text not null check (status in ('pending', 'success', 'error')),
  error_type        text,
  error_message     text,
  created_at        timestamptz not null default now(),
  started_at        timestamptz, -- LOCK_DOOR and UNLOCK_DOOR: the command may have been sent, and must not be sent again
  reported_at       timestamptz, -- LOCK_DOOR and UNLOCK_DOOR: when the vendor reported the operation
  deadline_at       timestamptz not null,
  finished_at       timestamptz
);
create index on action_attempts (workspace_id, device_id, created_at, action_attempt_id);
create index on action_attempts (workspace_id, created_at, action_attempt_id);
create index on action_attempts (device_id) where status = 'pending';
create index action_attempts_of_workspaces on action_attempts (workspace_id) where device_id is null and status = 'pending';

------------------------------------------------------------------------------------------------------------------------
-- User identities, connect webviews, and client sessions

-- A person, across all access systems.
create table user_identities (
  user_identity_id  uuid primary key,
  workspace_id      uuid not null references workspaces on delete cascade,
  user_identity_key text, -- the application's identifier
  email_address     text,
  phone_number      text, -- E.164
  full_name         text,
  created_at        timestamptz not null default now()
);
create index on user_identities (workspace_id, created_at, user_identity_id);
create unique index user_identities_key on user_identities (workspace_id, user_identity_key);
create unique index user_identities_email on user_identities (workspace_id, lower(email_address));
create unique index user_identities_phone on user_identities (workspace_id, phone_number);

-- A page on which a person connects a vendor account. The token in its URL is derived from the identifier, and not stored.
create table connect_webviews (
  connect_webview_id    uuid primary key,
  workspace_id          uuid not null references workspaces on delete cascade,
  accepted_providers    text[], -- null: all
  accepted_capabilities text[], -- null: all
  manage_new_devices    boolean not null,
  wait_for_devices      boolean not null, -- authorized only when the account's devices are known
  redirect_url          text,
  failure_url           text,
  custom_metadata       jsonb not null default '{}',
  customer_key          text,
  status                text not null default 'pending' check (status in ('pending', 'failed', 'authorized')),
  selected_provider     text,
  connected_account_id  uuid references connected_accounts on delete set null, -- the account that was connected
  account_reassigned    boolean not null default false, -- that account now belongs to another customer: the webview gives no access to it
  login_attempts        integer not null default 0,
  created_at            timestamptz not null default now(),
  expires_at            timestamptz not null, -- when it stops accepting logins
  authorized_at         timestamptz
);
create index on connect_webviews (workspace_id, created_at, connect_webview_id);
create index connect_webviews_waiting on connect_webviews (connected_account_id) where status <> 'authorized';
create index on connect_webviews (workspace_id, customer_key) where customer_key is not null;

-- The credential of an end user. Its scope is some accounts and their devices.
create table client_sessions (
  client_session_id   uuid primary key,
  workspace_id        uuid not null references workspaces on delete cascade,
  token_hash          bytea not null unique, -- SHA-256
  token_sealed        bytea not null, -- the token, which the workspace may read again
  user_identifier_key text,
  user_identity_id    uuid, -- adds the accounts connected by the sessions of this identity
  customer_key        text, -- adds the accounts of this customer
  is_unclaimed        boolean not null default false, -- created with a publishable key, and its scope is still empty
  created_at          timestamptz not null default now(),
  expires_at          timestamptz not null,
  revoked_at          timestamptz
);
create index on client_sessions (workspace_id, created_at, client_session_id);
create index on client_sessions (workspace_id, user_identity_id) where user_identity_id is not null;
create index on client_sessions (workspace_id, user_identifier_key) where user_identifier_key is not null;
create index client_sessions_by_end on client_sessions (workspace_id, (least(expires_at, revoked_at)));
-- Counts unclaimed sessions, whose number is limited.
create index client_sessions_unclaimed on client_sessions (workspace_id, expires_at) where is_unclaimed and revoked_at is null;

create table client_session_accounts (
  client_session_id    uuid not null references client_sessions on delete cascade,
  connected_account_id uuid not null references connected_accounts on delete cascade,
  primary key (client_session_id, connected_account_id)
);
create index on client_session_accounts (connected_account_id);

create table client_session_webviews (
  client_session_id  uuid not null references client_sessions on delete cascade,
  connect_webview_id uuid not null references connect_webviews on delete cascade, -- adds the account that it connects
  primary key (client_session_id, connect_webview_id)
);
create index on client_session_webviews (connect_webview_id);

-- Webviews that an identity was granted by any of its sessions, kept when the session ends.
create table user_identity_webviews (
  user_identity_id   uuid not null references user_identities on delete cascade,
  connect_webview_id uuid not null references connect_webviews on delete cascade,
  primary key (user_identity_id, connect_webview_id)
);
create index on user_identity_webviews (connect_webview_id);

-- Accounts that an identity connected on webviews that are deleted.
create table user_identity_accounts (
  user_identity_id     uuid not null references user_identities on delete cascade,
  connected_account_id uuid not null references connected_accounts on delete cascade,
  primary key (user_identity_id, connected_account_id)
);
create index on user_identity_accounts (connected_account_id);

-- The webviews of a session: its own, those of its identity and of the identity's other sessions, those of its customer.
create view client_session_webview_scope as
  select w.client_session_id, w.connect_webview_id from client_session_webviews w
  union
  select s.client_session_id, w.connect_webview_id
  from client_sessions s join client_sessions o on o.workspace_id = s.workspace_id and o.user_identity_id = s.user_identity_id
    join client_session_webviews w on w.client_session_id = o.client_session_id
  union
  select s.client_session_id, v.connect_webview_id
  from client_sessions s join connect_webviews v on v.workspace_id = s.workspace_id and v.customer_key = s.customer_key
  union
  select s.client_session_id, w.connect_webview_id from client_sessions s join user_identity_webviews w using (user_identity_id);

-- The scope of a session: the accounts that it can see. No other code decides this.
create view client_session_scope as
  select g.client_session_id, a.connected_account_id
  from client_session_accounts g join connected_accounts a using (connected_account_id) where a.deleted_at is null
  union
  select s.client_session_id, a.connected_account_id
  from client_sessions s join connected_accounts a on a.workspace_id = s.workspace_id and a.customer_key = s.customer_key where a.deleted_at is null
  union
  select p.client_session_id, a.connected_account_id
  from client_session_webview_scope p join connect_webviews v using (connect_webview_id) join connected_accounts a using (connected_account_id)
  where a.deleted_at is null and not v.account_reassigned
  union
  select s.client_session_id, a.connected_account_id
  from client_sessions s join user_identity_accounts g using (user_identity_id) join connected_accounts a using (connected_account_id)
  where a.deleted_at is null;

------------------------------------------------------------------------------------------------------------------------
-- Access control systems

create table acs_systems (
  acs_system_id        uuid primary key,
  workspace_id         uuid not null references workspaces on delete cascade,
  connected_account_id uuid not null references connected_accounts on delete cascade,
  vendor_ref           text not null,
  name                 text not null,
  time_zone            text,
  error_message        text, -- why it fails; null: it works
  error_at             timestamptz,
  write_refused        boolean not null default false, -- error_message is about writes only
  unlisted_at          timestamptz, -- since when its account's list omits it
  empty_since          timestamptz, -- since when its user list is unexpectedly empty, within the grace period
  created_at           timestamptz not null default now(),
  removed_at           timestamptz,
  wake_seq             bigint not null default 1,
  due_at               timestamptz default now(),
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
  entrance_refs       text[] not null, -- the vendor_ref of each entrance that it opens
  created_at          timestamptz not null default now(),
  unique (acs_system_id, vendor_ref)
);
create index on acs_access_groups (workspace_id, created_at, acs_access_group_id);

-- Managed users are desired state, unmanaged users are observed state. They share a table because linking an observed
-- user to an identity keeps its identifier.
create table acs_users (
  acs_user_id      uuid primary key,
  workspace_id     uuid not null references workspaces on delete cascade,
  acs_system_id    uuid not null references acs_systems on delete cascade,
  user_identity_id uuid references user_identities on delete set null,
  is_managed       boolean not null,
  -- Of the clock, not of the transaction: transactions that wait for the system's lock keep their order.
  created_at       timestamptz not null default clock_timestamp(),
  -- Desired state.
  full_name        text not null,
  email_address    text,
  phone_number     text,
  starts_at        timestamptz, -- null: without a time frame
  ends_at          timestamptz,
  is_suspended     boolean not null default false,
  group_refs       text[] not null default '{}', -- the vendor_ref of each access group that it is in
  deleting_at      timestamptz, -- since when it must be deleted from the system
  desired_gen      bigint not null default 1, -- counts the changes of the desired state
  changed_at       timestamptz not null default now(), -- when the desired state last changed
  -- Observed state.
  vendor_ref       text,
  applied          jsonb, -- what the system last showed; null: the user is not on it
  synced_at        timestamptz, -- when the system last showed the desired state
  -- Writes to the system.
  written_gen      bigint not null default 0, -- the last desired_gen that the system accepted
  blocked_gen      bigint not null default 0, -- the desired_gen that the system refuses permanently
  blocked_by       uuid, -- with blocked_gen: the user that the system confuses it with, until that one is deleted
  write_at         timestamptz, -- when its creation was last sent; null: the outcome is known
  attempts         integer not null default 0, -- consecutive failed writes
  next_attempt_at  timestamptz,
  drift_count      integer not null default 0, -- consecutive times that it was found changed after a write
  drifted_at       timestamptz,
  error_code       text,
  error_message    text,
  error_at         timestamptz,
  unique (acs_system_id, vendor_ref)
);
create index on acs_users (workspace_id, created_at, acs_user_id) where is_managed;
create index on acs_users (workspace_id, created_at, acs_user_id) where not is_managed;
create index on acs_users (acs_system_id, created_at, acs_user_id);
create index on acs_users (user_identity_id) where user_identity_id is not null;
-- An identity has one user per system, so that identity and system together name a user.
create unique index acs_users_identity on acs_users (acs_system_id, user_identity_id) where deleting_at is null;

-- Tombstones of deleted users: a creation that was sent may take effect late. A user that was adopted carries none of
-- our identifiers on the system, so its reference and a hash of its attributes are kept.
create table acs_user_tombstones (
  acs_user_id     uuid primary key,
  acs_system_id   uuid not null references acs_systems on delete cascade,
  deleted_at      timestamptz not null,
  vendor_ref      text,
  person_hash     bytea,      -- hash of name, email address, and phone number: the reference may be reused for another person
  ref_valid_until timestamptz -- a match after this time is a new user
);
create index on acs_user_tombstones (acs_system_id, deleted_at);

------------------------------------------------------------------------------------------------------------------------
-- Webhooks, events, and deliveries

create table webhooks (
  webhook_id           uuid primary key,
  workspace_id         uuid not null,
  url                  text not null,
  event_types          text[] not null,
  secret_sealed        bytea not null,
  old_secret_sealed    bytea, -- the secret before the last rotation, which signs as well
  old_secret_until     timestamptz, -- until this time
  created_at           timestamptz not null default now(),
  -- Health of the endpoint.
  is_healthy           boolean not null default false, -- the last attempt succeeded quickly: it does not wait for slow endpoints
  paused_until         timestamptz, -- no attempt before this time
  failing_since        timestamptz, -- all attempts since then failed
  failed_at            timestamptz, -- the last failure since failing_since
  consecutive_failures integer not null default 0,
  disabled_at          timestamptz,
  disabled_reason      text,
  due_at               timestamptz
);
create index on webhooks (workspace_id, created_at, webhook_id);
create index on webhooks (due_at) where due_at is not null;
create index on webhooks (old_secret_until) where old_secret_until is not null;
create index on webhooks (disabled_at) where disabled_at is not null;

-- Events, deliveries, and delivery attempts grow without limit. They are partitioned by the event's identifier, which
-- begins with its creation time (RFC 9562, version 7), so that expired rows are dropped as whole tables
-- (server/docs/scale.md). No foreign key crosses partitions; deletions proceed in the order attempts, deliveries, events.

-- The outbox: an event is inserted in the transaction of the change that it reports.
create table events (
  event_id             uuid primary key,
  workspace_id         uuid not null,
  event_type           text not null,
  device_id            uuid,
  access_code_id       uuid,
  connected_account_id uuid,
  payload              jsonb not null, -- the fields of its type beyond the common ones; never a PIN
  pin_sealed           bytea, -- the PIN, for types that carry one
  occurred_at          timestamptz not null default now(),
  created_at           timestamptz not null default clock_timestamp(),
  fanned_out_at        timestamptz -- when its deliveries were created
) partition by range (event_id);
create index on events (workspace_id, created_at, event_id);
-- The outbox of a workspace takes from its accounts in turn.
create index events_outbox_of_accounts on events (workspace_id, coalesce(connected_account_id, '00000000-0000-0000-0000-000000000000'), created_at) where fanned_out_at is null;
create index on events (workspace_id, device_id, created_at) where device_id is not null;
create index on events (workspace_id, access_code_id, created_at) where access_code_id is not null;
create index on events (workspace_id, connected_account_id, created_at) where connected_account_id is not null;
-- Subjects that few events have.
create index events_of_webviews on events (workspace_id, (payload ->> 'connect_webview_id'), created_at) where payload ? 'connect_webview_id';
create index events_of_customers on events (workspace_id, (payload ->> 'customer_key'), created_at) where payload ? 'customer_key';
create index events_of_user_identities on events (workspace_id, (payload ->> 'user_identity_id'), created_at) where payload ? 'user_identity_id';
create index events_of_acs_systems on events (workspace_id, (payload ->> 'acs_system_id'), created_at) where payload ? 'acs_system_id';
create index events_of_acs_users on events (workspace_id, (payload ->> 'acs_user_id'), created_at) where payload ? 'acs_user_id';
create index events_of_acs_access_groups on events (workspace_id, (payload ->> 'acs_access_group_id'), created_at) where payload ? 'acs_access_group_id';
create index events_of_acs_entrances on events (workspace_id, (payload ->> 'acs_entrance_id'), created_at) where payload ? 'acs_entrance_id';

create table deliveries (
  webhook_id      uuid not null references webhooks on delete cascade,
  event_id        uuid not null,
  state           text not null check (state in ('pending', 'delivered', 'failed', 'held')), -- held: the webhook is disabled
  attempts        integer not null default 0, -- all attempts
  retry_step      integer not null default 0, -- attempts since it was created or replayed: the position in the retry schedule
  next_attempt_at timestamptz, -- while pending
  created_at      timestamptz not null default now(),
  finished_at     timestamptz,
  primary key (webhook_id, event_id)
) partition by range (event_id);
create index on deliveries (event_id);
create index deliveries_pending on deliveries (webhook_id, next_attempt_at) where state = 'pending';
create index deliveries_unsent on deliveries (webhook_id, event_id) where state in ('failed', 'held');

create table delivery_attempts (
  webhook_id     uuid not null references webhooks on delete cascade,
  event_id       uuid not null,
  attempt        integer not null, -- from 1
  attempted_at   timestamptz not null,
  latency_us     bigint not null,
  status         integer, -- of HTTP; null: no response
  error          text, -- why there was no response, or why it counts as a failure
  excerpt_sealed bytea, -- the beginning of the response body, which may repeat what was sent
  primary key (webhook_id, event_id, attempt)
) partition by range (event_id);

-- Rows that no other partition accepts, so that an insert never fails.
create table events_rest partition of events default;
create table deliveries_rest partition of deliveries default;
create table delivery_attempts_rest partition of delivery_attempts default;

------------------------------------------------------------------------------------------------------------------------
-- Idempotency keys, audit log, and leases

-- Requests with an Idempotency-Key and their answers. A row is inserted in the transaction of the request's effect, so
-- a request without an effect has none.
create table idempotency_keys (
  idempotency_key_id uuid primary key,
  workspace_id       uuid not null, -- zero: the credential acts in no workspace
  credential_id      uuid not null,
  operation          text not null,
  key_mac            bytea not null,
  request_mac        bytea not null, -- the fingerprint: another body with the same key is a mismatch
  answer_sealed      bytea, -- null until the request is answered
  action_attempt_id  uuid,  -- the attempt from which a missing answer is derived
  held_until         timestamptz, -- until when repeats wait for a missing answer that cannot be derived
  created_at         timestamptz not null default clock_timestamp(),
  unique (workspace_id, credential_id, operation, key_mac)
);
create index on idempotency_keys (workspace_id, created_at);

-- One row for each request or command that changed something, inserted in the transaction of the change. It has no
-- foreign keys, since rows outlive their subjects and the workspace.
create table audit_log (
  audit_id      uuid primary key,
  occurred_at   timestamptz not null default now(),
  workspace_id  uuid, -- null: the whole installation
  actor_kind    text not null,
  actor_id      uuid, -- the credential or the webview; null: the command line or the server
  actor_name    text not null default '',
  request_id    uuid,
  operation     text not null, -- a path of the API, or the words of a command
  subject_kinds text[] not null, -- such as device_id, one for each of subject_ids
  subject_ids   uuid[] not null,
  outcome       text not null check (outcome in ('done', 'pending')) -- pending: the action attempt among the subjects has the outcome
);
create index on audit_log (occurred_at, audit_id);
create index audit_log_of_workspace on audit_log (workspace_id, occurred_at, audit_id);
create index on audit_log using gin (subject_ids);

-- Exclusive work on a key. The fence counts the holders: a result is recorded only while its fence is the row's.
create table leases (
  key        text primary key,
  holder     uuid not null,
  fence      bigint not null,
  held_until timestamptz not null
);

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'there is no migration back: restore a backup'; end $$;
-- +goose StatementEnd
