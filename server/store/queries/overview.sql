-- Lists of the console: newest first, with optional conditions, planned for each call. They return identifiers, which
-- the domain packages then read.

-- name: OverviewDevices :many
select d.device_id, d.created_at from devices d
where d.workspace_id = @workspace_id and d.removed_at is null and d.is_managed = @is_managed
  and (d.created_at, d.device_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('connected_account_id')::uuid is null or d.connected_account_id = sqlc.narg('connected_account_id')::uuid)
  and (sqlc.narg('kind')::text is null or case sqlc.narg('kind')::text when 'thermostat' then d.capabilities ? 'thermostat'
    when 'noise_detection' then d.capabilities ? 'noise_sensor' else not d.capabilities ?| array['thermostat', 'noise_sensor'] end)
  and (sqlc.narg('online')::boolean is null or d.online = sqlc.narg('online')::boolean)
  and (sqlc.narg('battery_below')::double precision is null or d.battery_level < sqlc.narg('battery_below')::double precision)
  and (sqlc.narg('provider')::text is null or d.provider = sqlc.narg('provider')::text)
  and (sqlc.narg('pattern')::text is null or coalesce(d.nickname, d.name) ~ sqlc.narg('pattern')::text)
  and (sqlc.narg('account_ids')::uuid[] is null or d.connected_account_id = any(sqlc.narg('account_ids')::uuid[]))
order by d.created_at desc, d.device_id desc
limit @max_rows::integer;

-- name: OverviewCodes :many
select c.access_code_id, c.created_at from access_codes c
where c.workspace_id = @workspace_id and c.is_managed and not c.in_pool
  and (c.created_at, c.access_code_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('device_id')::uuid is null or c.device_id = sqlc.narg('device_id')::uuid)
  and (sqlc.narg('kind')::text is null or case sqlc.narg('kind')::text when 'one_time' then coalesce(c.offline_kind = 'one_time', false)
    when 'offline' then c.offline_kind is not null
    when 'time_bound' then c.offline_kind is null and (c.starts_at is not null or c.ends_at is not null)
    else c.offline_kind is null and c.starts_at is null and c.ends_at is null end)
  and (sqlc.narg('status')::text is null or c.status = sqlc.narg('status')::text)
  and (sqlc.narg('changed_before')::timestamptz is null or c.desired_at < sqlc.narg('changed_before')::timestamptz)
  and (sqlc.narg('pattern')::text is null or c.name ~ sqlc.narg('pattern')::text)
order by c.created_at desc, c.access_code_id desc
limit @max_rows::integer;

-- name: OverviewCodesNotSet :many
-- OverviewCodes for the states other than set, which have an index.
select c.access_code_id, c.created_at from access_codes c
where c.is_managed and not c.in_pool and c.status <> 'set' and c.workspace_id = @workspace_id
  and (sqlc.narg('status')::text is null or c.status = sqlc.narg('status')::text)
  and (c.created_at, c.access_code_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('device_id')::uuid is null or c.device_id = sqlc.narg('device_id')::uuid)
  and (sqlc.narg('kind')::text is null or case sqlc.narg('kind')::text when 'one_time' then coalesce(c.offline_kind = 'one_time', false)
    when 'offline' then c.offline_kind is not null
    when 'time_bound' then c.offline_kind is null and (c.starts_at is not null or c.ends_at is not null)
    else c.offline_kind is null and c.starts_at is null and c.ends_at is null end)
  and (sqlc.narg('pattern')::text is null or c.name ~ sqlc.narg('pattern')::text)
  and (sqlc.narg('changed_before')::timestamptz is null or c.desired_at < sqlc.narg('changed_before')::timestamptz)
order by c.created_at desc, c.access_code_id desc
limit @max_rows::integer;

-- name: OverviewCodesFailing :many
-- OverviewCodes for codes with an error.
select c.access_code_id, c.created_at from access_codes c
where c.is_managed and not c.in_pool and c.error_code is not null and c.workspace_id = @workspace_id
  and (c.created_at, c.access_code_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('device_id')::uuid is null or c.device_id = sqlc.narg('device_id')::uuid)
  and (sqlc.narg('kind')::text is null or case sqlc.narg('kind')::text when 'one_time' then coalesce(c.offline_kind = 'one_time', false)
    when 'offline' then c.offline_kind is not null
    when 'time_bound' then c.offline_kind is null and (c.starts_at is not null or c.ends_at is not null)
    else c.offline_kind is null and c.starts_at is null and c.ends_at is null end)
  and (sqlc.narg('changed_before')::timestamptz is null or c.desired_at < sqlc.narg('changed_before')::timestamptz)
  and (sqlc.narg('pattern')::text is null or c.name ~ sqlc.narg('pattern')::text)
order by c.created_at desc, c.access_code_id desc
limit @max_rows::integer;

-- name: CountCodesOfDevices :many
-- Managed codes of each device, and those of them that are set.
select device_id, count(*)::bigint as codes, count(*) filter (where status = 'set')::bigint as set
from access_codes where device_id = any(@device_ids::uuid[]) and is_managed and not in_pool
group by device_id;

-- name: NameDevices :many
select device_id, coalesce(nickname, name)::text as name, coalesce(reported_time_zone, '')::text as time_zone
from devices where workspace_id = @workspace_id and device_id = any(@device_ids::uuid[]);

-- name: OfflineDevices :many
select device_id, coalesce(nickname, name)::text as name, online_changed_at, capabilities from devices
where removed_at is null and is_managed and not online and workspace_id = @workspace_id
order by online_changed_at limit @max_rows::integer;

-- name: LowBatteries :many
select device_id, coalesce(nickname, name)::text as name, battery_level::double precision as level, capabilities from devices
where removed_at is null and is_managed and battery_level < 0.25 and workspace_id = @workspace_id
order by battery_level limit @max_rows::integer;

-- name: FailingAccounts :many
select connected_account_id, display_name, provider, error_message, error_at from connected_accounts
where deleted_at is null and workspace_id = @workspace_id and error_code is not null
order by error_at limit @max_rows::integer;

-- name: OverdueCodes :many
-- Codes that an online device has not set or removed for so many seconds, oldest first.
select c.access_code_id, c.name, c.status, d.device_id, coalesce(d.nickname, d.name)::text as device_name,
  greatest(coalesce(c.removing_since, c.desired_at), d.online_changed_at)::timestamptz as since
from access_codes c join devices d using (device_id)
where c.is_managed and not c.in_pool and c.status <> 'set' and c.status in ('setting', 'removing') and c.workspace_id = @workspace_id
  and d.online and d.removed_at is null
  and greatest(coalesce(c.removing_since, c.desired_at), d.online_changed_at) < now() - make_interval(secs => @overdue_seconds::double precision)
order by since limit @max_rows::integer;

-- name: FailingCodes :many
select c.access_code_id, c.name, c.error_message, c.error_at, d.device_id, coalesce(d.nickname, d.name)::text as device_name
from access_codes c join devices d using (device_id)
where c.is_managed and not c.in_pool and c.error_code is not null and c.workspace_id = @workspace_id
  and d.removed_at is null and d.is_managed
order by c.error_at limit @max_rows::integer;

-- name: FailingWebhooks :many
select webhook_id, url, failing_since, consecutive_failures, disabled_at from webhooks
where workspace_id = @workspace_id and (disabled_at is not null or failing_since is not null)
order by coalesce(failing_since, disabled_at) limit @max_rows::integer;

-- name: FailingUsers :many
-- Users of access systems whose changes failed, or that have waited for so many seconds.
select u.acs_user_id, u.full_name, u.error_message, u.changed_at, s.name as system_name
from acs_users u join acs_systems s using (acs_system_id)
where u.is_managed and (u.desired_gen > u.written_gen or u.deleting_at is not null) and u.workspace_id = @workspace_id
  and (u.error_code is not null or u.blocked_gen >= u.desired_gen
    or u.changed_at < now() - make_interval(secs => @overdue_seconds::double precision))
order by u.changed_at limit @max_rows::integer;

-- name: CodesStarting :many
select c.access_code_id, c.name, c.status, c.starts_at::timestamptz as at, d.device_id, coalesce(d.nickname, d.name)::text as device_name,
  coalesce(d.reported_time_zone, '')::text as time_zone
from access_codes c join devices d using (device_id)
where c.is_managed and c.starts_at is not null and not c.in_pool and c.workspace_id = @workspace_id
  and c.starts_at >= @since::timestamptz and c.starts_at < @until::timestamptz
order by c.starts_at limit @max_rows::integer;

-- name: CodesEnding :many
select c.access_code_id, c.name, c.status, c.ends_at::timestamptz as at, d.device_id, coalesce(d.nickname, d.name)::text as device_name,
  coalesce(d.reported_time_zone, '')::text as time_zone
from access_codes c join devices d using (device_id)
where c.is_managed and c.ends_at is not null and not c.in_pool and c.workspace_id = @workspace_id
  and c.ends_at >= @since::timestamptz and c.ends_at < @until::timestamptz
order by c.ends_at limit @max_rows::integer;

-- name: DeviceFacts :many
-- What lists show of devices in addition: since when they are online or offline, the account, and the last event after
-- an identifier.
select d.device_id, d.online_changed_at, a.connected_account_id, a.display_name, a.customer_key,
  coalesce((select e.created_at from events e where e.workspace_id = @workspace_id and e.device_id = d.device_id
    and e.event_id >= @since_id::uuid and e.event_id <= @until_id::uuid order by e.created_at desc limit 1), 'epoch')::timestamptz as last_event_at
from devices d join connected_accounts a using (connected_account_id)
where d.workspace_id = @workspace_id and d.device_id = any(@device_ids::uuid[]);

-- name: AccountChoices :many
-- The newest accounts, for a filter.
select connected_account_id, display_name, provider from connected_accounts
where workspace_id = @workspace_id and deleted_at is null order by created_at desc, connected_account_id desc limit @max_rows::integer;

-- name: OverviewProviders :many
-- The vendors of some devices of the newest accounts, most of which have one vendor each.
select distinct d.provider from (select c.connected_account_id from connected_accounts c
    where c.workspace_id = @workspace_id and c.deleted_at is null order by c.created_at desc, c.connected_account_id desc limit @max_rows::integer) a
  cross join lateral (select o.provider from devices o where o.connected_account_id = a.connected_account_id limit 50) d
order by 1;

-- name: CountUnmanagedCodes :one
select count(*) from access_codes where workspace_id = @workspace_id and device_id = @device_id and not is_managed and not in_pool;

-- name: CodeIDsOfDevice :many
select access_code_id from access_codes where device_id = @device_id and is_managed and not in_pool
order by created_at desc limit @max_rows::integer;

-- name: TimelineEvents :many
-- The events of a device, or of one of its codes, newest first. Payloads contain no PINs, which are in pin_sealed.
select event_id, event_type, access_code_id, created_at, payload from events
where workspace_id = @workspace_id and device_id = @device_id::uuid and event_id <= @until_id::uuid
  and (created_at, event_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('access_code_id')::uuid is null or access_code_id = sqlc.narg('access_code_id')::uuid)
order by created_at desc, event_id desc limit @max_rows::integer;

-- name: TimelineAttempts :many
select action_attempt_id, access_code_id, action_type, status, error_message, created_at from action_attempts
where workspace_id = @workspace_id and device_id = @device_id::uuid
  and (created_at, action_attempt_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('access_code_id')::uuid is null or access_code_id = sqlc.narg('access_code_id')::uuid)
order by created_at desc, action_attempt_id desc limit @max_rows::integer;

-- name: TimelineAudit :many
-- The entries about any of the subjects.
select audit_id, actor_kind, actor_name, operation, outcome, request_id, occurred_at, subject_kinds, subject_ids from audit_log
where workspace_id = @workspace_id::uuid and subject_ids && @subject_ids::uuid[]
  and (occurred_at, audit_id) < (@before_at::timestamptz, @before_id::uuid)
order by occurred_at desc, audit_id desc limit @max_rows::integer;

-- name: CreatorsOfCodes :many
-- Who created each code, or made it managed: the actor of the first such entry of the audit log.
select distinct on (s.id) s.id::uuid as access_code_id, a.actor_kind, a.actor_name
from audit_log a cross join lateral unnest(a.subject_ids) s(id)
where a.workspace_id = @workspace_id::uuid and a.subject_ids && @access_code_ids::uuid[] and s.id = any(@access_code_ids::uuid[])
  and a.operation in ('/access_codes/create', '/access_codes/create_multiple', '/access_codes/unmanaged/convert_to_managed',
    '/access_codes/unmanaged/update')
order by s.id, a.occurred_at, a.audit_id;

-- name: NewestChange :one
-- When something last changed in a workspace, and how many events are at most five seconds older than the newest one.
-- Events commit in another order than they are created, so the number shows those that became visible late.
with newest as (
  select (select max(e.created_at) from events e where e.workspace_id = @workspace_id) as event_at,
    (select max(a.created_at) from action_attempts a where a.workspace_id = @workspace_id) as attempt_at,
    (select max(l.occurred_at) from audit_log l where l.workspace_id = @workspace_id) as audit_at
)
select coalesce(greatest(n.event_at, n.attempt_at, n.audit_at), 'epoch')::timestamptz as at,
  (select count(*) from (select from events e where e.workspace_id = @workspace_id
    and e.created_at > n.event_at - interval '5 seconds' limit 1000) r)::bigint as recent
from newest n;

-- name: LatestEventsOfDevice :many
-- The payload never contains a PIN.
select event_id, event_type, occurred_at, created_at, payload from events
where workspace_id = @workspace_id and device_id = @device_id
  and (created_at, event_id) < (@before_at::timestamptz, @before_id::uuid)
order by created_at desc, event_id desc
limit @max_rows::integer;

-- name: CurrentSchedules :many
-- The name or preset of the schedule of each thermostat that started last and has not ended.
select distinct on (device_id) device_id, coalesce(name, climate_preset_key)::text as name, ends_at from thermostat_schedules
where device_id = any(@device_ids::uuid[]) and starts_at <= now() and ends_at > now()
order by device_id, starts_at desc;

-- name: ThresholdsOfDevices :many
-- The number of thresholds of each noise sensor.
select device_id, count(*)::bigint as thresholds from noise_thresholds
where device_id = any(@device_ids::uuid[]) and not is_deleting
group by device_id;

-- name: OverviewIdentities :many
select i.user_identity_id, i.created_at, i.user_identity_key, i.full_name, i.email_address, i.phone_number from user_identities i
where i.workspace_id = @workspace_id and (i.created_at, i.user_identity_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('acs_system_id')::uuid is null or exists (select from acs_users u
    where u.user_identity_id = i.user_identity_id and u.acs_system_id = sqlc.narg('acs_system_id')::uuid and u.is_managed))
  and (sqlc.narg('pattern')::text is null or concat_ws(chr(10), i.full_name, i.email_address, i.phone_number,
    i.user_identity_key) ~ sqlc.narg('pattern')::text)
order by i.created_at desc, i.user_identity_id desc
limit @max_rows::integer;

-- name: CountUsersOfIdentities :many
-- Managed users of each identity, and those of them with an error.
select user_identity_id::uuid as user_identity_id, count(*)::bigint as users,
  count(*) filter (where error_code is not null)::bigint as failing
from acs_users where user_identity_id = any(@user_identity_ids::uuid[]) and is_managed
group by user_identity_id;

-- name: OverviewUsers :many
-- Users of access systems. Those that are not suspended or waiting are settled.
select u.acs_user_id, u.created_at, u.full_name, u.email_address, u.phone_number, u.is_suspended, u.is_managed, u.user_identity_id,
  u.deleting_at, u.error_message, u.starts_at, u.ends_at, (u.desired_gen > u.written_gen)::boolean as waiting, u.changed_at,
  u.acs_system_id, s.name as system_name
from acs_users u join acs_systems s using (acs_system_id)
where u.workspace_id = @workspace_id and u.is_managed = @is_managed
  and (u.created_at, u.acs_user_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('acs_system_id')::uuid is null or u.acs_system_id = sqlc.narg('acs_system_id')::uuid)
  and (sqlc.narg('pattern')::text is null
    or concat_ws(chr(10), u.full_name, u.email_address, u.phone_number) ~ sqlc.narg('pattern')::text)
  and (not @only_suspended::boolean or u.is_suspended)
  and (not @only_failing::boolean or u.error_code is not null)
order by u.created_at desc, u.acs_user_id desc
limit @max_rows::integer;

-- name: OverviewUsersPending :many
-- OverviewUsers for those with changes that their system has not confirmed. They are few and have an index, which a plan
-- for the order would not use.
with pending as materialized (
  select * from acs_users p
  where p.is_managed and (p.desired_gen > p.written_gen or p.deleting_at is not null) and p.workspace_id = @workspace_id
)
select u.acs_user_id, u.created_at, u.full_name, u.email_address, u.phone_number, u.is_suspended, u.is_managed, u.user_identity_id,
  u.deleting_at, u.error_message, u.starts_at, u.ends_at, (u.desired_gen > u.written_gen)::boolean as waiting, u.changed_at,
  u.acs_system_id, s.name as system_name
from pending u join acs_systems s using (acs_system_id)
where (u.created_at, u.acs_user_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('acs_system_id')::uuid is null or u.acs_system_id = sqlc.narg('acs_system_id')::uuid)
  and (sqlc.narg('pattern')::text is null
    or concat_ws(chr(10), u.full_name, u.email_address, u.phone_number) ~ sqlc.narg('pattern')::text)
order by u.created_at desc, u.acs_user_id desc
limit @max_rows::integer;

-- name: NameSystems :many
select acs_system_id, name from acs_systems where workspace_id = @workspace_id and removed_at is null
order by created_at, acs_system_id limit @max_rows::integer;

-- name: FindByID :one
-- What an identifier of a workspace names, and for a device its capabilities.
select f.kind::text as kind, f.owner::uuid as owner from (
  select case when d.removed_at is not null then 'removed' when d.capabilities ? 'thermostat' then 'thermostat' when d.capabilities ? 'noise_sensor' then 'noise_detection' else 'lock' end as kind,
    d.device_id as owner from devices d where d.device_id = @id and d.workspace_id = @workspace_id
  union all select case when c.is_managed then 'code' else 'unmanaged_code' end, c.device_id
    from access_codes c where c.access_code_id = @id and c.workspace_id = @workspace_id
  union all select 'account', a.connected_account_id from connected_accounts a
    where a.connected_account_id = @id and a.workspace_id = @workspace_id and a.deleted_at is null
  union all select 'webhook', w.webhook_id from webhooks w where w.webhook_id = @id and w.workspace_id = @workspace_id
  union all select 'identity', i.user_identity_id from user_identities i where i.user_identity_id = @id and i.workspace_id = @workspace_id
  union all select 'identity', m.user_identity_id from merged_user_identities m
    where m.merged_user_identity_id = @id and m.workspace_id = @workspace_id
  union all select 'user', u.acs_user_id from acs_users u where u.acs_user_id = @id and u.workspace_id = @workspace_id
  union all select 'system', s.acs_system_id from acs_systems s
    where s.acs_system_id = @id and s.workspace_id = @workspace_id and s.removed_at is null
  union all select 'group', g.acs_access_group_id from acs_access_groups g where g.acs_access_group_id = @id and g.workspace_id = @workspace_id
  union all select 'event', e.event_id from events e where e.event_id = @id and e.workspace_id = @workspace_id
  union all select 'attempt', coalesce(t.device_id, t.action_attempt_id) from action_attempts t where t.action_attempt_id = @id and t.workspace_id = @workspace_id
  union all select 'key', k.credential_id from credential_workspaces k where k.credential_id = @id and k.workspace_id = @workspace_id
) f limit 1;

-- name: SearchDevices :many
-- Searches read a limited number of the newest rows, so that their time does not grow with the workspace.
select d.device_id as id, coalesce(d.nickname, d.name)::text as name,
  (case when d.capabilities ? 'thermostat' then 'thermostat' when d.capabilities ? 'noise_sensor' then 'noise_detection' else 'lock' end)::text as kind
from (select * from devices where devices.workspace_id = @workspace_id and removed_at is null and is_managed
  order by created_at desc, device_id desc limit @max_read::integer) d
where coalesce(d.nickname, d.name) ~ @pattern::text limit @max_rows::integer;

-- name: SearchCodes :many
select c.access_code_id as id, c.name::text as name, coalesce(d.nickname, d.name)::text as device_name
from (select access_code_id, access_codes.name, access_codes.device_id from access_codes
  where access_codes.workspace_id = @workspace_id and is_managed and not in_pool
  order by created_at desc, access_code_id desc limit @max_read::integer) c join devices d using (device_id)
where c.name ~ @pattern::text limit @max_rows::integer;

-- name: SearchAccounts :many
select a.connected_account_id as id, coalesce(nullif(a.display_name, ''), a.provider)::text as name, a.provider
from (select * from connected_accounts where connected_accounts.workspace_id = @workspace_id and deleted_at is null
  order by created_at desc, connected_account_id desc limit @max_read::integer) a
where concat_ws(chr(10), a.display_name, a.provider, a.customer_key) ~ @pattern::text limit @max_rows::integer;

-- name: SearchIdentities :many
select i.user_identity_id as id, coalesce(i.full_name, i.email_address, i.phone_number, i.user_identity_key, '')::text as name,
  coalesce(i.email_address, '')::text as email
from (select * from user_identities where user_identities.workspace_id = @workspace_id
  order by created_at desc, user_identity_id desc limit @max_read::integer) i
where concat_ws(chr(10), i.full_name, i.email_address, i.phone_number, i.user_identity_key) ~ @pattern::text limit @max_rows::integer;

-- name: SearchUsers :many
select u.acs_user_id as id, u.full_name as name, s.name as system_name
from (select * from acs_users where acs_users.workspace_id = @workspace_id and is_managed
  order by created_at desc, acs_user_id desc limit @max_read::integer) u join acs_systems s using (acs_system_id)
where concat_ws(chr(10), u.full_name, u.email_address, u.phone_number) ~ @pattern::text limit @max_rows::integer;

-- name: SearchKeys :many
-- The keys of a workspace whose shown part ends with a text.
select c.credential_id as id, c.name, c.hint from credentials c join credential_workspaces w using (credential_id)
where w.workspace_id = @workspace_id and c.kind = 'api_key' and right(c.hint, 4) = @last_four::text
order by c.created_at desc limit @max_rows::integer;

-- name: CurrentDataKey :one
select created_at from data_keys where is_current;
