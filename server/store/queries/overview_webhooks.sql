-- Lists of webhooks and deliveries for the console, as in overview.sql.

-- name: OverviewWebhooks :many
select webhook_id, url, event_types, created_at, is_healthy, paused_until, failing_since, consecutive_failures, disabled_at, disabled_reason, old_secret_until
from webhooks
where workspace_id = @workspace_id
  and (created_at, webhook_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('webhook_id')::uuid is null or webhook_id = sqlc.narg('webhook_id')::uuid)
  and (sqlc.narg('state')::text is null or case sqlc.narg('state')::text
    when 'disabled' then disabled_at is not null
    when 'failing' then disabled_at is null and failing_since is not null
    else disabled_at is null and failing_since is null end)
  and (sqlc.narg('event_type')::text is null or event_types && array['*', sqlc.narg('event_type')::text])
  and (sqlc.narg('pattern')::text is null or split_part(url, '?', 1) ~ sqlc.narg('pattern')::text)
order by created_at desc, webhook_id desc
limit @max_rows::integer;

-- name: CountUnsentOfWebhooks :many
-- Pending and held deliveries of each webhook, up to a maximum.
select w.webhook_id, p.pending, h.held
from webhooks w
cross join lateral (select count(*)::bigint as pending from (
  select 1 from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending' limit @max_rows::integer) x) p
cross join lateral (select count(*)::bigint as held from (
  select 1 from deliveries d where d.webhook_id = w.webhook_id and d.state = 'held' and d.state in ('failed', 'held') limit @max_rows::integer) x) h
where w.workspace_id = @workspace_id and w.webhook_id = any(@webhook_ids::uuid[]);

-- name: CountAttemptsByHour :many
-- The latest attempts of each webhook, up to a maximum, by age in hours. Those older than a day are in the hour 24.
select w.webhook_id, least(24, greatest(0, floor(extract(epoch from now() - a.attempted_at) / 3600)))::integer as hours_ago,
  count(*) filter (where a.error is null)::bigint as succeeded, count(*) filter (where a.error is not null)::bigint as failed,
  coalesce(max(a.attempted_at) filter (where a.error is null), '0001-01-01 00:00:00+00')::timestamptz as last_success
from webhooks w cross join lateral (
  select r.attempted_at, r.error from delivery_attempts r where r.webhook_id = w.webhook_id
  order by r.event_id desc, r.attempt desc limit @max_rows::integer
) a
where w.workspace_id = @workspace_id and w.webhook_id = any(@webhook_ids::uuid[])
group by 1, 2;

-- name: DeliveryScanEnd :one
-- The event at which a page of OverviewDeliveries stops its search for rare matches.
select d.event_id from deliveries d join webhooks w on w.webhook_id = d.webhook_id
where w.workspace_id = @workspace_id and d.webhook_id = @webhook_id and d.event_id < @before and d.event_id > @after
order by d.event_id desc offset @scanned_rows::integer limit 1;

-- name: OverviewDeliveries :many
-- With the outcome of the last attempt.
select d.event_id, d.state, d.attempts, d.next_attempt_at, d.finished_at, e.event_type, e.created_at, a.status, a.error
from webhooks w join deliveries d on d.webhook_id = w.webhook_id join events e on e.event_id = d.event_id
left join lateral (
  select r.status, r.error from delivery_attempts r where r.webhook_id = d.webhook_id and r.event_id = d.event_id order by r.attempt desc limit 1
) a on true
where w.workspace_id = @workspace_id and w.webhook_id = @webhook_id and d.event_id < @before and d.event_id > @after
  and (sqlc.narg('state')::text is null or d.state = sqlc.narg('state')::text)
  and (sqlc.narg('event_type')::text is null or e.event_type = sqlc.narg('event_type')::text)
  and (sqlc.narg('event_id')::uuid is null or d.event_id = sqlc.narg('event_id')::uuid)
  and (sqlc.narg('lowest_status')::integer is null or coalesce(a.status, 0) between sqlc.narg('lowest_status')::integer and sqlc.narg('highest_status')::integer)
order by d.event_id desc
limit @max_rows::integer;

-- name: AttemptTimes :many
select a.attempt, a.attempted_at from delivery_attempts a join webhooks w on w.webhook_id = a.webhook_id
where w.workspace_id = @workspace_id and a.webhook_id = @webhook_id and a.event_id = @event_id order by a.attempt;
