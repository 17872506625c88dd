-- name: CountDevices :one
-- Managed devices, each count up to a maximum.
select
  (select count(*) from (select from devices where removed_at is null and is_managed limit @most::integer) d)::bigint as total,
  (select count(*) from (select from devices where removed_at is null and is_managed and not online limit @most::integer) d)::bigint as offline,
  (select count(*) from (select from devices where removed_at is null and is_managed and battery_level < 0.25 and battery_level >= 0.1 limit @most::integer) d)::bigint as battery_low,
  (select count(*) from (select from devices where removed_at is null and is_managed and battery_level < 0.25 and battery_level < 0.1 limit @most::integer) d)::bigint as battery_critical;

-- name: CountAccounts :many
-- Connected accounts by adapter and state, which is the code of their error, up to a maximum.
select adapter, coalesce(error_code, 'connected')::text as state, count(*)::bigint as accounts
from (select adapter, error_code from connected_accounts where deleted_at is null limit @most::integer) a
group by adapter, error_code;

-- name: CountAccessCodes :one
-- Managed codes, and backup codes in the pool, each count up to a maximum.
select
  (select count(*) from (select from access_codes where is_managed limit @most::integer) c)::bigint as managed,
  (select count(*) from (select from access_codes where in_pool limit @most::integer) c)::bigint as pooled;

-- name: CountCodesNotSet :many
-- Managed codes outside of the backup pool by status, each count up to a maximum.
select s.status::text as status, n.codes::bigint as codes
from unnest(array['unset', 'setting', 'removing', 'unknown']) as s(status)
cross join lateral (
  select count(*) as codes from (
    select from access_codes c where c.is_managed and not c.in_pool and c.status <> 'set' and c.status = s.status limit @most::integer) c
) n;

-- name: FindOverdueCodes :one
-- Codes that have been setting for longer than so many seconds while their device was online, and how many seconds the
-- oldest setting code of an online device has waited. Considers the oldest codes, up to a maximum.
with waiting as (
  select greatest(c.desired_at, d.online_changed_at) as since
  from (
    select c.desired_at, c.device_id from access_codes c
    where c.is_managed and not c.in_pool and c.status <> 'set' and c.status = 'setting' order by c.desired_at limit @most::integer) c
  join devices d using (device_id)
  where d.online and d.removed_at is null
)
select count(*) filter (where since < now() - make_interval(secs => @overdue_seconds::double precision))::bigint as overdue,
  greatest(coalesce(extract(epoch from now() - min(since)), 0), 0)::double precision as oldest
from waiting;

-- name: CountFailingCodes :one
-- Codes with an error, up to a maximum.
select count(*)::bigint as codes
from (
  select c.device_id from access_codes c
  where c.is_managed and not c.in_pool and c.error_code is not null limit @most::integer) c
join devices d using (device_id)
where d.removed_at is null and d.is_managed;

-- name: CountOverdueRemovals :one
-- Codes that have been removing for longer than so many seconds while their device was online. Considers the oldest
-- codes, up to a maximum.
select count(*)::bigint as codes
from (
  select c.removing_since, c.device_id from access_codes c
  where c.is_managed and not c.in_pool and c.status <> 'set' and c.status = 'removing' order by c.desired_at limit @most::integer) c
join devices d using (device_id)
where d.online and d.removed_at is null
  and greatest(c.removing_since, d.online_changed_at) < now() - make_interval(secs => @overdue_seconds::double precision);

-- name: CountPendingAcsUsers :one
-- Managed users whose changes are not on their access system yet: those with an error, and the others, up to a maximum.
select count(*) filter (where error_code is null and blocked_gen < desired_gen)::bigint as waiting,
  count(*) filter (where error_code is not null or blocked_gen >= desired_gen)::bigint as failing
from (
  select error_code, blocked_gen, desired_gen from acs_users
  where is_managed and (desired_gen > written_gen or deleting_at is not null) limit @most::integer) u;

-- name: ListDeviceStates :many
-- Managed devices, up to a maximum, with what a monitoring system shows of each.
select d.device_id, coalesce(d.nickname, d.name)::text as name, d.online, d.battery_level, coalesce(c.setting, 0)::bigint as setting
from (
  select device_id, nickname, name, online, battery_level from devices
  where removed_at is null and is_managed order by workspace_id, created_at, device_id limit @most::integer) d
left join (
  select device_id, count(*) as setting from access_codes
  where is_managed and not in_pool and status <> 'set' and status = 'setting' group by device_id) c using (device_id);

-- name: GetLastBackup :one
-- When the last backup ended or, if there is none, when the installation began.
select coalesce((select b.finished_at from last_backup b where b.is_only), (select min(k.created_at) from server_keys k), now())::timestamptz as at;
