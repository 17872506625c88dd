-- name: InsertPhone :one
insert into phones (device_id, workspace_id, user_identity_id, custom_sdk_installation_id, operating_system, device_model, seos_tsm_endpoint_id)
values (@device_id, @workspace_id, @user_identity_id, @custom_sdk_installation_id, @operating_system, @device_model, @seos_tsm_endpoint_id)
returning *;

-- name: GetPhone :one
select * from phones where workspace_id = @workspace_id and device_id = @device_id;

-- name: GetPhoneOfInstallation :one
select * from phones
where workspace_id = @workspace_id and user_identity_id = @user_identity_id and custom_sdk_installation_id = @custom_sdk_installation_id::text;

-- name: CountPhones :one
select count(*) from phones where workspace_id = @workspace_id and user_identity_id = @user_identity_id;

-- name: FindPhones :many
-- Planned for each call, because the condition is optional.
select p.* from phones p
where p.workspace_id = @workspace_id and (created_at, device_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('user_identity_id')::uuid is null or p.user_identity_id = sqlc.narg('user_identity_id')::uuid
    or p.user_identity_id = (select m.user_identity_id from merged_user_identities m
      where m.workspace_id = @workspace_id and m.merged_user_identity_id = sqlc.narg('user_identity_id')::uuid))
order by created_at, device_id
limit @max_rows::integer;

-- name: DeletePhone :one
-- With a session, only if the phone belongs to the identity of the session.
delete from phones p where p.workspace_id = @workspace_id and p.device_id = @device_id
  and (sqlc.narg('session')::uuid is null
    or p.user_identity_id = (select c.user_identity_id from client_sessions c where sqlc.narg('session')::uuid = c.client_session_id))
returning *;

-- name: DeletePhonesOfIdentity :many
delete from phones where workspace_id = @workspace_id and user_identity_id = @user_identity_id returning device_id;
