-- name: TakeEvents :many
-- Takes events without deliveries, oldest first within each account, in round-robin order of the accounts, so that an
-- account with many events does not delay the others. Events without an account count as one more account. The round
-- starts after the account that had the last turn, and last returns the new one. Taking stops when the deliveries
-- reach the maximum. The identifiers are an array, and null is coalesced: otherwise the planner scans a whole index.
-- No event is taken twice.
with recursive outbox as not materialized (
  select e.event_id, e.event_type, e.created_at, coalesce(e.connected_account_id, '00000000-0000-0000-0000-000000000000') as account
  from events e where e.workspace_id = @workspace_id and e.fanned_out_at is null
), around as (
  select @after::uuid as account, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid as until, 0 as turn
  union all
  select n.account, n.until, a.turn + 1 from around a cross join lateral (
    (select o.account, a.until, 1 as lap from outbox o where o.account > a.account and o.account <= a.until order by o.account limit 1)
    union all
    (select o.account, @after::uuid as until, 2 as lap from outbox o where o.account <= @after and a.until > @after order by o.account limit 1)
    order by lap limit 1
  ) n
), turns as (
  select a.account, a.turn from around a offset 1 limit least(@max_rows::integer, 100)
), oldest as (
  select x.event_id, x.event_type, x.nth, t.turn, t.account from turns t cross join lateral (
    select o.event_id, o.event_type, row_number() over (order by o.created_at) as nth from outbox o where o.account = t.account
    order by o.created_at limit sqlc.arg('max_rows')::integer / (select count(*) from turns)
  ) x
), asked as materialized (
  select o.event_type, (select count(*) from webhooks w where w.workspace_id = @workspace_id and w.event_types && array['*', o.event_type]) as webhooks
  from (select distinct event_type from oldest) o
), taken as (
  select d.event_id, d.account, d.nth, d.turn from (
    select o.event_id, o.account, o.nth, o.turn, coalesce(sum(a.webhooks) over (order by o.nth, o.turn rows between unbounded preceding and 1 preceding), 0) as before
    from oldest o join asked a on a.event_type = o.event_type
  ) d where d.before < @max_deliveries::integer
)
update events e set fanned_out_at = now() where e.event_id = any(array(select event_id from taken)) and coalesce(e.fanned_out_at, 'infinity') = 'infinity'
returning e.event_id, e.event_type, (select t.account from taken t order by t.nth desc, t.turn desc limit 1)::uuid as last;

-- name: LockWebhooksFor :many
-- The webhooks that subscribe to one of the types, locked in the order of their identifiers.
select webhook_id from webhooks where workspace_id = @workspace_id and event_types && (array['*'] || @event_types::text[])
order by webhook_id for no key update;

-- name: LockWebhooksOfWorkspace :many
-- Locks in the order of LockWebhooksFor.
select webhook_id from webhooks where workspace_id = @workspace_id order by webhook_id for no key update;

-- name: FanOut :many
-- One delivery for each event and each of the locked webhooks that subscribes to its type and existed before it. A
-- webhook with a future creation time existed as well: the clock was set back. Each event is looked up once, in the
-- partitions of the identifiers.
with told as materialized (
  select e.event_id, e.event_type, e.created_at, case when e.event_type = 'webhook.disabled' then (e.payload->>'webhook_id')::uuid end as disabled
  from events e where e.event_id = any(@event_ids::uuid[])
), made as (
  insert into deliveries (webhook_id, event_id, state, next_attempt_at, finished_at)
  select w.webhook_id, t.event_id, case when w.disabled_at is null then 'pending' else 'held' end,
    case when w.disabled_at is null then now() end, case when w.disabled_at is not null then now() end
  from told t join webhooks w on w.webhook_id = any(@webhook_ids::uuid[]) and w.event_types && array['*', t.event_type]
    and (w.created_at <= t.created_at or w.created_at > statement_timestamp())
    and t.disabled is distinct from w.webhook_id
  returning webhook_id, state
)
select distinct m.webhook_id from made m where m.state = 'pending' order by m.webhook_id;

-- name: WakeWebhooks :many
-- Paused webhooks wait for the end of the pause, and webhooks of a suspended workspace for the end of the suspension.
-- The webhooks are locked. Rows that are due already are not written. The subselects hide the number of webhooks, so
-- that PostgreSQL reuses the plan.
with workspace as materialized (
  select s.is_suspended from workspaces s where s.workspace_id = @workspace_id
), woken as (
  update webhooks set due_at = greatest(now(), paused_until)
  where webhook_id = any((select @webhook_ids::uuid[])::uuid[]) and disabled_at is null and (due_at is null or due_at > greatest(now(), paused_until))
    and not (select is_suspended from workspace)
  returning webhook_id, due_at
)
select webhook_id from woken where due_at <= now()
union all
select w.webhook_id from webhooks w where w.webhook_id = any((select @webhook_ids::uuid[])::uuid[]) and w.disabled_at is null and w.due_at <= now()
  and not (select is_suspended from workspace);

-- name: RestWebhooks :exec
-- For a workspace that becomes suspended. The webhooks are locked. Disabled webhooks stay due until their deliveries
-- are held.
update webhooks set due_at = null where workspace_id = @workspace_id and disabled_at is null and due_at is not null;

-- name: OutboxDue :one
select exists (select 1 from events where workspace_id = @workspace_id and fanned_out_at is null) as due;

-- name: DueOutboxes :many
-- A loose index scan over workspaces: only workspaces with events cost time, and the number of their events does not
-- matter.
with recursive waiting as (
  (select e.workspace_id from events e where e.fanned_out_at is null order by e.workspace_id limit 1)
  union all
  select (select e.workspace_id from events e where e.fanned_out_at is null and e.workspace_id > w.workspace_id order by e.workspace_id limit 1)
  from waiting w where w.workspace_id is not null
)
select w.workspace_id::uuid as workspace_id from waiting w
where w.workspace_id is not null and w.workspace_id not in (select s.workspace_id from workspaces s where s.created_by = any(@exclude_creators::uuid[]))
and not exists (select 1 from leases l where l.key = 'outbox:' || w.workspace_id::text and l.held_until > now())
limit @max_rows::integer;

-- name: ListWorkspaceCreators :many
select workspace_id, created_by::uuid as created_by from workspaces where workspace_id = any(@workspace_ids::uuid[]) and created_by is not null;

-- name: GetEndpoint :one
select sqlc.embed(webhooks), is_suspended as suspended, coalesce(paused_until > now(), false)::boolean as paused,
  coalesce(old_secret_until > now(), false)::boolean as old_secret_signs,
  (case when failed_at >= now() - @silence::interval then coalesce(extract(epoch from now() - failing_since), 0) else 0 end)::double precision as failing_seconds
from webhooks join workspaces using (workspace_id) where webhook_id = @webhook_id;

-- name: DueDeliveries :many
-- Payloads beyond the byte limit are omitted. size is the size of each payload.
with due as materialized (
  select d.event_id, d.retry_step, d.next_attempt_at from deliveries d
  where d.webhook_id = @webhook_id and d.state = 'pending' and d.next_attempt_at <= now() and d.event_id <> all(@busy::uuid[])
  order by d.next_attempt_at limit @max_rows::integer
), sized as (
  select due.retry_step, due.next_attempt_at, e.*, octet_length(e.payload::text) as size from due join events e on e.event_id = due.event_id
), summed as (
  select s.*, sum(s.size) over (order by s.next_attempt_at, s.event_id rows unbounded preceding) as total from sized s
)
select event_id, event_type, workspace_id, occurred_at, created_at, retry_step, next_attempt_at::timestamptz as due_at, size::integer as size, (total > @max_bytes::integer)::boolean as unread,
  (case when total <= @max_bytes::integer then payload end)::jsonb as payload, (case when total <= @max_bytes::integer then pin_sealed end)::bytea as pin_sealed
from summed order by next_attempt_at, event_id;

-- name: DueEvent :one
select * from events where event_id = @event_id;

-- name: LockWebhook :one
select * from webhooks where webhook_id = @webhook_id for no key update;

-- name: ShareWebhook :one
-- Prevents its deletion until the transaction ends. Other transactions can still update it.
select sqlc.embed(webhooks), coalesce(last_success_at > now() - @accuracy::interval, false)::boolean as success_is_recent
from webhooks where webhook_id = @webhook_id for key share;

-- name: RecordAttempts :exec
-- Deliveries that were deleted meanwhile get no log. A delivery whose due time has changed was held or replayed
-- meanwhile: a failure is only logged, and a success still completes it, because the endpoint has the event.
with o as (
  select unnest(@event_ids::uuid[]) as event_id, unnest(@dues::timestamptz[]) as due_at, unnest(@states::text[]) as state, unnest(@pauses_us::bigint[]) as pause_us,
    unnest(@latencies_us::bigint[]) as latency_us, unnest(@statuses::integer[]) as status, unnest(@errors::text[]) as error,
    unnest(@excerpts::bytea[]) as excerpt
), recorded as (
  update deliveries d set attempts = d.attempts + 1,
    state = case when o.state = 'delivered' or d.next_attempt_at = o.due_at then o.state else d.state end,
    retry_step = case when o.state = 'delivered' or d.next_attempt_at = o.due_at then d.retry_step + 1 else d.retry_step end,
    next_attempt_at = case when o.state = 'delivered' then null when d.next_attempt_at = o.due_at
      then case when o.state = 'pending' then now() + o.pause_us * interval '1 microsecond' end else d.next_attempt_at end,
    finished_at = case when o.state = 'delivered' then now() when d.next_attempt_at = o.due_at
      then case when o.state <> 'pending' then now() end else d.finished_at end
  from o where d.webhook_id = @webhook_id and d.event_id = any(@event_ids::uuid[]) and d.event_id = o.event_id
  returning d.event_id, d.attempts
)
insert into delivery_attempts (webhook_id, event_id, attempt, attempted_at, latency_us, status, error, excerpt_sealed)
select @webhook_id, r.event_id, r.attempts, now() - o.latency_us * interval '1 microsecond', o.latency_us,
  nullif(o.status, 0), nullif(o.error, ''), nullif(o.excerpt, '')
from recorded r join o on o.event_id = r.event_id;

-- name: SetEndpointHealth :exec
update webhooks set consecutive_failures = @failures::integer, is_healthy = @is_healthy::boolean,
  last_success_at = case when @succeeded::boolean then now() else last_success_at end,
  failing_since = case when @failures::integer = 0 then null when not @recovered::boolean and failed_at >= now() - @silence::interval
    then coalesce(failing_since, now()) else now() end,
  failed_at = case when @failures::integer > 0 then now() end,
  paused_until = case when @failures::integer > 0 then greatest(paused_until, now() + nullif(@pause::interval, interval '0')) end
where webhook_id = @webhook_id;

-- name: DisableWebhook :exec
-- Due until its pending deliveries are held.
update webhooks set disabled_at = now(), disabled_reason = @reason, due_at = now(), paused_until = null where webhook_id = @webhook_id;

-- name: EnableWebhook :exec
update webhooks set disabled_at = null, disabled_reason = null, paused_until = null, failing_since = null, failed_at = null, consecutive_failures = 0
where webhook_id = @webhook_id;

-- name: HoldDeliveries :execrows
-- concat prevents a second search of the pending index for each row.
update deliveries h set state = 'held', next_attempt_at = null, finished_at = now()
where h.webhook_id = @webhook_id and concat(h.state) = 'pending' and h.event_id = any(array(
  select d.event_id from deliveries d where d.webhook_id = @webhook_id and d.state = 'pending' order by d.next_attempt_at limit @max_rows::integer));

-- name: ReplayDeliveries :execrows
-- The webhook is locked.
update deliveries set state = 'pending', retry_step = 0, next_attempt_at = now(), finished_at = null
where webhook_id = @webhook_id and event_id = any(@event_ids::uuid[]) and state = any(@states::text[]);

-- name: ScheduleWebhook :one
-- The webhook is locked, so no delivery is created meanwhile. seconds is the time until it is due by the clock of the
-- database; 0: not before something happens, such as the end of a suspension.
update webhooks w set due_at = (select greatest(w.paused_until, d.next_attempt_at) from deliveries d join workspaces s on s.workspace_id = w.workspace_id
  where d.webhook_id = @webhook_id and d.state = 'pending' and not s.is_suspended order by d.next_attempt_at limit 1)
where w.webhook_id = @webhook_id
returning (case when due_at is null then 0 else greatest(extract(epoch from due_at - clock_timestamp()), 0.001) end)::double precision as seconds;

-- name: WebhookDue :one
select coalesce(due_at <= now(), false)::boolean as due from webhooks where webhook_id = @webhook_id;

-- name: WebhookOwners :many
select h.webhook_id, h.workspace_id, coalesce(w.created_by, '00000000-0000-0000-0000-000000000000')::uuid as created_by, h.is_healthy
from webhooks h join workspaces w using (workspace_id) where h.webhook_id = any(@webhook_ids::uuid[]);

-- name: DueWebhooks :many
select webhook_id, is_healthy from webhooks h where due_at <= now() and workspace_id <> all(@exclude_workspaces::uuid[])
and workspace_id not in (select w.workspace_id from workspaces w where w.created_by = any(@exclude_creators::uuid[]))
and (is_healthy or not @exclude_suspect::boolean and workspace_id <> all(@exclude_suspect_workspaces::uuid[])
  and workspace_id not in (select w.workspace_id from workspaces w where w.created_by = any(@exclude_suspect_creators::uuid[])))
and not exists (select 1 from leases l where l.key = 'endpoint:' || h.webhook_id::text and l.held_until > now())
order by due_at limit @max_rows::integer;

-- name: ListDeliveries :many
-- Planned for each call. Identifiers of events grow with time.
select d.event_id, d.state, d.attempts, d.next_attempt_at, e.event_type, e.occurred_at from (
  select p.event_id, p.state, p.attempts, p.next_attempt_at from deliveries p join webhooks w on w.webhook_id = p.webhook_id
  where w.workspace_id = @workspace_id and p.webhook_id = @webhook_id and p.state = any(@states::text[])
    and p.event_id > @after and p.event_id < @before
    and (sqlc.narg('event_id')::uuid is null or p.event_id = sqlc.narg('event_id')::uuid)
  order by p.event_id desc limit @max_rows::integer
) d join events e on e.event_id = d.event_id order by d.event_id desc;

-- name: WalkDeliveries :many
-- ListDeliveries in ascending order.
select d.event_id, d.state, e.event_type from (
  select p.event_id, p.state from deliveries p join webhooks w on w.webhook_id = p.webhook_id
  where w.workspace_id = @workspace_id and p.webhook_id = @webhook_id and p.state = any(@states::text[])
    and p.event_id > @after and p.event_id < @before
    and (sqlc.narg('event_id')::uuid is null or p.event_id = sqlc.narg('event_id')::uuid)
  order by p.event_id limit @max_rows::integer
) d join events e on e.event_id = d.event_id order by d.event_id;

-- name: ListDeliveryAttempts :many
select a.* from delivery_attempts a join webhooks w on w.webhook_id = a.webhook_id
where w.workspace_id = @workspace_id and a.webhook_id = @webhook_id and a.event_id = @event_id order by a.attempt;

-- name: ListEndpoints :many
-- Across all workspaces, for operators.
select sqlc.embed(h), w.is_suspended as suspended, coalesce(extract(epoch from now() - h.failing_since), 0)::double precision as failing_seconds
from webhooks h join workspaces w using (workspace_id) order by h.workspace_id, h.created_at, h.webhook_id;

-- name: CountWaitingEvents :many
-- Events that wait to be sent and, for disabled webhooks, those that a replay sends, each up to a maximum.
select w.webhook_id, (
  (select count(*) from (select 1 from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending' limit @max_rows::integer) p)
  + (select count(*) from (select 1 from deliveries d where d.webhook_id = w.webhook_id and d.state in ('failed', 'held')
      and w.disabled_at is not null limit @max_rows::integer) u)
)::integer as waiting
from webhooks w where w.webhook_id = any(@webhook_ids::uuid[]);
