-- name: InsertUserIdentity :one
insert into user_identities (user_identity_id, workspace_id, user_identity_key, email_address, phone_number, full_name)
values (@user_identity_id, @workspace_id, @user_identity_key, @email_address, @phone_number, @full_name)
returning *;

-- name: GetUserIdentity :one
select * from user_identities where workspace_id = @workspace_id and user_identity_id = @user_identity_id;

-- name: GetUserIdentityByKey :one
select * from user_identities where workspace_id = @workspace_id and user_identity_key = @user_identity_key::text;

-- name: LockUserIdentity :one
select * from user_identities where workspace_id = @workspace_id and user_identity_id = @user_identity_id for no key update;

-- name: FindUserIdentities :many
-- To be planned anew, for its conditions.
select * from user_identities
where workspace_id = @workspace_id and (created_at, user_identity_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('created_before')::timestamptz is null or created_at < sqlc.narg('created_before')::timestamptz)
  and (sqlc.narg('ids')::uuid[] is null or user_identity_id = any(sqlc.narg('ids')::uuid[]))
  and (sqlc.narg('search')::text is null
    or strpos(lower(concat_ws(chr(10), full_name, phone_number, email_address, user_identity_id::text)), lower(sqlc.narg('search')::text)) > 0)
order by created_at, user_identity_id
limit @max_rows::integer;

-- name: UpdateUserIdentity :exec
update user_identities set user_identity_key = @user_identity_key, email_address = @email_address, phone_number = @phone_number, full_name = @full_name
where user_identity_id = @user_identity_id;

-- name: DeleteUserIdentity :execrows
delete from user_identities where workspace_id = @workspace_id and user_identity_id = @user_identity_id;

-- name: ListUsersOfIdentities :many
-- The managed users of people, for what the people's own records tell of them.
select * from acs_users where workspace_id = @workspace_id and user_identity_id = any(@ids::uuid[]) and is_managed
order by created_at, acs_user_id;
