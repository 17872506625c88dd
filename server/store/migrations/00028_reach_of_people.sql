-- +goose Up

-- What a person has made, or was given, by any of their sessions. These end; what was logged in to by them stays theirs.
create table user_identity_webviews (
  user_identity_id   uuid not null references user_identities on delete cascade,
  connect_webview_id uuid not null references connect_webviews on delete cascade,
  primary key (user_identity_id, connect_webview_id)
);
create index on user_identity_webviews (connect_webview_id);

-- The accounts that a person has logged in to on webviews that are gone.
create table user_identity_accounts (
  user_identity_id     uuid not null references user_identities on delete cascade,
  connected_account_id uuid not null references connected_accounts on delete cascade,
  primary key (user_identity_id, connected_account_id)
);
create index on user_identity_accounts (connected_account_id);

insert into user_identity_webviews (user_identity_id, connect_webview_id)
select s.user_identity_id, w.connect_webview_id
from client_sessions s join client_session_webviews w using (client_session_id) join user_identities u using (user_identity_id)
on conflict do nothing;

create or replace view client_session_pages as
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

create or replace view client_session_reach as
  select g.client_session_id, a.connected_account_id
  from client_session_accounts g join connected_accounts a using (connected_account_id) where a.deleted_at is null
  union
  select s.client_session_id, a.connected_account_id
  from client_sessions s join connected_accounts a on a.workspace_id = s.workspace_id and a.customer_key = s.customer_key where a.deleted_at is null
  union
  select p.client_session_id, a.connected_account_id
  from client_session_pages p join connect_webviews v using (connect_webview_id) join connected_accounts a using (connected_account_id)
  where a.deleted_at is null
  union
  select s.client_session_id, a.connected_account_id
  from client_sessions s join user_identity_accounts g using (user_identity_id) join connected_accounts a using (connected_account_id)
  where a.deleted_at is null;

-- +goose Down
create or replace view client_session_reach as
  select g.client_session_id, a.connected_account_id
  from client_session_accounts g join connected_accounts a using (connected_account_id) where a.deleted_at is null
  union
  select s.client_session_id, a.connected_account_id
  from client_sessions s join connected_accounts a on a.workspace_id = s.workspace_id and a.customer_key = s.customer_key where a.deleted_at is null
  union
  select p.client_session_id, a.connected_account_id
  from client_session_pages p join connect_webviews v using (connect_webview_id) join connected_accounts a using (connected_account_id)
  where a.deleted_at is null;
create or replace view client_session_pages as
  select w.client_session_id, w.connect_webview_id from client_session_webviews w
  union
  select s.client_session_id, w.connect_webview_id
  from client_sessions s join client_sessions o on o.workspace_id = s.workspace_id and o.user_identity_id = s.user_identity_id
    join client_session_webviews w on w.client_session_id = o.client_session_id
  union
  select s.client_session_id, v.connect_webview_id
  from client_sessions s join connect_webviews v on v.workspace_id = s.workspace_id and v.customer_key = s.customer_key;
drop table user_identity_accounts, user_identity_webviews;
