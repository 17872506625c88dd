-- name: ClaimIdempotencyKey :one
-- A concurrent transaction with the same key is waited for as long as patience allows. Returns no row if another
-- request has the key.
with waits as materialized (
  select current_setting('lock_timeout') as before, set_config('lock_timeout', @wait_timeout::text, true) as now
)
insert into idempotency_keys as k (idempotency_key_id, workspace_id, credential_id, operation, key_mac, request_mac, is_public)
select @idempotency_key_id::uuid, @workspace_id::uuid, @credential_id::uuid, @operation::text, @key_mac::bytea, @request_mac::bytea, @is_public::boolean from waits
on conflict (workspace_id, credential_id, operation, key_mac) do update
set idempotency_key_id = excluded.idempotency_key_id, request_mac = excluded.request_mac, answer_sealed = null, action_attempt_id = null,
  held_until = null, created_at = excluded.created_at, is_public = excluded.is_public
where k.created_at < clock_timestamp() - @retention::interval
  or (k.answer_sealed is null and k.action_attempt_id is null and k.held_until < clock_timestamp())
returning (select set_config('lock_timeout', w.before, true) from waits w)::text as restored;

-- name: GetIdempotencyKey :one
select * from idempotency_keys
where workspace_id = @workspace_id and credential_id = @credential_id and operation = @operation and key_mac = @key_mac;

-- name: HoldIdempotencyKey :exec
-- From here on the request has effects that a rollback does not undo.
update idempotency_keys set action_attempt_id = @action_attempt_id, held_until = clock_timestamp() + @hold::interval
where workspace_id = @workspace_id and idempotency_key_id = @idempotency_key_id;

-- name: AnswerIdempotencyKey :one
-- Stores and returns the first answer. Returns no row if another request has taken the key. The row may be missing,
-- since a reset of the workspace deletes it.
insert into idempotency_keys as k (idempotency_key_id, workspace_id, credential_id, operation, key_mac, request_mac, answer_sealed, is_public)
values (@idempotency_key_id, @workspace_id, @credential_id, @operation, @key_mac, @request_mac, @answer_sealed, @is_public)
on conflict (workspace_id, credential_id, operation, key_mac) do update set answer_sealed = coalesce(k.answer_sealed, excluded.answer_sealed)
where k.idempotency_key_id = excluded.idempotency_key_id
returning answer_sealed;

-- name: DropIdempotencyKey :exec
delete from idempotency_keys where workspace_id = @workspace_id and idempotency_key_id = @idempotency_key_id;

-- name: CountPublicIdempotencyKeys :one
-- Those of publishable keys and of sessions that reach nothing, up to a maximum.
select count(*)::integer from (
  select 1 from idempotency_keys where workspace_id = @workspace_id and is_public limit @max_rows::integer
) k;

-- name: DropOldestPublicIdempotencyKeys :execrows
delete from idempotency_keys where idempotency_key_id in (
  select k.idempotency_key_id from idempotency_keys k
  where k.workspace_id = @workspace_id and k.is_public and k.answer_sealed is not null
  order by k.created_at limit @max_rows::integer for update skip locked
);

-- name: DropOldIdempotencyKeys :execrows
-- Keys outside of any workspace are deleted with those of any workspace.
delete from idempotency_keys where idempotency_key_id in (
  select k.idempotency_key_id from idempotency_keys k
  where k.workspace_id in (@workspace_id, '00000000-0000-0000-0000-000000000000') and k.created_at < @before::timestamptz
  limit @max_rows::integer for update skip locked
);
