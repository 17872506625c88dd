-- name: DueRetentions :many
select workspace_id from workspaces w where retention_due_at <= now()
and not exists (select 1 from leases l where l.key = 'retention:' || w.workspace_id::text and l.held_until > now())
order by retention_due_at limit @max_rows::integer;

-- name: RetentionDue :one
select (retention_due_at <= now())::boolean as due from workspaces where workspace_id = @workspace_id;

-- name: ScheduleRetention :exec
update workspaces set retention_due_at = greatest(now() + @earliest::interval, least(now() + @pause::interval,
  (select min(old_secret_until) from webhooks w where w.workspace_id = @workspace_id),
  (select min(deadline_at) from action_attempts a where a.workspace_id = @workspace_id and a.device_id is null and a.status = 'pending')))
where workspace_id = @workspace_id;

-- name: AdvanceRetention :exec
update workspaces set retention_due_at = least(retention_due_at, @at::timestamptz) where workspace_id = @workspace_id;

-- name: OldEvents :many
-- Expired events that are not dropped with their partition. Events without deliveries stay.
select o.event_id, o.created_at from (
  (select e.event_id, e.created_at from events e
    where e.workspace_id = @workspace_id and e.event_id < @before::uuid and e.created_at < @ended_before::timestamptz and e.fanned_out_at is not null
      and (e.created_at, e.event_id) > (@after_at::timestamptz, @after_id::uuid)
    order by e.created_at, e.event_id limit @max_rows::integer)
  union all
  (select r.event_id, r.created_at from events_rest r
    where r.workspace_id = @workspace_id and r.event_id >= @before::uuid and r.created_at < @ended_before::timestamptz and r.fanned_out_at is not null
      and (r.created_at, r.event_id) > (@after_at::timestamptz, @after_id::uuid)
    order by r.created_at, r.event_id limit @max_rows::integer)
) o order by o.created_at, o.event_id limit @max_rows::integer;

-- name: DropDeliveries :one
-- Pending deliveries stay, unless the workspace is suspended, and so do deliveries that finished recently, for
-- example after a replay. Locked rows are skipped to avoid deadlocks.
with old as (
  select d.webhook_id, d.event_id from deliveries d
  where d.event_id = any(@event_ids::uuid[]) and case when d.state <> 'pending' then d.finished_at < @ended_before::timestamptz
    else (select s.is_suspended from workspaces s where s.workspace_id = (select w.workspace_id from webhooks w where w.webhook_id = d.webhook_id)) end
  limit @max_rows::integer for update skip locked
), log as (
  delete from delivery_attempts a using old where a.webhook_id = old.webhook_id and a.event_id = old.event_id and a.event_id = any(@event_ids::uuid[])
), gone as (
  delete from deliveries d using old where d.webhook_id = old.webhook_id and d.event_id = old.event_id and d.event_id = any(@event_ids::uuid[]) returning 1
)
select count(*)::bigint from gone;

-- name: DropClientSessions :execrows
-- Sessions that expired or were revoked long enough ago.
delete from client_sessions where client_session_id in (
  select s.client_session_id from client_sessions s
  where s.workspace_id = @workspace_id and least(s.expires_at, s.revoked_at) < @ended_before::timestamptz
  limit @max_rows::integer for update skip locked
);

-- name: DropEvents :execrows
delete from events e where e.event_id = any(@event_ids::uuid[])
and not exists (select 1 from deliveries d where d.event_id = e.event_id and d.event_id = any(@event_ids::uuid[]));

-- name: AwaitPartitions :exec
-- Prevents dropping partitions until the transaction ends.
select pg_advisory_xact_lock_shared(hashtextextended('partitions', 0));

-- name: ReadRetentionClock :one
select at as stored, clock_timestamp()::timestamptz as database from retention_clock where is_only;

-- name: StartRetentionClock :exec
-- Starts at the newest entry of the audit log, because the clock may be wrong right now.
insert into retention_clock (at) select least(clock_timestamp(), coalesce(max(a.occurred_at), clock_timestamp())) from audit_log a
on conflict do nothing;

-- name: StoreRetentionClock :exec
-- Unless another server has stored it.
update retention_clock set at = @at where is_only and at = @known;
