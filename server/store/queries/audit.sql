-- name: PutAuditEntry :exec
insert into audit_log (audit_id, workspace_id, actor_kind, actor_id, actor_name, request_id, operation, subject_kinds, subject_ids, outcome)
values (@audit_id, sqlc.narg('workspace_id'), @actor_kind, sqlc.narg('actor_id'), @actor_name, sqlc.narg('request_id'), @operation, @subject_kinds, @subject_ids, @outcome);

-- name: AddToAuditEntry :exec
-- A request that continues after a first transaction, which may have been committed, extends its entry. This is
-- separate from PutAuditEntry because the conflict check costs time.
insert into audit_log (audit_id, workspace_id, actor_kind, actor_id, actor_name, request_id, operation, subject_kinds, subject_ids, outcome)
values (@audit_id, sqlc.narg('workspace_id'), @actor_kind, sqlc.narg('actor_id'), @actor_name, sqlc.narg('request_id'), @operation, @subject_kinds, @subject_ids, @outcome)
on conflict (audit_id) do update set subject_kinds = excluded.subject_kinds, subject_ids = excluded.subject_ids, outcome = excluded.outcome;

-- name: AuditBefore :many
-- Newest first.
select * from audit_log
where (occurred_at, audit_id) < (@before_at::timestamptz, @before_id::uuid) and occurred_at >= @since::timestamptz
  and (sqlc.narg('workspace_id')::uuid is null or workspace_id = sqlc.narg('workspace_id'))
  and (@actors::text[] is null or actor_kind = any(@actors) or actor_name = any(@actors) or actor_id::text = any(@actors))
  and starts_with(operation, @operation::text)
  and (sqlc.narg('request_id')::uuid is null or request_id = sqlc.narg('request_id'))
  and (sqlc.narg('subject_id')::uuid is null or subject_ids @> array[sqlc.narg('subject_id')::uuid])
order by occurred_at desc, audit_id desc limit @max_rows;

-- name: AuditAfter :many
-- Oldest first.
select * from audit_log
where (occurred_at, audit_id) > (@after_at::timestamptz, @after_id::uuid) and occurred_at < @until::timestamptz
  and (sqlc.narg('workspace_id')::uuid is null or workspace_id = sqlc.narg('workspace_id'))
  and (@actors::text[] is null or actor_kind = any(@actors) or actor_name = any(@actors) or actor_id::text = any(@actors))
  and starts_with(operation, @operation::text)
  and (sqlc.narg('request_id')::uuid is null or request_id = sqlc.narg('request_id'))
  and (sqlc.narg('subject_id')::uuid is null or subject_ids @> array[sqlc.narg('subject_id')::uuid])
order by occurred_at, audit_id limit @max_rows;

-- name: DropAuditEntries :execrows
-- Concurrent deletions skip each other's rows.
delete from audit_log where audit_id in (
  select a.audit_id from audit_log a where a.occurred_at < @before::timestamptz order by a.occurred_at, a.audit_id limit @max_rows for update skip locked);
