-- name: InsertUserIdentity :one
insert into user_identities (user_identity_id, workspace_id, user_identity_key, email_address, phone_number, full_name)
values (@user_identity_id, @workspace_id, @user_identity_key, @email_address, @phone_number, @full_name)
returning *;

-- name: GetUserIdentity :one
select * from user_identities where workspace_id = @workspace_id and user_identity_id = @user_identity_id;

-- name: HoldUserIdentity :one
-- Prevents its deletion until a reference to it is written.
select user_identity_id from user_identities where workspace_id = @workspace_id and user_identity_id = @user_identity_id for key share;

-- name: GetUserIdentityByKey :one
select * from user_identities where workspace_id = @workspace_id and user_identity_key = @user_identity_key::text;

-- name: IdentityOfSession :one
-- The identity of a session, if it has one.
select user_identity_id from client_sessions where client_session_id = @client_session_id;

-- name: EndSessionsOfIdentity :many
delete from client_sessions where workspace_id = @workspace_id and user_identity_id = @user_identity_id returning *;

-- name: LockUserIdentity :one
select * from user_identities where workspace_id = @workspace_id and user_identity_id = @user_identity_id for no key update;

-- name: FindUserIdentities :many
-- Planned for each call, because the conditions are optional.
select i.* from user_identities i
where i.workspace_id = @workspace_id and (i.created_at, i.user_identity_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('created_before')::timestamptz is null or i.created_at < sqlc.narg('created_before')::timestamptz)
  and (sqlc.narg('ids')::uuid[] is null or i.user_identity_id = any(sqlc.narg('ids')::uuid[]))
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
