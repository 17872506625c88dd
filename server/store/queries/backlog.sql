-- name: CountOutbox :one
-- Events that webhooks have not been given yet.
select count(*)::bigint as events from (select from events where fanned_out_at is null limit @most::integer) e;

-- name: OldestEvent :one
-- For how long the oldest of these waits, in seconds. It goes from one account to the next: how many wait of one costs nothing.
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
-- Deliveries that are to be made: where the last attempt at their endpoint failed, and elsewhere.
select
  (select count(*) from (select from webhooks w
    join lateral (select from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending' limit @most::integer) d on true
    where w.due_at is not null and w.consecutive_failures > 0 limit @most::integer) p)::bigint as failing,
  (select count(*) from (select from webhooks w
    join lateral (select from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending' limit @most::integer) d on true
    where w.due_at is not null and w.consecutive_failures = 0 limit @most::integer) p)::bigint as healthy;

-- name: OldestDue :one
-- For how long the delivery waits that has been due for longest, in seconds, in the same two places; what endpoints that work are sent
-- meanwhile by itself: how fast they answer is theirs. Those that fail are not due while they are left alone, but what waits for them is.
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
-- For how long what nobody works on has been due, in seconds: devices, with accounts and access systems; and deliveries to endpoints that work.
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
