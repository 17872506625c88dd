-- name: DueRetentions :many
select workspace_id from workspaces w where retention_due_at <= now()
and not exists (select 1 from leases l where l.key = 'retention:' || w.workspace_id::text and l.held_until > now())
order by retention_due_at limit @max_rows::integer;

-- name: RetentionDue :one
select (retention_due_at <= now())::boolean as due from workspaces where workspace_id = @workspace_id;

-- name: ScheduleRetention :exec
update workspaces set retention_due_at = least(now() + @pause::interval, (select min(old_secret_until) from webhooks w where w.workspace_id = @workspace_id),
  (select min(deadline_at) from action_attempts a where a.workspace_id = @workspace_id and a.device_id is null and a.status = 'pending'))
where workspace_id = @workspace_id;

-- name: HastenRetention :exec
update workspaces set retention_due_at = least(retention_due_at, @at::timestamptz) where workspace_id = @workspace_id;

-- name: OldEvents :many
-- What webhooks have not been given yet stays.
select event_id, created_at from events
where workspace_id = @workspace_id and created_at < now() - @retention::interval and fanned_out_at is not null
  and (created_at, event_id) > (@after_at::timestamptz, @after_id::uuid)
order by created_at, event_id limit @max_rows::integer;

-- name: DropDeliveries :execrows
-- What is pending stays, and what has come to rest only lately, such as after a replay. What somebody else is about is
-- left for the next time: two who lock several wait for each other.
delete from deliveries where (webhook_id, event_id) in (
  select d.webhook_id, d.event_id from deliveries d
  where d.event_id = any(@event_ids::uuid[]) and d.state <> 'pending' and d.finished_at < now() - @retention::interval
  limit @max_rows::integer for update skip locked
);

-- name: DropClientSessions :execrows
-- Those that ended long enough ago, by themselves or because somebody has ended them.
delete from client_sessions where client_session_id in (
  select s.client_session_id from client_sessions s
  where s.workspace_id = @workspace_id and least(s.expires_at, s.revoked_at) < now() - @retention::interval
  limit @max_rows::integer for update skip locked
);

-- name: DropEvents :execrows
delete from events e where e.event_id = any(@event_ids::uuid[])
and not exists (select 1 from deliveries d where d.event_id = e.event_id);
