-- name: CountOutbox :one
-- Events without deliveries, up to a maximum.
select count(*)::bigint as events from (select from events where fanned_out_at is null limit @most::integer) e;

-- name: OldestEvent :one
-- How many seconds the oldest event has been in the outbox. A loose index scan over accounts: the number of events
-- per account does not matter.
with recursive waiting as not materialized (
  select e.workspace_id, coalesce(e.connected_account_id, '00000000-0000-0000-0000-000000000000') as account, e.created_at from events e where e.fanned_out_at is null
), oldest as (
  (select w.workspace_id, w.account, w.created_at from waiting w order by w.workspace_id, w.account, w.created_at limit 1)
  union all
  select n.workspace_id, n.account, n.created_at from oldest o cross join lateral (
    select w.workspace_id, w.account, w.created_at from waiting w where (w.workspace_id, w.account) > (o.workspace_id, o.account)
    order by w.workspace_id, w.account, w.created_at limit 1
  ) n
)
select coalesce(extract(epoch from now() - min(created_at)), 0)::double precision as seconds from oldest;

-- name: CountPending :one
-- Pending deliveries, up to a maximum, to endpoints whose last attempt failed and to others.
select
  (select count(*) from (select from webhooks w
    join lateral (select from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending' limit @most::integer) d on true
    where w.due_at is not null and w.consecutive_failures > 0 limit @most::integer) p)::bigint as failing,
  (select count(*) from (select from webhooks w
    join lateral (select from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending' limit @most::integer) d on true
    where w.due_at is not null and w.consecutive_failures = 0 limit @most::integer) p)::bigint as healthy;

-- name: OldestDue :one
-- How many seconds the most overdue delivery has waited: at failing endpoints, at healthy ones, and at healthy ones
-- that are being served, whose speed is their own. A paused endpoint is not due, but its deliveries are.
select coalesce(max(extract(epoch from now() - d.next_attempt_at)) filter (where w.consecutive_failures > 0), 0)::double precision as failing,
  coalesce(max(extract(epoch from now() - d.next_attempt_at)) filter (where w.consecutive_failures = 0 and l.key is null), 0)::double precision as healthy,
  coalesce(max(extract(epoch from now() - d.next_attempt_at)) filter (where w.consecutive_failures = 0 and l.key is not null), 0)::double precision as slow
from webhooks w
join lateral (select d.next_attempt_at from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending' order by d.next_attempt_at limit 1) d on true
left join leases l on l.key = 'endpoint:' || w.webhook_id::text and l.held_until > now()
where w.due_at is not null and (w.due_at <= now() or w.consecutive_failures > 0) and d.next_attempt_at <= now();

-- name: CountDisabledWebhooks :one
select count(*)::bigint from webhooks where disabled_at is not null;

-- name: Lateness :one
-- How many seconds the most overdue work without a worker has waited: devices, accounts, and access systems; and
-- deliveries to healthy endpoints.
select
  coalesce(extract(epoch from now() - least(
    (select d.due_at from devices d where d.due_at <= now()
      and not exists (select 1 from leases l where l.key = 'device:' || d.device_id::text and l.held_until > now()) order by d.due_at limit 1),
    (select a.due_at from connected_accounts a where a.due_at <= now()
      and not exists (select 1 from leases l where l.key = 'account:' || a.connected_account_id::text and l.held_until > now()) order by a.due_at limit 1),
    (select s.due_at from acs_systems s where s.due_at <= now()
      and not exists (select 1 from leases l where l.key = 'acs_system:' || s.acs_system_id::text and l.held_until > now()) order by s.due_at limit 1))), 0)::double precision as devices,
  coalesce((select max(extract(epoch from now() - d.next_attempt_at)) from webhooks w
    join lateral (select d.next_attempt_at from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending' order by d.next_attempt_at limit 1) d on true
    where w.due_at <= now() and w.consecutive_failures = 0 and d.next_attempt_at <= now()
      and not exists (select 1 from leases l where l.key = 'endpoint:' || w.webhook_id::text and l.held_until > now())), 0)::double precision as deliveries;
