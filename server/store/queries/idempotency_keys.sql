-- name: ClaimIdempotencyKey :one
-- Nobody gets a row whose key another has: who is about to commit it is waited for as long as patience says.
with waits as materialized (
  select current_setting('lock_timeout') as before, set_config('lock_timeout', @patience::text, true) as now
)
insert into idempotency_keys as k (idempotency_key_id, workspace_id, credential_id, operation, key_mac, request_mac)
select @idempotency_key_id::uuid, @workspace_id::uuid, @credential_id::uuid, @operation::text, @key_mac::bytea, @request_mac::bytea from waits
on conflict (workspace_id, credential_id, operation, key_mac) do update
set idempotency_key_id = excluded.idempotency_key_id, request_mac = excluded.request_mac, answer_sealed = null, action_attempt_id = null,
  held_until = null, created_at = excluded.created_at
where k.created_at < clock_timestamp() - @retention::interval
  or (k.answer_sealed is null and k.action_attempt_id is null and k.held_until < clock_timestamp())
returning (select set_config('lock_timeout', w.before, true) from waits w)::text as restored;

-- name: GetIdempotencyKey :one
select * from idempotency_keys
where workspace_id = @workspace_id and credential_id = @credential_id and operation = @operation and key_mac = @key_mac;

-- name: HoldIdempotencyKey :exec
-- What is done from here on is not undone with the row.
update idempotency_keys set action_attempt_id = @action_attempt_id, held_until = clock_timestamp() + @hold::interval
where workspace_id = @workspace_id and idempotency_key_id = @idempotency_key_id;

-- name: AnswerIdempotencyKey :one
-- The first answer stays, and is what is returned. The row may be gone: a workspace that is reset keeps none but the one that this was
-- asked with; or be another request's by now, and then there is none.
insert into idempotency_keys as k (idempotency_key_id, workspace_id, credential_id, operation, key_mac, request_mac, answer_sealed)
values (@idempotency_key_id, @workspace_id, @credential_id, @operation, @key_mac, @request_mac, @answer_sealed)
on conflict (workspace_id, credential_id, operation, key_mac) do update set answer_sealed = coalesce(k.answer_sealed, excluded.answer_sealed)
where k.idempotency_key_id = excluded.idempotency_key_id
returning answer_sealed;

-- name: DropIdempotencyKey :exec
delete from idempotency_keys where workspace_id = @workspace_id and idempotency_key_id = @idempotency_key_id;

-- name: DropOldIdempotencyKeys :execrows
-- Those of no workspace go with those of any.
delete from idempotency_keys where idempotency_key_id in (
  select k.idempotency_key_id from idempotency_keys k
  where k.workspace_id in (@workspace_id, '00000000-0000-0000-0000-000000000000') and k.created_at < clock_timestamp() - @retention::interval
  limit @max_rows::integer for update skip locked
);
