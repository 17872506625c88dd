-- name: InsertConnectWebview :one
insert into connect_webviews (connect_webview_id, workspace_id, accepted_providers, accepted_capabilities, manage_new_devices, wait_for_devices,
  redirect_url, failure_url, custom_metadata, customer_key, expires_at, created_by_session, is_unclaimed)
values (@connect_webview_id, @workspace_id, @accepted_providers, @accepted_capabilities, @manage_new_devices, @wait_for_devices,
  @redirect_url, @failure_url, @custom_metadata, @customer_key, @expires_at, sqlc.narg('created_by_session'), @is_unclaimed)
returning *;

-- name: DropUnusedWebviewsOfSession :exec
-- Deletes the oldest webviews without a login that a session has created, and keeps the newest. Webviews with a login in
-- progress are locked and stay.
delete from connect_webviews where connect_webview_id in (
  select w.connect_webview_id from connect_webviews w
  where w.created_by_session = @created_by_session::uuid and w.status <> 'authorized' and w.connected_account_id is null
  order by w.created_at desc, w.connect_webview_id desc offset @kept::integer for update skip locked
);

-- name: CountUnclaimedWebviews :one
-- Open webviews of sessions that reach nothing, up to a maximum.
select count(*)::integer from (
  select 1 from connect_webviews where workspace_id = @workspace_id and is_unclaimed and status <> 'authorized'
  limit @max_rows::integer
) w;

-- name: DropForgottenWebviews :execrows
-- Deletes the oldest webviews without a login of sessions that reach nothing.
delete from connect_webviews where connect_webview_id in (
  select w.connect_webview_id from connect_webviews w
  where w.workspace_id = @workspace_id and w.is_unclaimed and w.status <> 'authorized' and w.connected_account_id is null
    and w.created_at < now() - @age::interval
  order by w.created_at limit @max_rows::integer for update skip locked
);

-- name: FindSurplusWebviewsOfAccount :many
-- The oldest webviews of client sessions with a login to an account, besides one of them.
select connect_webview_id from connect_webviews
where connected_account_id = @connected_account_id::uuid and created_by_session is not null and connect_webview_id <> @besides::uuid
order by created_at desc, connect_webview_id desc offset @kept::integer for update skip locked;

-- name: GetConnectWebview :one
select * from connect_webviews where workspace_id = @workspace_id and connect_webview_id = @connect_webview_id;

-- name: OpenConnectWebview :one
-- For a browser with its token.
select * from connect_webviews where connect_webview_id = @connect_webview_id;

-- name: FindConnectWebviews :many
-- Planned for each call, because the conditions are optional.
select * from connect_webviews
where workspace_id = @workspace_id
  and (created_at, connect_webview_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('session')::uuid is null or connect_webview_id in (
    select p.connect_webview_id from client_session_webview_scope p where p.client_session_id = sqlc.narg('session')::uuid))
  and (sqlc.narg('customer_key')::text is null or customer_key = sqlc.narg('customer_key')::text)
  and (sqlc.narg('metadata')::jsonb is null or custom_metadata @> sqlc.narg('metadata')::jsonb)
  and (sqlc.narg('without_metadata')::text[] is null or not custom_metadata ?| sqlc.narg('without_metadata')::text[])
  and (sqlc.narg('pattern')::text is null or concat_ws(' ', connect_webview_id::text, array_to_string(accepted_providers, ' '), customer_key,
    (select string_agg(value, ' ') from jsonb_each_text(custom_metadata))) ~ sqlc.narg('pattern')::text)
order by created_at, connect_webview_id
limit @max_rows::integer;

-- name: LockWorkspaceWebview :one
-- Blocks grants and logins until the webview is deleted.
select connect_webview_id from connect_webviews where workspace_id = @workspace_id and connect_webview_id = @connect_webview_id for update;

-- name: LockIdentitiesOfWebview :many
select user_identity_id from user_identities u
where exists (select 1 from user_identity_webviews w where w.user_identity_id = u.user_identity_id and w.connect_webview_id = @connect_webview_id)
order by user_identity_id for key share;

-- name: LockSessionsOfWebview :many
select client_session_id from client_sessions s
where exists (select 1 from client_session_webviews w where w.client_session_id = s.client_session_id and w.connect_webview_id = @connect_webview_id)
order by client_session_id for key share;

-- name: DeleteConnectWebview :exec
-- Client sessions and identities keep the account that it connected.
with people as (
  insert into user_identity_accounts (user_identity_id, connected_account_id)
  select p.user_identity_id, v.connected_account_id from user_identity_webviews p join connect_webviews v using (connect_webview_id)
  where v.workspace_id = @workspace_id and v.connect_webview_id = @connect_webview_id and v.connected_account_id is not null and not v.account_reassigned
  on conflict do nothing),
kept as (
  insert into client_session_accounts (client_session_id, connected_account_id)
  select p.client_session_id, v.connected_account_id from client_session_webviews p join connect_webviews v using (connect_webview_id)
  where v.workspace_id = @workspace_id and v.connect_webview_id = @connect_webview_id and v.connected_account_id is not null and not v.account_reassigned
  on conflict do nothing)
delete from connect_webviews w where w.workspace_id = @workspace_id and w.connect_webview_id = @connect_webview_id;

-- name: BeginLogin :execrows
-- Counts the attempt first, so that concurrent attempts cannot exceed the limit.
update connect_webviews set login_attempts = login_attempts + 1
where connect_webview_id = @connect_webview_id and status <> 'authorized' and expires_at > @now::timestamptz and login_attempts < @most::integer;

-- name: LockConnectWebview :one
-- Webviews are locked before accounts.
select * from connect_webviews where connect_webview_id = @connect_webview_id for no key update;

-- name: SetLogin :exec
update connect_webviews set status = @status, selected_provider = @selected_provider, connected_account_id = coalesce(sqlc.narg('connected_account_id')::uuid, connected_account_id),
  authorized_at = case when @status = 'authorized' then now() end, account_reassigned = account_reassigned and sqlc.narg('connected_account_id')::uuid is null
where connect_webview_id = @connect_webview_id;

-- name: RevokeOtherCustomers :exec
-- Called before an account is locked and assigned to a customer. Revokes the access that sessions of other customers
-- have by webviews, grants, and their identities, unless the customer stays the same. A new login gives access again.
with moved as (
  select a.connected_account_id from connected_accounts a
  where a.workspace_id = @workspace_id and a.connected_account_id = @connected_account_id and a.customer_key is distinct from @customer_key::text),
pages as (
  update connect_webviews v set account_reassigned = true from moved
  where v.workspace_id = @workspace_id and v.connected_account_id = moved.connected_account_id and v.customer_key <> @customer_key::text),
granted as (
  delete from client_session_accounts g using moved, client_sessions s
  where g.connected_account_id = moved.connected_account_id and s.client_session_id = g.client_session_id and s.customer_key <> @customer_key::text),
granted_devices as (
  delete from user_identity_devices g using moved, devices d, client_sessions s
  where d.connected_account_id = moved.connected_account_id and g.device_id = d.device_id and s.user_identity_id = g.user_identity_id
    and s.workspace_id = @workspace_id and s.customer_key <> @customer_key::text)
delete from user_identity_accounts g using moved, client_sessions s
where g.connected_account_id = moved.connected_account_id and s.user_identity_id = g.user_identity_id and s.workspace_id = @workspace_id
  and s.customer_key <> @customer_key::text;

-- name: AuthorizeWaiting :many
-- Webviews that waited for the devices of an account.
update connect_webviews set status = 'authorized', authorized_at = now()
where connected_account_id = @connected_account_id and status <> 'authorized'
returning connect_webview_id;

-- name: FailWaiting :many
-- Webviews that wait for the devices of a deleted account.
update connect_webviews set status = 'failed' where connected_account_id = @connected_account_id and status = 'pending'
returning *;

-- name: NamesOnWebview :many
-- The vendor's names of the devices and access systems that the account of a webview has, in the order in which they
-- were found, and their number, up to a maximum of rows.
select f.name, (count(*) over ())::integer as total
from connect_webviews w
cross join lateral (
  select d.device_id as id, d.name from devices d where d.connected_account_id = w.connected_account_id and d.removed_at is null
  union all
  select s.acs_system_id as id, s.name from acs_systems s where s.connected_account_id = w.connected_account_id and s.removed_at is null
) f
where w.connect_webview_id = @connect_webview_id and not w.account_reassigned
order by f.id limit @max_rows::integer;
