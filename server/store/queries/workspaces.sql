-- name: InsertWorkspace :exec
insert into workspaces (workspace_id, name, company_name, connect_partner_name, is_sandbox, connect_webview_customization, created_by)
values (@workspace_id, @name, @company_name, @connect_partner_name, @is_sandbox, coalesce(sqlc.narg('connect_webview_customization')::jsonb, '{}'),
  nullif(@created_by::uuid, '00000000-0000-0000-0000-000000000000'));

-- name: LockWorkspace :one
-- Changes of a workspace itself happen one after another; what is in it goes on.
select * from workspaces where workspace_id = @workspace_id for no key update;

-- name: HoldWorkspace :one
-- It is neither changed nor reset meanwhile.
select workspace_id from workspaces where workspace_id = @workspace_id for share;

-- name: UpdateWorkspace :exec
update workspaces set name = @name, connect_partner_name = @connect_partner_name, is_suspended = @is_suspended,
  is_publishable_key_auth_enabled = @is_publishable_key_auth_enabled, connect_webview_customization = @connect_webview_customization
where workspace_id = @workspace_id;

-- name: LockAccountsOfWorkspace :many
-- Before their devices, as everybody does.
select * from connected_accounts where workspace_id = @workspace_id order by connected_account_id for update;

-- name: LockDevicesOfAccounts :exec
select from devices where connected_account_id = any(@account_ids::uuid[]) order by device_id for update;

-- name: EraseWorkspace :exec
-- Everything in it but its credentials and webhooks, and attempts that were made on itself.
with accounts as (delete from connected_accounts a where a.workspace_id = @workspace_id), -- with their devices, codes and systems
  told as (delete from events e where e.workspace_id = @workspace_id), -- EraseDeliveries is next
  attempts as (delete from action_attempts t where t.workspace_id = @workspace_id and t.device_id is not null),
  webviews as (delete from connect_webviews v where v.workspace_id = @workspace_id),
  answers as (delete from idempotency_keys i where i.workspace_id = @workspace_id),
  people as (delete from user_identities u where u.workspace_id = @workspace_id)
delete from client_sessions s where s.workspace_id = @workspace_id;

-- name: EraseDeliveries :exec
-- Those whose events are erased. A statement of its own: it sees what was made until the last event was.
delete from deliveries d using webhooks w where w.workspace_id = @workspace_id and d.webhook_id = w.webhook_id
and not exists (select 1 from events e where e.event_id = d.event_id);

-- name: EraseDeliveryAttempts :exec
-- Those whose deliveries are erased.
delete from delivery_attempts a using webhooks w where w.workspace_id = @workspace_id and a.webhook_id = w.webhook_id
and not exists (select 1 from deliveries d where d.webhook_id = a.webhook_id and d.event_id = a.event_id);

-- name: GetWorkspace :one
select sqlc.embed(w), k.public_token as publishable_key from workspaces w left join publishable_keys k using (workspace_id) where w.workspace_id = @workspace_id;

-- name: ListAllWorkspaces :many
select sqlc.embed(w), k.public_token as publishable_key from workspaces w left join publishable_keys k using (workspace_id) order by w.created_at, w.workspace_id;

-- name: ListWorkspacesOfCredential :many
select sqlc.embed(w), k.public_token as publishable_key from workspaces w join credential_workspaces c using (workspace_id) left join publishable_keys k using (workspace_id)
where c.credential_id = @credential_id order by w.created_at, w.workspace_id;

-- name: InsertCredential :exec
insert into credentials (credential_id, kind, name, hint, token_hash, expires_at, public_token)
values (@credential_id, @kind, @name, @hint, @token_hash, @expires_at, @public_token);

-- name: InsertCredentialWorkspace :exec
insert into credential_workspaces (credential_id, workspace_id) values (@credential_id, @workspace_id);

-- name: CountWorkspacesOfCredential :one
-- Up to max_rows of them.
select count(*) from (select from credential_workspaces where credential_id = @credential_id limit @max_rows::integer) w;

-- name: FindCredential :one
-- The workspace is the one asked for if the credential may enter it; a key enters its own unasked.
select c.credential_id, c.kind, c.name, w.workspace_id, coalesce(s.is_suspended, false) as suspended,
  coalesce(s.is_publishable_key_auth_enabled, false) as publishable_keys
from credentials c left join credential_workspaces w on w.credential_id = c.credential_id
  and (w.workspace_id = sqlc.narg('workspace_id')::uuid or (c.kind in ('api_key', 'publishable_key') and sqlc.narg('workspace_id')::uuid is null))
  left join workspaces s on s.workspace_id = w.workspace_id
where c.token_hash = @token_hash and c.revoked_at is null and (c.expires_at is null or c.expires_at > now());

-- name: ListCredentials :many
select c.*, coalesce(array_agg(w.workspace_id order by w.workspace_id) filter (where w.workspace_id is not null), '{}')::uuid[] as workspace_ids
from credentials c left join credential_workspaces w using (credential_id)
group by c.credential_id order by c.created_at, c.credential_id;

-- name: RevokeCredential :execrows
update credentials set revoked_at = now() where credential_id = @credential_id and revoked_at is null;
