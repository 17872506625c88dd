-- name: InsertAcsUser :one
insert into acs_users (acs_user_id, workspace_id, acs_system_id, user_identity_id, is_managed, full_name, email_address, phone_number, starts_at, ends_at,
  is_suspended, group_refs, entrance_refs, vendor_ref, applied)
values (@acs_user_id, @workspace_id, @acs_system_id, @user_identity_id, @is_managed, @full_name, @email_address, @phone_number, @starts_at, @ends_at,
  @is_suspended, @group_refs, @entrance_refs, @vendor_ref, @applied)
returning *;

-- name: GetAcsUser :one
select sqlc.embed(u), s.connected_account_id, i.full_name as identity_full_name, i.email_address as identity_email_address, i.phone_number as identity_phone_number
from acs_users u join acs_systems s using (acs_system_id) left join user_identities i using (user_identity_id)
where u.workspace_id = @workspace_id and u.acs_user_id = @acs_user_id and u.is_managed = @is_managed;

-- name: ListAcsUsersOfIdentity :many
select sqlc.embed(u), s.connected_account_id, i.full_name as identity_full_name, i.email_address as identity_email_address, i.phone_number as identity_phone_number
from acs_users u join acs_systems s using (acs_system_id) join user_identities i using (user_identity_id)
where u.workspace_id = @workspace_id and u.is_managed and u.user_identity_id = coalesce((select m.user_identity_id from merged_user_identities m
    where m.workspace_id = @workspace_id and m.merged_user_identity_id = @user_identity_id), @user_identity_id)
  and (sqlc.narg('acs_system_id')::uuid is null or u.acs_system_id = sqlc.narg('acs_system_id')::uuid)
order by u.deleting_at nulls first, u.created_at, u.acs_user_id;

-- name: FindAcsUsers :many
-- Planned for each call, because the conditions are optional.
select sqlc.embed(u), s.connected_account_id, i.full_name as identity_full_name, i.email_address as identity_email_address, i.phone_number as identity_phone_number
from acs_users u join acs_systems s using (acs_system_id) left join user_identities i using (user_identity_id)
where u.workspace_id = @workspace_id and u.is_managed = @is_managed and (u.created_at, u.acs_user_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('acs_system_id')::uuid is null or u.acs_system_id = sqlc.narg('acs_system_id')::uuid)
  and (sqlc.narg('user_identity_id')::uuid is null or u.user_identity_id = sqlc.narg('user_identity_id')::uuid
    or u.user_identity_id = (select m.user_identity_id from merged_user_identities m
      where m.workspace_id = @workspace_id and m.merged_user_identity_id = sqlc.narg('user_identity_id')::uuid))
  and (sqlc.narg('group_ref')::text is null or sqlc.narg('group_ref')::text = any(u.group_refs))
  and (sqlc.narg('scope')::uuid[] is null or s.connected_account_id = any(sqlc.narg('scope')::uuid[]))
  and (sqlc.narg('identity_email')::text is null or lower(i.email_address) = lower(sqlc.narg('identity_email')::text))
  and (sqlc.narg('identity_phone')::text is null or i.phone_number = sqlc.narg('identity_phone')::text)
  and (sqlc.narg('created_before')::timestamptz is null or u.created_at < sqlc.narg('created_before')::timestamptz)
  and (sqlc.narg('pattern')::text is null or concat_ws(chr(10), u.full_name, u.phone_number, u.email_address, u.acs_user_id::text,
    u.user_identity_id::text, i.full_name, i.phone_number) ~ sqlc.narg('pattern')::text)
order by u.created_at, u.acs_user_id
limit @max_rows::integer;

-- name: LockAcsUser :one
select * from acs_users where acs_user_id = @acs_user_id for no key update;

-- name: CountAcsUsersOfSystem :one
select count(*) from acs_users where acs_system_id = @acs_system_id;

-- name: LockAcsUsersOfSystem :many
select * from acs_users where acs_system_id = @acs_system_id order by created_at, acs_user_id for no key update;

-- name: ChangeAcsUser :exec
-- Changes the desired state, and clears the errors of the previous one.
update acs_users set full_name = @full_name, email_address = @email_address, phone_number = @phone_number, starts_at = @starts_at, ends_at = @ends_at,
  is_suspended = @is_suspended, group_refs = @group_refs, entrance_refs = @entrance_refs, deleting_at = @deleting_at,
  desired_gen = desired_gen + 1, changed_at = now(),
  attempts = 0, next_attempt_at = null, blocked_by = null, error_code = null, error_message = null, error_at = null
where acs_user_id = @acs_user_id;

-- name: LinkAcsUser :exec
-- Linking an unmanaged user to an identity adopts the user.
update acs_users set user_identity_id = sqlc.narg('user_identity_id'), is_managed = true,
  written_gen = case when is_managed then written_gen else desired_gen end where acs_user_id = @acs_user_id;

-- name: FindAcsUserToLink :one
-- The user of a person on a system, by email address or phone number. Managed users come first, then users who match
-- in both, then users who match by address. A user with another address is another person who shares the number.
select * from acs_users where acs_system_id = @acs_system_id and deleting_at is null and user_identity_id is null
  and (lower(email_address) = lower(sqlc.narg('email_address')::text) or phone_number = sqlc.narg('phone_number')::text)
  and (email_address is null or sqlc.narg('email_address')::text is null or lower(email_address) = lower(sqlc.narg('email_address')::text))
order by is_managed desc, coalesce(lower(email_address) = lower(sqlc.narg('email_address')::text), false) desc,
  coalesce(phone_number = sqlc.narg('phone_number')::text, false) desc, created_at, acs_user_id limit 1 for no key update;

-- name: AcsUserFound :exec
-- Records what the system shows of a user. A user that was deleted on the system and is back is managed again.
update acs_users set vendor_ref = @vendor_ref, applied = @applied, write_at = null,
  blocked_gen = case when error_code = 'deleted_externally' then 0 else blocked_gen end, written_gen = case when @as_desired::boolean then desired_gen else written_gen end,
  synced_at = case when @as_desired::boolean then now() else synced_at end,
  attempts = case when @as_desired::boolean then 0 else attempts end,
  next_attempt_at = case when @as_desired::boolean then null else next_attempt_at end,
  error_code = case when @as_desired::boolean or error_code = 'deleted_externally' then null else error_code end,
  error_message = case when @as_desired::boolean or error_code = 'deleted_externally' then null else error_message end,
  error_at = case when @as_desired::boolean or error_code = 'deleted_externally' then null else error_at end
where acs_user_id = @acs_user_id;

-- name: UnmanagedAcsUserFound :exec
update acs_users set full_name = @full_name, email_address = @email_address, phone_number = @phone_number, starts_at = @starts_at, ends_at = @ends_at,
  is_suspended = @is_suspended, group_refs = @group_refs, entrance_refs = @entrance_refs, applied = @applied, vendor_ref = @vendor_ref, synced_at = now()
where acs_user_id = @acs_user_id;

-- name: AcsUserMissing :exec
-- Records that the system does not show a user. A user that was deleted on the system stays deleted until it changes
-- here or is back.
update acs_users set applied = null,
  error_code = case when @deleted_there::boolean then 'deleted_externally' else error_code end,
  error_message = case when @deleted_there::boolean then @error_message::text else error_message end,
  error_at = case when @deleted_there::boolean then now() else error_at end,
  blocked_gen = case when @deleted_there::boolean then desired_gen else blocked_gen end,
  blocked_by = case when @deleted_there::boolean then null else blocked_by end
where acs_user_id = @acs_user_id;

-- name: AcsUserFailed :exec
-- Records a failed write. A refusal applies only to the generation that was written.
update acs_users set attempts = attempts + 1, next_attempt_at = @next_attempt_at,
  blocked_gen = case when @blocked::boolean then @gen::bigint else blocked_gen end,
  blocked_by = case when @blocked::boolean then sqlc.narg('blocked_by')::uuid else blocked_by end,
  error_code = @error_code, error_message = @error_message, error_at = case when error_code is not distinct from @error_code then error_at else now() end
where acs_user_id = @acs_user_id and desired_gen = @gen::bigint;

-- name: UnblockAcsUsers :exec
-- The users that the system confused these with are deleted.
update acs_users set blocked_gen = 0, blocked_by = null, next_attempt_at = null where acs_user_id = any(@acs_user_ids::uuid[]);

-- name: MarkAcsUsersUnreachable :exec
-- The system cannot be reached.
update acs_users set error_code = case when deleting_at is not null then 'failed_to_delete_on_acs_system'
    when applied is null then 'failed_to_create_on_acs_system' else 'failed_to_update_on_acs_system' end,
  error_message = @error_message, error_at = now()
where acs_system_id = @acs_system_id and is_managed and error_code is null and blocked_gen < desired_gen and (desired_gen > written_gen or deleting_at is not null);

-- name: DeleteAcsUser :exec
delete from acs_users where acs_user_id = @acs_user_id;

-- name: DeleteAcsUsers :exec
delete from acs_users where acs_user_id = any(@acs_user_ids::uuid[]);

-- name: AcsUserLosesAccess :one
-- Removes groups and entrances that the system has deleted. The desired state changes with them, so an earlier refusal does not
-- apply to it. A user that was deleted on the system stays deleted.
update acs_users set group_refs = @group_refs, entrance_refs = @entrance_refs, desired_gen = desired_gen + 1,
  written_gen = case when written_gen = desired_gen then desired_gen + 1 else written_gen end,
  blocked_gen = case when blocked_gen = desired_gen and error_code = 'deleted_externally' then desired_gen + 1 else blocked_gen end,
  attempts = 0, next_attempt_at = null,
  error_code = case when error_code = 'deleted_externally' then error_code end,
  error_message = case when error_code = 'deleted_externally' then error_message end,
  error_at = case when error_code = 'deleted_externally' then error_at end
where acs_user_id = @acs_user_id returning *;

-- name: AcsUserSent :exec
-- Records that a creation is about to be sent, or clears that once the outcome is known.
update acs_users set write_at = @write_at where acs_user_id = @acs_user_id;

-- name: RecordAcsUserDrift :exec
update acs_users set drift_count = @drift_count, drifted_at = @drifted_at, next_attempt_at = @next_attempt_at,
  error_code = coalesce(sqlc.narg('error_code'), error_code), error_message = coalesce(sqlc.narg('error_message'), error_message),
  error_at = case when sqlc.narg('error_code')::text is not null then @drifted_at else error_at end
where acs_user_id = @acs_user_id;

-- name: FindAcsUserByRef :one
select * from acs_users where acs_system_id = @acs_system_id and vendor_ref = @vendor_ref for no key update;

-- name: ForgetAcsUserRef :exec
update acs_users set vendor_ref = null where acs_user_id = @acs_user_id;

-- name: InsertAcsUserTombstone :exec
-- Adds the tombstone of a deleted user.
insert into acs_user_tombstones (acs_user_id, acs_system_id, deleted_at, vendor_ref, person_hash, ref_valid_until)
values (@acs_user_id, @acs_system_id, @deleted_at, @vendor_ref, @person_hash, @ref_valid_until);

-- name: DeleteOldAcsUserTombstones :exec
delete from acs_user_tombstones where acs_system_id = @acs_system_id and deleted_at < @before;

-- name: ListAcsUserTombstones :many
select acs_user_id, vendor_ref, person_hash from acs_user_tombstones where acs_system_id = @acs_system_id
  and (acs_user_id = any(@ids::uuid[]) or vendor_ref = any(@refs::text[]) and ref_valid_until > @moment::timestamptz)
order by deleted_at;
