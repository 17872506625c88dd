-- name: InsertUserIdentity :one
insert into user_identities (user_identity_id, workspace_id, user_identity_key, email_address, phone_number, full_name)
values (@user_identity_id, @workspace_id, @user_identity_key, @email_address, @phone_number, @full_name)
returning *;

-- name: GetUserIdentity :one
-- The identifier of a merged identity names the one that it was merged into.
select i.* from user_identities i where i.workspace_id = @workspace_id and i.user_identity_id = coalesce((select m.user_identity_id from merged_user_identities m where m.workspace_id = @workspace_id and m.merged_user_identity_id = @user_identity_id), @user_identity_id);

-- name: HoldUserIdentity :one
-- Prevents its deletion until a reference to it is written. Resolves merged identities.
select i.user_identity_id from user_identities i where i.workspace_id = @workspace_id and i.user_identity_id = coalesce((select m.user_identity_id from merged_user_identities m where m.workspace_id = @workspace_id and m.merged_user_identity_id = @user_identity_id), @user_identity_id) for key share;

-- name: GetUserIdentityByKey :one
-- The key of a merged identity names the one that it was merged into.
select i.* from user_identities i where i.workspace_id = @workspace_id and (i.user_identity_key = @user_identity_key::text
  or i.user_identity_id = (select m.user_identity_id from merged_user_identities m where m.workspace_id = @workspace_id and m.user_identity_key = @user_identity_key::text));

-- name: IdentityOfSession :one
-- The identity of a session, if it has one.
select user_identity_id from client_sessions where client_session_id = @client_session_id;

-- name: EndSessionsOfIdentity :many
delete from client_sessions where workspace_id = @workspace_id and user_identity_id = @user_identity_id returning *;

-- name: LockUserIdentity :one
-- Resolves merged identities.
select i.* from user_identities i where i.workspace_id = @workspace_id and i.user_identity_id = coalesce((select m.user_identity_id from merged_user_identities m where m.workspace_id = @workspace_id and m.merged_user_identity_id = @user_identity_id), @user_identity_id) for no key update;

-- name: FindUserIdentities :many
-- Planned for each call, because the conditions are optional.
select i.* from user_identities i
where i.workspace_id = @workspace_id and (i.created_at, i.user_identity_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('created_before')::timestamptz is null or i.created_at < sqlc.narg('created_before')::timestamptz)
  and (sqlc.narg('ids')::uuid[] is null or i.user_identity_id = any(sqlc.narg('ids')::uuid[])
    or i.user_identity_id in (select m.user_identity_id from merged_user_identities m where m.workspace_id = @workspace_id and m.merged_user_identity_id = any(sqlc.narg('ids')::uuid[])))
  and (sqlc.narg('session')::uuid is null or i.user_identity_id = (select c.user_identity_id from client_sessions c where c.client_session_id = sqlc.narg('session')::uuid))
  and (sqlc.narg('pattern')::text is null
    or concat_ws(chr(10), i.full_name, i.phone_number, i.email_address, i.user_identity_id::text) ~ sqlc.narg('pattern')::text)
order by i.created_at, i.user_identity_id
limit @max_rows::integer;

-- name: UpdateUserIdentity :exec
update user_identities set user_identity_key = @user_identity_key, email_address = @email_address, phone_number = @phone_number, full_name = @full_name
where user_identity_id = @user_identity_id;

-- name: ShareLockUserIdentity :one
select user_identity_id from user_identities where user_identity_id = @user_identity_id for key share;

-- name: LockUserIdentityForDelete :one
-- Prevents new users of the identity.
select user_identity_id from user_identities where workspace_id = @workspace_id and user_identity_id = @user_identity_id for update;

-- name: DeleteUserIdentity :exec
delete from user_identities where workspace_id = @workspace_id and user_identity_id = @user_identity_id;

-- name: ListUsersOfIdentities :many
-- The managed users of some identities.
select * from acs_users where workspace_id = @workspace_id and user_identity_id = any(@ids::uuid[]) and is_managed
order by created_at, acs_user_id;

-- name: GrantDeviceToIdentity :execrows
-- Grants a managed device of the workspace. Returns 0 if there is no such device.
insert into user_identity_devices as g (user_identity_id, device_id)
select @user_identity_id, d.device_id from devices d
where d.workspace_id = @workspace_id and d.device_id = @device_id and d.removed_at is null and d.is_managed for key share
on conflict (user_identity_id, device_id) do update set device_id = g.device_id;

-- name: RevokeDeviceOfIdentity :execrows
delete from user_identity_devices where user_identity_id = @user_identity_id and device_id = @device_id;

-- name: DevicesOfIdentity :many
select device_id from user_identity_devices where user_identity_id = @user_identity_id;

-- name: LockIdentitiesToMerge :many
-- In a fixed order, to prevent deadlocks.
select * from user_identities where workspace_id = @workspace_id and user_identity_id = any(@ids::uuid[]) order by user_identity_id for update;

-- name: GetMergedIdentity :one
-- Where an identity was merged into, by its former identifier or key.
select * from merged_user_identities where workspace_id = @workspace_id
  and (merged_user_identity_id = sqlc.narg('merged_user_identity_id')::uuid or user_identity_key = sqlc.narg('user_identity_key')::text);

-- name: ListMergedIdentities :many
select * from merged_user_identities where workspace_id = @workspace_id and user_identity_id = any(@ids::uuid[])
order by merged_at, merged_user_identity_id;

-- name: MergeUserIdentity :exec
-- Moves what belongs to an identity to another one, except users and client sessions. An installation that both have
-- stays with the phone of the other one.
with devices as (
  insert into user_identity_devices (user_identity_id, device_id)
  select @user_identity_id, g.device_id from user_identity_devices g where g.user_identity_id = @merged_user_identity_id on conflict do nothing
), accounts as (
  insert into user_identity_accounts (user_identity_id, connected_account_id)
  select @user_identity_id, g.connected_account_id from user_identity_accounts g where g.user_identity_id = @merged_user_identity_id on conflict do nothing
), webviews as (
  insert into user_identity_webviews (user_identity_id, connect_webview_id)
  select @user_identity_id, g.connect_webview_id from user_identity_webviews g where g.user_identity_id = @merged_user_identity_id on conflict do nothing
), installed as (
  update phones p set user_identity_id = @user_identity_id,
    custom_sdk_installation_id = case when not exists (select 1 from phones o where o.user_identity_id = @user_identity_id
      and o.custom_sdk_installation_id = p.custom_sdk_installation_id) then p.custom_sdk_installation_id end
  where p.workspace_id = @workspace_id and p.user_identity_id = @merged_user_identity_id
), earlier as (
  update merged_user_identities m set user_identity_id = @user_identity_id where m.user_identity_id = @merged_user_identity_id
)
insert into merged_user_identities (merged_user_identity_id, workspace_id, user_identity_id, user_identity_key)
select i.user_identity_id, i.workspace_id, @user_identity_id, i.user_identity_key from user_identities i
where i.workspace_id = @workspace_id and i.user_identity_id = @merged_user_identity_id;
