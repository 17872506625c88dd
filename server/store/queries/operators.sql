-- name: LockOperators :exec
-- Serializes changes after which an administrator must be left, and the creation of the first operator.
select pg_advisory_xact_lock(hashtextextended('operators', 0));

-- name: HasOperators :one
select exists (select from operators) as found;

-- name: InsertOperator :exec
insert into operators (operator_id, email, name, roles, password_hash, issuer, subject, mac)
values (@operator_id, @email, @name, @roles, sqlc.narg('password_hash'), sqlc.narg('issuer'), sqlc.narg('subject'), @mac);

-- name: UpdateOperator :exec
update operators set email = @email, name = @name, roles = @roles, password_hash = sqlc.narg('password_hash'), totp_sealed = sqlc.narg('totp_sealed'),
  issuer = sqlc.narg('issuer'), subject = sqlc.narg('subject'), disabled_at = sqlc.narg('disabled_at'), mac = @mac
where operator_id = @operator_id;

-- name: GetOperator :one
select sqlc.embed(o), (select count(*) from operator_passkeys p where p.operator_id = o.operator_id)::integer as passkeys
from operators o where o.operator_id = @operator_id;

-- name: LockOperator :one
select * from operators where operator_id = @operator_id for update;

-- name: GetOperatorByEmail :one
select sqlc.embed(o), (select count(*) from operator_passkeys p where p.operator_id = o.operator_id)::integer as passkeys
from operators o where lower(o.email) = lower(@email::text);

-- name: GetOperatorBySubject :one
select sqlc.embed(o), (select count(*) from operator_passkeys p where p.operator_id = o.operator_id)::integer as passkeys
from operators o where o.issuer = @issuer::text and o.subject = @subject::text;

-- name: ListOperators :many
select sqlc.embed(o), (select count(*) from operator_passkeys p where p.operator_id = o.operator_id)::integer as passkeys
from operators o order by o.created_at, o.operator_id;

-- name: ListOperatorsPage :many
-- A page of ListOperators.
select sqlc.embed(o), (select count(*) from operator_passkeys p where p.operator_id = o.operator_id)::integer as passkeys
from operators o where (o.created_at, o.operator_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('pattern')::text is null or concat_ws(chr(10), o.email, o.name) ~ sqlc.narg('pattern')::text)
order by o.created_at, o.operator_id limit @max_rows::integer;

-- name: DeleteOperator :execrows
delete from operators where operator_id = @operator_id;

-- name: RecordSignIn :exec
update operators set last_sign_in_at = @signed_in_at::timestamptz where operator_id = @operator_id;

-- name: AcceptTOTPStep :execrows
-- Accepts the code of a step, and of no earlier step afterwards.
update operators set totp_step = @step, totp_failures = 0 where operator_id = @operator_id and totp_step < @step;

-- name: CountTOTPAttempt :execrows
-- Counts an attempt from the start of a window, before its code is checked: so concurrent attempts cannot exceed the
-- limit. No row: there were too many. AcceptTOTPStep forgets the attempts.
update operators set totp_failures = case when totp_failed_at > @window_start::timestamptz then totp_failures + 1 else 1 end,
  totp_failed_at = case when totp_failed_at > @window_start::timestamptz then totp_failed_at else @failed_at::timestamptz end
where operator_id = @operator_id
  and (totp_failed_at is null or totp_failed_at <= @window_start::timestamptz or totp_failures < @max_failures::integer);

-- name: OperatorStanding :one
-- Whether an operator may act now, and its roles for a workspace.
select (o.disabled_at is null)::boolean as good, coalesce(o.roles ->> '*', '')::text as role_everywhere,
  coalesce(o.roles ->> (@workspace_id::uuid)::text, '')::text as role,
  coalesce((select w.is_suspended from workspaces w where w.workspace_id = @workspace_id), false)::boolean as is_suspended
from operators o where o.operator_id = @operator_id;

-- name: InsertOperatorSession :exec
insert into operator_sessions (operator_session_id, operator_id, token_hash, method, agent, address, created_at, seen_at, signed_in_at, expires_at, mac)
values (@operator_session_id, @operator_id, @token_hash, @method, @agent, @address, @created_at, @seen_at, @signed_in_at, @expires_at, @mac);

-- name: FindOperatorSession :one
select sqlc.embed(s), sqlc.embed(o), (select count(*) from operator_passkeys p where p.operator_id = o.operator_id)::integer as passkeys
from operator_sessions s join operators o using (operator_id) where s.token_hash = @token_hash;

-- name: ListOperatorSessions :many
select * from operator_sessions where operator_id = @operator_id order by created_at desc, operator_session_id desc;

-- name: GetOperatorSession :one
select * from operator_sessions where operator_id = @operator_id and operator_session_id = @operator_session_id for update;

-- name: UpdateOperatorSession :exec
update operator_sessions set seen_at = @seen_at, signed_in_at = @signed_in_at, mac = @mac where operator_session_id = @operator_session_id and token_hash = @token_hash;

-- name: DeleteOperatorSession :execrows
delete from operator_sessions where operator_id = @operator_id and operator_session_id = @operator_session_id;

-- name: DeleteSessionsOfOperator :exec
-- All but one, if that is given.
delete from operator_sessions where operator_id = @operator_id
  and operator_session_id is distinct from sqlc.narg('except_session')::uuid;

-- name: InsertOperatorPasskey :exec
insert into operator_passkeys (operator_passkey_id, operator_id, webauthn_id, name, credential, mac)
values (@operator_passkey_id, @operator_id, @webauthn_id, @name, @credential, @mac);

-- name: ListOperatorPasskeys :many
select * from operator_passkeys where operator_id = @operator_id order by created_at, operator_passkey_id;

-- name: UpdateOperatorPasskey :exec
update operator_passkeys set credential = @credential, mac = @mac, last_used_at = @last_used_at where operator_passkey_id = @operator_passkey_id;

-- name: DeleteOperatorPasskey :execrows
delete from operator_passkeys where operator_id = @operator_id and operator_passkey_id = @operator_passkey_id;

-- name: DeletePasskeysOfOperator :exec
delete from operator_passkeys where operator_id = @operator_id;

-- name: InsertOperatorLink :exec
insert into operator_links (operator_link_id, operator_id, purpose, token_hash, expires_at, mac)
values (@operator_link_id, sqlc.narg('operator_id'), @purpose, @token_hash, @expires_at, @mac);

-- name: GetOperatorLink :one
select * from operator_links where token_hash = @token_hash;

-- name: LockOperatorLink :one
select * from operator_links where token_hash = @token_hash for update;

-- name: DeleteOperatorLink :exec
delete from operator_links where operator_link_id = @operator_link_id;

-- name: DeleteLinksOfOperator :exec
delete from operator_links where operator_id = @operator_id;

-- name: DeleteSetupLinks :exec
delete from operator_links where purpose = 'setup';

-- name: UseOperatorChallenge :execrows
-- No row: it was used.
insert into operator_challenges (challenge_hash, expires_at) values (@challenge_hash, @expires_at) on conflict do nothing;

-- name: DropExpiredOperatorSessions :execrows
delete from operator_sessions where operator_session_id in (
  select s.operator_session_id from operator_sessions s where s.expires_at <= @now::timestamptz or s.seen_at <= @idle_since::timestamptz
  limit @max_rows::integer for update skip locked);

-- name: DropExpiredOperatorLinks :execrows
delete from operator_links where operator_link_id in (
  select l.operator_link_id from operator_links l where l.expires_at <= @now::timestamptz limit @max_rows::integer for update skip locked);

-- name: DropExpiredOperatorChallenges :execrows
delete from operator_challenges where challenge_hash in (
  select c.challenge_hash from operator_challenges c where c.expires_at <= @now::timestamptz limit @max_rows::integer for update skip locked);

-- name: LockOperatorPasskey :one
select * from operator_passkeys where webauthn_id = @webauthn_id for update;
