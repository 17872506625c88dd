-- +goose Up

set local lock_timeout = '200ms';
-- The account that was logged in to has been given to another customer than the page's since: it is in nobody's reach by that.
alter table connect_webviews add column account_left boolean not null default false;

create or replace view client_session_reach as
  select g.client_session_id, a.connected_account_id
  from client_session_accounts g join connected_accounts a using (connected_account_id) where a.deleted_at is null
  union
  select s.client_session_id, a.connected_account_id
  from client_sessions s join connected_accounts a on a.workspace_id = s.workspace_id and a.customer_key = s.customer_key where a.deleted_at is null
  union
  select p.client_session_id, a.connected_account_id
  from client_session_pages p join connect_webviews v using (connect_webview_id) join connected_accounts a using (connected_account_id)
  where a.deleted_at is null and not v.account_left
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
  where a.deleted_at is null
  union
  select s.client_session_id, a.connected_account_id
  from client_sessions s join user_identity_accounts g using (user_identity_id) join connected_accounts a using (connected_account_id)
  where a.deleted_at is null;
alter table connect_webviews drop column account_left;
