-- +goose Up

-- The credential of an end user: it reaches some accounts and their devices.
create table client_sessions (
  client_session_id   uuid primary key,
  workspace_id        uuid not null references workspaces on delete cascade,
  token_hash          bytea not null unique, -- SHA-256
  token_sealed        bytea not null, -- to be shown again to the workspace
  user_identifier_key text,
  user_identity_id    uuid, -- what it has logged in to on the webviews of its sessions is reached, too
  customer_key        text, -- those of this customer too
  created_at          timestamptz not null default now(),
  expires_at          timestamptz not null,
  revoked_at          timestamptz
);
create index on client_sessions (workspace_id, created_at, client_session_id);
create index on client_sessions (workspace_id, user_identity_id) where user_identity_id is not null;
create index on client_sessions (workspace_id, user_identifier_key) where user_identifier_key is not null;

create table client_session_accounts (
  client_session_id    uuid not null references client_sessions on delete cascade,
  connected_account_id uuid not null references connected_accounts on delete cascade,
  primary key (client_session_id, connected_account_id)
);
create index on client_session_accounts (connected_account_id);

create table client_session_webviews (
  client_session_id  uuid not null references client_sessions on delete cascade,
  connect_webview_id uuid not null references connect_webviews on delete cascade, -- whose account, as soon as there is one, is reached
  primary key (client_session_id, connect_webview_id)
);
create index on client_session_webviews (connect_webview_id);
create index on connect_webviews (workspace_id, customer_key) where customer_key is not null;

-- The webviews of a session: its own, those of all sessions of its user identity, and those of its customer.
create view client_session_pages as
  select w.client_session_id, w.connect_webview_id from client_session_webviews w
  union
  select s.client_session_id, w.connect_webview_id
  from client_sessions s join client_sessions o on o.workspace_id = s.workspace_id and o.user_identity_id = s.user_identity_id
    join client_session_webviews w on w.client_session_id = o.client_session_id
  union
  select s.client_session_id, v.connect_webview_id
  from client_sessions s join connect_webviews v on v.workspace_id = s.workspace_id and v.customer_key = s.customer_key;

-- The one place that says what a session reaches.
create view client_session_reach as
  select g.client_session_id, a.connected_account_id
  from client_session_accounts g join connected_accounts a using (connected_account_id) where a.deleted_at is null
  union
  select s.client_session_id, a.connected_account_id
  from client_sessions s join connected_accounts a on a.workspace_id = s.workspace_id and a.customer_key = s.customer_key where a.deleted_at is null
  union
  select p.client_session_id, a.connected_account_id
  from client_session_pages p join connect_webviews v using (connect_webview_id) join connected_accounts a using (connected_account_id)
  where a.deleted_at is null;

-- What has happened to some accounts among many.
create index on events (workspace_id, connected_account_id, created_at) where connected_account_id is not null;

-- Publishable keys are no secret: the page that shows them to everybody is where they belong.
alter table credentials drop constraint credentials_kind_check,
  add constraint credentials_kind_check check (kind in ('api_key', 'pat', 'console_session', 'publishable_key')),
  add column public_token text; -- of a publishable key
create index on credential_workspaces (workspace_id);
-- The latest of each workspace that is good.
create view publishable_keys as
  select distinct on (w.workspace_id) w.workspace_id, c.public_token
  from credential_workspaces w join credentials c using (credential_id)
  where c.kind = 'publishable_key' and c.revoked_at is null and (c.expires_at is null or c.expires_at > now())
  order by w.workspace_id, c.created_at desc;

alter table workspaces
  add column is_suspended                    boolean not null default false, -- nothing is asked for in it but itself
  add column is_publishable_key_auth_enabled boolean not null default true,
  add column connect_webview_customization   jsonb not null default '{}';

-- An attempt to do something with a whole workspace is on no device.
alter table action_attempts alter column device_id drop not null;
create index action_attempts_of_workspaces on action_attempts (workspace_id) where device_id is null and status = 'pending';

-- +goose Down
drop index action_attempts_of_workspaces;
delete from action_attempts where device_id is null;
alter table action_attempts alter column device_id set not null;
alter table workspaces drop column is_suspended, drop column is_publishable_key_auth_enabled, drop column connect_webview_customization;
drop index events_workspace_id_connected_account_id_created_at_idx;
drop view publishable_keys;
drop index credential_workspaces_workspace_id_idx;
delete from credentials where kind = 'publishable_key';
alter table credentials drop column public_token, drop constraint credentials_kind_check,
  add constraint credentials_kind_check check (kind in ('api_key', 'pat', 'console_session'));
drop view client_session_reach;
drop view client_session_pages;
drop index connect_webviews_workspace_id_customer_key_idx;
drop table client_session_webviews, client_session_accounts, client_sessions;
