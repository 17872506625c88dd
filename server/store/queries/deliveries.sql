-- name: LockWebhooksOfWorkspace :many
-- One order for all who lock several.
select webhook_id from webhooks where workspace_id = @workspace_id order by webhook_id for no key update;

-- name: FanOut :many
-- One delivery for each event and each webhook that asks for its type and was there before it. The webhooks are locked.
with taken as (
  select e.event_id, e.event_type, e.created_at from events e
  where e.workspace_id = @workspace_id and e.fanned_out_at is null
  order by e.created_at limit @max_rows::integer for update skip locked
), marked as (
  update events e set fanned_out_at = now() from taken t where e.event_id = t.event_id
), made as (
  insert into deliveries (webhook_id, event_id, state, next_attempt_at)
  select w.webhook_id, t.event_id, case when w.disabled_at is null then 'pending' else 'held' end, case when w.disabled_at is null then now() end
  from taken t join webhooks w on w.workspace_id = @workspace_id and w.event_types && array['*', t.event_type] and w.created_at <= t.created_at
  on conflict do nothing
  returning webhook_id, state
)
select distinct m.webhook_id from made m where m.state = 'pending' order by m.webhook_id;

-- name: WakeWebhooks :many
-- Those that are paused wait for the end of it.
update webhooks set due_at = least(due_at, greatest(now(), paused_until))
where webhook_id = any(@webhook_ids::uuid[]) and disabled_at is null
returning webhook_id, (due_at <= now())::boolean as due;

-- name: OutboxDue :one
select exists (select 1 from events where workspace_id = @workspace_id and fanned_out_at is null) as due;

-- name: DueOutboxes :many
select workspace_id from workspaces w
where exists (select 1 from events e where e.workspace_id = w.workspace_id and e.fanned_out_at is null)
and not exists (select 1 from leases l where l.key = 'outbox:' || w.workspace_id::text and l.held_until > now())
limit @max_rows::integer;

-- name: GetEndpoint :one
select sqlc.embed(webhooks), coalesce(paused_until > now(), false)::boolean as paused,
  coalesce(extract(epoch from now() - failing_since), 0)::double precision as failing_seconds
from webhooks where webhook_id = @webhook_id;

-- name: DueDeliveries :many
select sqlc.embed(e), d.step from deliveries d join events e on e.event_id = d.event_id
where d.webhook_id = @webhook_id and d.state = 'pending' and d.next_attempt_at <= now() and d.event_id <> all(@busy::uuid[])
order by d.next_attempt_at limit @max_rows::integer;

-- name: LockWebhook :one
select * from webhooks where webhook_id = @webhook_id for no key update;

-- name: RecordAttempts :exec
-- What has been deleted meanwhile has no log.
with o as (
  select unnest(@event_ids::uuid[]) as event_id, unnest(@states::text[]) as state, unnest(@pauses_us::bigint[]) as pause_us,
    unnest(@latencies_us::bigint[]) as latency_us, unnest(@statuses::integer[]) as status, unnest(@errors::text[]) as error,
    unnest(@excerpts::bytea[]) as excerpt
), recorded as (
  update deliveries d set state = o.state, attempts = d.attempts + 1, step = d.step + 1,
    next_attempt_at = case when o.state = 'pending' then now() + o.pause_us * interval '1 microsecond' end,
    finished_at = case when o.state <> 'pending' then now() end
  from o where d.webhook_id = @webhook_id and d.event_id = o.event_id
  returning d.event_id, d.attempts
)
insert into delivery_attempts (webhook_id, event_id, attempt, attempted_at, latency_us, status, error, excerpt_sealed)
select @webhook_id, r.event_id, r.attempts, now() - o.latency_us * interval '1 microsecond', o.latency_us,
  nullif(o.status, 0), nullif(o.error, ''), nullif(o.excerpt, '')
from recorded r join o on o.event_id = r.event_id;

-- name: SetEndpointHealth :exec
update webhooks set consecutive_failures = @failures::integer,
  failing_since = case when @failures::integer = 0 then null when @recovered::boolean then now() else coalesce(failing_since, now()) end,
  paused_until = now() + nullif(@pause::interval, interval '0')
where webhook_id = @webhook_id;

-- name: DisableWebhook :exec
update webhooks set disabled_at = now(), disabled_reason = @reason, due_at = null, paused_until = null where webhook_id = @webhook_id;

-- name: EnableWebhook :exec
update webhooks set disabled_at = null, disabled_reason = null, paused_until = null, failing_since = null, consecutive_failures = 0
where webhook_id = @webhook_id;

-- name: HoldDeliveries :exec
update deliveries set state = 'held', next_attempt_at = null where webhook_id = @webhook_id and state = 'pending';

-- name: ReplayDeliveries :execrows
update deliveries set state = 'pending', step = 0, next_attempt_at = now(), finished_at = null
where webhook_id = @webhook_id and state = any(@states::text[])
  and (sqlc.narg('event_id')::uuid is null or event_id = sqlc.narg('event_id')::uuid)
  and created_at >= @since::timestamptz and created_at < @until::timestamptz;

-- name: ScheduleWebhook :one
-- The webhook is locked, so that no delivery is made meanwhile.
update webhooks w set due_at = (select greatest(w.paused_until, d.next_attempt_at) from deliveries d
  where d.webhook_id = @webhook_id and d.state = 'pending' order by d.next_attempt_at limit 1)
where w.webhook_id = @webhook_id
returning due_at;

-- name: WebhookDue :one
select coalesce(due_at <= now(), false)::boolean as due from webhooks where webhook_id = @webhook_id;

-- name: DueWebhooks :many
select webhook_id from webhooks w where due_at <= now()
and not exists (select 1 from leases l where l.key = 'endpoint:' || w.webhook_id::text and l.held_until > now())
order by due_at limit @max_rows::integer;

-- name: ListDeliveries :many
-- Identifiers of events grow with time.
select d.* from deliveries d join webhooks w on w.webhook_id = d.webhook_id
where w.workspace_id = @workspace_id and d.webhook_id = @webhook_id
order by d.event_id desc limit @max_rows::integer;

-- name: ListDeliveryAttempts :many
select a.* from delivery_attempts a join webhooks w on w.webhook_id = a.webhook_id
where w.workspace_id = @workspace_id and a.webhook_id = @webhook_id and a.event_id = @event_id order by a.attempt;
