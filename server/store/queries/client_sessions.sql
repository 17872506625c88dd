-- name: InsertClientSession :exec
insert into client_sessions (client_session_id, workspace_id, token_hash, token_sealed, user_identifier_key, customer_key, expires_at, is_unclaimed, mac)
values (@client_session_id, @workspace_id, @token_hash, @token_sealed, @user_identifier_key, @customer_key, @expires_at, @is_unclaimed, @mac);

-- name: ListClientSessionsWithoutMAC :many
select * from client_sessions where mac is null for update;

-- name: SetClientSessionMAC :exec
update client_sessions set mac = @mac where client_session_id = @client_session_id;

-- name: CountUnclaimedSessions :one
-- Valid unclaimed sessions, up to a maximum.
select count(*)::integer from (
  select 1 from client_sessions where workspace_id = @workspace_id and is_unclaimed and revoked_at is null and expires_at > now()
  limit @max_rows::integer
) s;

-- name: ClaimSessionsWithScope :execrows
-- Looks up the scope of each session separately. A join would compute the scopes of all sessions of all workspaces.
update client_sessions set is_unclaimed = false where client_session_id in (
  select s.client_session_id from client_sessions s
  where s.workspace_id = @workspace_id and s.is_unclaimed and s.revoked_at is null and s.expires_at > now()
    and ((select r.client_session_id from client_session_scope r where r.client_session_id = s.client_session_id limit 1) is not null
      or exists (select 1 from client_session_device_scope g where g.client_session_id = s.client_session_id))
  limit @max_rows::integer for no key update of s skip locked
);

-- name: DeleteUnclaimedSessions :many
-- Deletes the oldest sessions that were never claimed.
delete from client_sessions where client_session_id in (
  select s.client_session_id from client_sessions s
  where s.workspace_id = @workspace_id and s.is_unclaimed and s.revoked_at is null and s.created_at < now() - @age::interval
    and not exists (select 1 from client_session_scope r where r.client_session_id = s.client_session_id)
    and not exists (select 1 from client_session_device_scope g where g.client_session_id = s.client_session_id)
  order by s.created_at limit @max_rows::integer for update of s skip locked
) returning *;

-- name: LockEndUser :exec
-- Serializes the search for a session of an end user and its creation.
select pg_advisory_xact_lock(hashtextextended(@workspace_id::text || '/client_session/' || @user_identifier_key::text, 0));

-- name: AuthenticateClientSession :one
-- With its current scope: accounts and devices.
select s.client_session_id, s.workspace_id, s.user_identifier_key, s.customer_key, s.is_unclaimed, s.expires_at, s.mac, w.is_suspended, (s.revoked_at is not null)::boolean as revoked, (s.expires_at <= now())::boolean as expired,
  array(select r.connected_account_id from client_session_scope r where r.client_session_id = s.client_session_id
    union all select g.device_id from client_session_device_scope g where g.client_session_id = s.client_session_id)::uuid[] as scope
from client_sessions s join workspaces w using (workspace_id) where s.token_hash = @token_hash;

-- name: GetClientSession :one
select * from client_sessions where workspace_id = @workspace_id and client_session_id = @client_session_id;

-- name: GetClientSessionOfEndUser :one
-- The valid one.
select * from client_sessions
where workspace_id = @workspace_id and user_identifier_key = @user_identifier_key::text and revoked_at is null and expires_at > now()
order by created_at desc, client_session_id desc limit 1;

-- name: GetClientSessionOfIdentity :one
-- The valid one that belongs to no end user.
select s.* from client_sessions s
where s.workspace_id = @workspace_id and s.user_identity_id = coalesce((select m.user_identity_id from merged_user_identities m
    where m.workspace_id = @workspace_id and m.merged_user_identity_id = @user_identity_id::uuid), @user_identity_id::uuid)
  and user_identifier_key is null and revoked_at is null and expires_at > now()
order by created_at desc, client_session_id desc limit 1;

-- name: ListClientSessions :many
-- Planned for each call, because the conditions are optional.
select * from client_sessions s
where s.workspace_id = @workspace_id and s.revoked_at is null and s.expires_at > now()
  and (s.created_at, s.client_session_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('client_session_id')::uuid is null or s.client_session_id = sqlc.narg('client_session_id')::uuid)
  and (sqlc.narg('user_identifier_key')::text is null or s.user_identifier_key = sqlc.narg('user_identifier_key')::text)
  and (not @without_key::boolean or s.user_identifier_key is null)
  and (sqlc.narg('user_identity_id')::uuid is null or s.user_identity_id = sqlc.narg('user_identity_id')::uuid
    or s.user_identity_id = (select m.user_identity_id from merged_user_identities m
      where m.workspace_id = @workspace_id and m.merged_user_identity_id = sqlc.narg('user_identity_id')::uuid))
  and (sqlc.narg('connect_webview_id')::uuid is null or exists (select 1 from client_session_webview_scope w
    where w.client_session_id = s.client_session_id and w.connect_webview_id = sqlc.narg('connect_webview_id')::uuid))
order by s.created_at, s.client_session_id
limit @max_rows::integer;

-- name: GetClientSessionScopes :many
-- The scope of each session with its newest webviews, and its number of managed devices.
select s.client_session_id,
  array(select r.connected_account_id from client_session_scope r where r.client_session_id = s.client_session_id order by 1)::uuid[] as accounts,
  array(select n.connect_webview_id from (
    select p.connect_webview_id from client_session_webview_scope p where p.client_session_id = s.client_session_id
    order by 1 desc limit @max_webviews::integer) n order by 1)::uuid[] as webviews,
  array(select g.device_id from client_session_device_scope g where g.client_session_id = s.client_session_id order by 1)::uuid[] as granted_devices,
  (select count(*) from (
    select d.device_id from client_session_scope r join devices d using (connected_account_id)
    where r.client_session_id = s.client_session_id and d.removed_at is null and d.is_managed
    union select g.device_id from client_session_device_scope g where g.client_session_id = s.client_session_id) seen)::integer as devices
from client_sessions s where s.workspace_id = @workspace_id and s.client_session_id = any(@client_session_ids::uuid[]);

-- name: LockClientSession :one
-- Prevents its deletion until the grant is written.
select client_session_id from client_sessions where client_session_id = @client_session_id for no key update;

-- name: GrantAccountsToClientSession :exec
insert into client_session_accounts (client_session_id, connected_account_id)
select @client_session_id, unnest(@accounts::uuid[]) on conflict do nothing;

-- name: AccountsOfWorkspace :many
-- Which of the accounts the workspace has. They cannot be deleted until the transaction ends.
select connected_account_id from connected_accounts
where workspace_id = @workspace_id and connected_account_id = any(@accounts::uuid[]) and deleted_at is null
order by connected_account_id for key share;

-- name: GrantWebviewsToClientSession :exec
insert into client_session_webviews (client_session_id, connect_webview_id)
select @client_session_id, unnest(@webviews::uuid[]) on conflict do nothing;

-- name: WebviewsOfWorkspace :many
-- Which of the webviews the workspace has. They cannot be deleted until the transaction ends.
select connect_webview_id from connect_webviews where workspace_id = @workspace_id and connect_webview_id = any(@webviews::uuid[])
order by connect_webview_id for key share;

-- name: SetIdentityOfClientSession :exec
update client_sessions set user_identity_id = @user_identity_id where client_session_id = @client_session_id;

-- name: MoveSessionsToIdentity :exec
update client_sessions set user_identity_id = @user_identity_id where workspace_id = @workspace_id and user_identity_id = @merged_user_identity_id;

-- name: KeepWebviewsOfIdentity :exec
-- Grants the session's webviews to its identity, which keeps them when the session is deleted.
insert into user_identity_webviews (user_identity_id, connect_webview_id)
select s.user_identity_id, w.connect_webview_id from client_sessions s join client_session_webviews w using (client_session_id) join user_identities u using (user_identity_id)
where s.client_session_id = @client_session_id
on conflict do nothing;

-- name: SeesWebview :one
select exists (select 1 from client_session_webview_scope where client_session_id = @client_session_id and connect_webview_id = @connect_webview_id) as sees;

-- name: RevokeClientSession :execrows
update client_sessions set revoked_at = coalesce(revoked_at, now()) where workspace_id = @workspace_id and client_session_id = @client_session_id;

-- name: DeleteClientSession :one
delete from client_sessions where workspace_id = @workspace_id and client_session_id = @client_session_id returning *;

-- name: StandingNow :one
-- Whether a credential of any kind is valid, whether the workspace is suspended, and the current scope of a client
-- session.
select (exists (select 1 from credentials c where c.credential_id = @credential_id and c.revoked_at is null and (c.expires_at is null or c.expires_at > now()))
  or exists (select 1 from client_sessions s where s.client_session_id = @credential_id and s.revoked_at is null and s.expires_at > now()))::boolean as good,
  w.is_suspended, array(select r.connected_account_id from client_session_scope r where r.client_session_id = @credential_id
    union all select g.device_id from client_session_device_scope g where g.client_session_id = @credential_id)::uuid[] as scope
from workspaces w where w.workspace_id = @workspace_id;
