-- name: InsertWorkspace :exec
insert into workspaces (workspace_id, name, company_name, connect_partner_name, is_sandbox, connect_webview_customization, created_by)
values (@workspace_id, @name, @company_name, @connect_partner_name, @is_sandbox, coalesce(sqlc.narg('connect_webview_customization')::jsonb, '{}'),
  nullif(@created_by::uuid, '00000000-0000-0000-0000-000000000000'));

-- name: LockWorkspace :one
-- Serializes changes of the workspace itself, but not of its contents.
select * from workspaces where workspace_id = @workspace_id for no key update;

-- name: HoldWorkspace :one
-- Prevents changes and a reset of the workspace until the transaction ends.
select workspace_id from workspaces where workspace_id = @workspace_id for share;

-- name: UpdateWorkspace :exec
update workspaces set name = @name, connect_partner_name = @connect_partner_name, is_suspended = @is_suspended,
  is_publishable_key_auth_enabled = @is_publishable_key_auth_enabled, connect_webview_customization = @connect_webview_customization
where workspace_id = @workspace_id;

-- name: LockAccountsOfWorkspace :many
-- Accounts are locked before devices.
select * from connected_accounts where workspace_id = @workspace_id order by connected_account_id for update;

-- name: LockDevicesOfAccounts :exec
select from devices where connected_account_id = any(@account_ids::uuid[]) order by device_id for update;

-- name: EraseWorkspace :exec
-- Deletes everything but credentials, webhooks, and attempts on the workspace itself.
with accounts as (delete from connected_accounts a where a.workspace_id = @workspace_id), -- cascades to devices, codes, and systems
  told as (delete from events e where e.workspace_id = @workspace_id), -- EraseDeliveries follows
  attempts as (delete from action_attempts t where t.workspace_id = @workspace_id and (t.device_id is not null or t.action_type <> 'RESET_SANDBOX_WORKSPACE')),
  webviews as (delete from connect_webviews v where v.workspace_id = @workspace_id),
  answers as (delete from idempotency_keys i where i.workspace_id = @workspace_id),
  people as (delete from user_identities u where u.workspace_id = @workspace_id)
delete from client_sessions s where s.workspace_id = @workspace_id;

-- name: EraseDeliveries :exec
-- Deletes deliveries without events. A separate statement sees the deliveries that were created until the events were
-- deleted.
delete from deliveries d using webhooks w where w.workspace_id = @workspace_id and d.webhook_id = w.webhook_id
and not exists (select 1 from events e where e.event_id = d.event_id);

-- name: EraseDeliveryAttempts :exec
-- Deletes attempts without deliveries.
delete from delivery_attempts a using webhooks w where w.workspace_id = @workspace_id and a.webhook_id = w.webhook_id
and not exists (select 1 from deliveries d where d.webhook_id = a.webhook_id and d.event_id = a.event_id);

-- name: GetWorkspace :one
select sqlc.embed(w), k.public_token as publishable_key from workspaces w left join publishable_keys k using (workspace_id) where w.workspace_id = @workspace_id;

-- name: ListAllWorkspaces :many
select sqlc.embed(w), k.public_token as publishable_key from workspaces w left join publishable_keys k using (workspace_id) order by w.created_at, w.workspace_id;

-- name: ListWorkspacesPage :many
-- A page of all workspaces, or of those with the identifiers, oldest first.
select sqlc.embed(w), k.public_token as publishable_key from workspaces w left join publishable_keys k using (workspace_id)
where (@everywhere::boolean or w.workspace_id = any(@workspace_ids::uuid[]))
  and (w.created_at, w.workspace_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('pattern')::text is null or concat_ws(chr(10), w.name, w.workspace_id::text) ~ sqlc.narg('pattern')::text)
order by w.created_at, w.workspace_id limit @max_rows::integer;

-- name: ListWorkspacesOfCredential :many
select sqlc.embed(w), k.public_token as publishable_key, c.mac from workspaces w join credential_workspaces c using (workspace_id) left join publishable_keys k using (workspace_id)
where c.credential_id = @credential_id order by w.created_at, w.workspace_id;

-- name: InsertCredential :exec
insert into credentials (credential_id, kind, name, hint, token_hash, expires_at, public_token, mac, role, owner)
values (@credential_id, @kind, @name, @hint, @token_hash, @expires_at, @public_token, @mac, @role, @owner);

-- name: InsertCredentialWorkspace :exec
insert into credential_workspaces (credential_id, workspace_id, mac) values (@credential_id, @workspace_id, @mac);

-- name: ListCredentialsWithoutMAC :many
select * from credentials where mac is null for update;

-- name: SetCredentialMAC :exec
update credentials set mac = @mac where credential_id = @credential_id;

-- name: ListCredentialWorkspacesWithoutMAC :many
select credential_id, workspace_id from credential_workspaces where mac is null for update;

-- name: SetCredentialWorkspaceMAC :exec
update credential_workspaces set mac = @mac where credential_id = @credential_id and workspace_id = @workspace_id;

-- name: CountWorkspacesOfCredential :one
-- Up to a maximum.
select count(*) from (select from credential_workspaces where credential_id = @credential_id limit @max_rows::integer) w;

-- name: FindCredential :one
-- The requested workspace, if the credential may act in it. A key without a requested workspace gets its own.
select c.credential_id, c.kind, c.name, c.role, c.expires_at, c.last_used_at, c.mac, w.workspace_id, w.mac as workspace_mac, coalesce(s.is_suspended, false) as suspended,
  coalesce(s.is_publishable_key_auth_enabled, false) as publishable_keys
from credentials c left join credential_workspaces w on w.credential_id = c.credential_id
  and (w.workspace_id = sqlc.narg('workspace_id')::uuid or (c.kind in ('api_key', 'publishable_key') and sqlc.narg('workspace_id')::uuid is null))
  left join workspaces s on s.workspace_id = w.workspace_id
where c.token_hash = @token_hash and c.revoked_at is null and (c.expires_at is null or c.expires_at > now());

-- name: ListCredentials :many
select c.*, coalesce(array_agg(w.workspace_id order by w.workspace_id) filter (where w.workspace_id is not null), '{}')::uuid[] as workspace_ids
from credentials c left join credential_workspaces w using (credential_id)
group by c.credential_id order by c.created_at, c.credential_id;

-- name: ListCredentialsPage :many
-- A page of credentials, newest first: of all, or of those that are valid.
select c.*, coalesce((select array_agg(w.workspace_id order by w.workspace_id) from credential_workspaces w
  where w.credential_id = c.credential_id), '{}')::uuid[] as workspace_ids
from credentials c
where (c.created_at, c.credential_id) < (@before_at::timestamptz, @before_id::uuid)
  and (@ended::boolean or c.revoked_at is null and (c.expires_at is null or c.expires_at > @now::timestamptz))
  and (sqlc.narg('pattern')::text is null or concat_ws(chr(10), c.name, c.owner, c.hint) ~ sqlc.narg('pattern')::text)
order by c.created_at desc, c.credential_id desc limit @max_rows::integer;

-- name: RecordCredentialUse :exec
-- At most once per interval, and without waiting for another request that records the same.
update credentials set last_used_at = now() where credential_id in (
  select c.credential_id from credentials c where c.credential_id = @credential_id
    and (c.last_used_at is null or c.last_used_at < now() - make_interval(secs => @interval_seconds::double precision))
  for no key update skip locked);

-- name: RevokeCredential :execrows
update credentials set revoked_at = now() where credential_id = @credential_id and revoked_at is null;

-- name: GetFirstSteps :one
-- Which steps toward real devices an operator has done.
select exists (select from workspaces where not is_sandbox) as workspace,
       exists (select from credential_workspaces join workspaces using (workspace_id) where not is_sandbox) as key,
       exists (select from connected_accounts join workspaces using (workspace_id) where not is_sandbox) as account;
