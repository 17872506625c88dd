-- name: GetDevice :one
select * from device_summaries where workspace_id = @workspace_id and device_id = @device_id and removed_at is null and is_managed = @is_managed;

-- name: FindDevice :one
select device_id, connected_account_id from devices where workspace_id = @workspace_id and device_id = @device_id and removed_at is null and is_managed;

-- name: GetDeviceByName :one
select * from device_summaries
where workspace_id = @workspace_id and coalesce(nickname, name) = @name::text and removed_at is null and is_managed = @is_managed
  and (sqlc.narg('scope')::uuid[] is null or connected_account_id = any(sqlc.narg('scope')::uuid[]) or device_id = any(sqlc.narg('scope')::uuid[]))
order by created_at, device_id limit 1;

-- name: GetDeviceByID :one
select * from devices where device_id = @device_id;

-- name: GetDeviceByRef :one
select * from devices where connected_account_id = @connected_account_id and vendor_ref = @vendor_ref;

-- name: LockDevice :one
-- Serializes changes of a device's codes.
select * from devices where device_id = @device_id for no key update;

-- name: LockDeviceByRef :one
select * from devices where connected_account_id = @connected_account_id and vendor_ref = @vendor_ref and created_at < now() - @ago::interval
for no key update;

-- name: DetachDevice :exec
-- No vendor uses references of this form.
update devices set vendor_ref = 'detached:' || device_id::text, due_at = now(), wake_seq = wake_seq + 1 where device_id = @device_id;

-- name: LockWorkspaceDevice :one
-- Devices out of scope are not locked, so the caller does not wait for them.
select * from devices where workspace_id = @workspace_id and device_id = @device_id
  and (sqlc.narg('scope')::uuid[] is null or connected_account_id = any(sqlc.narg('scope')::uuid[]) or device_id = any(sqlc.narg('scope')::uuid[]))
for no key update;

-- name: ListDevices :many
-- The subselect hides the limit, so that PostgreSQL reuses the plan.
select * from device_summaries
where workspace_id = @workspace_id and removed_at is null and is_managed
  and (created_at, device_id) > (@after_at::timestamptz, @after_id::uuid)
order by created_at, device_id
limit (select @max_rows::integer);

-- name: FindDevices :many
-- ListDevices with conditions. Planned for each call, which costs more than a list without conditions.
select * from devices d
where d.workspace_id = @workspace_id and removed_at is null and is_managed = @is_managed
  and (d.created_at, d.device_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('device_ids')::uuid[] is null or d.device_id = any(sqlc.narg('device_ids')::uuid[]))
  and (sqlc.narg('account_ids')::uuid[] is null or d.connected_account_id = any(sqlc.narg('account_ids')::uuid[]))
  and (sqlc.narg('scope')::uuid[] is null or d.connected_account_id = any(sqlc.narg('scope')::uuid[]) or d.device_id = any(sqlc.narg('scope')::uuid[]))
  and (sqlc.narg('created_before')::timestamptz is null or d.created_at < sqlc.narg('created_before')::timestamptz)
  and (sqlc.narg('device_types')::text[] is null or device_type = any(sqlc.narg('device_types')::text[]))
  and (sqlc.narg('kind')::text is null or case sqlc.narg('kind')::text when 'thermostat' then capabilities ? 'thermostat'
    when 'noise_detection' then capabilities ? 'noise_sensor' else not capabilities ?| array['thermostat', 'noise_sensor'] end)
  and (sqlc.narg('manufacturer')::text is null or replace(lower(manufacturer), ' ', '_') = lower(sqlc.narg('manufacturer')::text))
  and (sqlc.narg('include_if')::text[] is null or flags @> sqlc.narg('include_if')::text[])
  and (sqlc.narg('exclude_if')::text[] is null or not flags && sqlc.narg('exclude_if')::text[])
  and (sqlc.narg('metadata')::jsonb is null or d.custom_metadata @> sqlc.narg('metadata')::jsonb)
  and (sqlc.narg('without_metadata')::text[] is null or not d.custom_metadata ?| sqlc.narg('without_metadata')::text[])
  and (sqlc.narg('pattern')::text is null or coalesce(nickname, name) ~ sqlc.narg('pattern')::text)
  and (sqlc.narg('customer_key')::text is null or exists (select 1 from connected_accounts a
    where a.connected_account_id = d.connected_account_id and a.customer_key = sqlc.narg('customer_key')::text))
  and (sqlc.narg('connect_webview_id')::uuid is null or d.connected_account_id = (select w.connected_account_id from connect_webviews w
    where w.workspace_id = @workspace_id and w.connect_webview_id = sqlc.narg('connect_webview_id')::uuid))
order by d.created_at, d.device_id
limit @max_rows::integer;

-- name: DescribeDevice :exec
update devices set custom_metadata = @custom_metadata, nickname = @nickname where device_id = @device_id;

-- name: SetAccountErrorOfDevices :exec
-- The account is locked. Devices are locked in the usual order.
with mine as (
  select o.device_id from devices o
  where o.connected_account_id = @connected_account_id and o.account_error is distinct from sqlc.narg('account_error')::jsonb
  order by o.device_id for no key update)
update devices d set account_error = sqlc.narg('account_error')::jsonb from mine where d.device_id = mine.device_id;

-- name: ReportCodeLengths :exec
update devices set reported_code_lengths = @reported_code_lengths where device_id = @device_id;

-- name: SetBackupPool :exec
update devices set backup_pool = @backup_pool where device_id = @device_id;

-- name: SetDeviceManaged :exec
update devices set is_managed = @is_managed, read_needed = true, wake_seq = wake_seq + 1, due_at = now() where device_id = @device_id;

-- name: ForgetDevice :exec
-- A device that the vendor lists with the same reference later is a new device.
update devices set vendor_ref = 'deleted:' || device_id::text, removed_at = now(), online = false, announced_online = false, due_at = now(), wake_seq = wake_seq + 1
where device_id = @device_id;

-- name: ListDevicesOfAccount :many
-- Devices are always locked in this order.
select * from devices where connected_account_id = @connected_account_id order by device_id for no key update;

-- name: LockDevicesOfAccount :many
-- ListDevicesOfAccount for callers that update all devices.
select device_id, (removed_at is not null)::boolean as gone from devices where connected_account_id = @connected_account_id order by device_id for no key update;

-- name: InsertDevice :exec
insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model,
  serial_number, name, online, locked, battery_level, capabilities, flags, is_managed, announced_online, announced_locked, announced_battery, online_changed_at,
  auto_lock_enabled, auto_lock_delay_seconds, hub_disconnected, subscription_missing_at, door_open, keypad_battery, created_at)
values (@device_id, @workspace_id, @connected_account_id, @vendor_ref, @device_type, @provider, @manufacturer, @model,
  @serial_number, @name, @online, @locked, @battery_level, @capabilities, @flags, @is_managed, @online, @locked, @announced_battery, @seen_at,
  @auto_lock_enabled, @auto_lock_delay_seconds, @hub_disconnected, @subscription_missing_at, @door_open, @keypad_battery, clock_timestamp());

-- name: UpdateDevice :exec
update devices set device_type = @device_type, provider = @provider, manufacturer = @manufacturer, model = @model,
  serial_number = @serial_number, name = @name, online = @online, locked = @locked, battery_level = @battery_level,
  capabilities = @capabilities, flags = @flags, removed_at = null,
  online_changed_at = @online_changed_at, locked_changed_at = @locked_changed_at, auto_lock_enabled = @auto_lock_enabled,
  auto_lock_delay_seconds = @auto_lock_delay_seconds, hub_disconnected = @hub_disconnected, subscription_missing_at = @subscription_missing_at,
  door_open = @door_open, keypad_battery = @keypad_battery
where device_id = @device_id;

-- name: SetDeviceAutoLock :exec
update devices set auto_lock_enabled = @auto_lock_enabled, auto_lock_delay_seconds = @auto_lock_delay_seconds where device_id = @device_id;

-- name: ReportTimeZone :exec
update devices set reported_time_zone = @reported_time_zone where device_id = @device_id;

-- name: SetDeviceClimate :exec
update devices set climate = @climate where device_id = @device_id;

-- name: SetDeviceNoise :exec
update devices set noise = @noise where device_id = @device_id;

-- name: SetDeviceLocked :exec
update devices set locked = @locked, locked_changed_at = @locked_changed_at where device_id = @device_id;

-- name: SetDeviceAnnounced :exec
update devices set announced_online = @announced_online, announced_locked = @announced_locked, announced_battery = @announced_battery, recent_disconnects = @recent_disconnects, flaky_since = @flaky_since, operated_at = @operated_at
where device_id = @device_id;

-- name: SeeLockOperation :execrows
-- No row is affected if the operation was seen within that time.
insert into lock_operations (device_id, operation) values (@device_id, @operation)
on conflict (device_id, operation) do update set seen_at = now() where lock_operations.seen_at < now() - @within::interval;

-- name: ForgetLockOperations :exec
delete from lock_operations where device_id = @device_id and seen_at < now() - @older_than::interval;

-- name: SetDeviceOnline :exec
update devices set online = @online, online_changed_at = @online_changed_at where device_id = @device_id;

-- name: RemoveDevice :exec
update devices set removed_at = now(), online = false, announced_online = false, recent_disconnects = '{}', flaky_since = null, due_at = now(), wake_seq = wake_seq + 1
where device_id = @device_id;

-- name: DetachDevices :many
-- RemoveDevice for devices that are still listed, and DetachDevice, for many devices.
update devices set removed_at = coalesce(removed_at, now()), online = false, announced_online = false, recent_disconnects = '{}', flaky_since = null,
  vendor_ref = 'detached:' || device_id::text, due_at = now(), wake_seq = wake_seq + 1
where device_id = any(@device_ids::uuid[])
returning device_id, custom_metadata;

-- name: WakeDevice :exec
update devices set wake_seq = wake_seq + 1, due_at = now(), read_needed = read_needed or @read_needed::boolean
where device_id = @device_id;

-- name: WakeDevicesByRef :many
-- WakeToRead for managed devices of an account. Devices are locked in the usual order.
with mine as (
  select o.device_id from devices o where o.connected_account_id = @connected_account_id and o.vendor_ref = any(@vendor_refs::text[])
    and o.removed_at is null and o.is_managed
  order by o.device_id for no key update)
update devices d set wake_seq = wake_seq + 1, due_at = now(), read_needed = true from mine where d.device_id = mine.device_id
returning d.device_id;

-- name: WakeToRead :exec
update devices set wake_seq = wake_seq + 1, due_at = now(), read_needed = true where device_id = any(@device_ids::uuid[]);

-- name: AdvanceDeviceDue :exec
-- An earlier due time stays. A check in progress is repeated, because it does not know what is expected.
update devices set wake_seq = wake_seq + 1, due_at = least(due_at, now() + @after::interval) where device_id = @device_id;

-- name: ScheduleDevice :exec
-- The device is due immediately if it was woken while it was checked.
update devices set due_at = case when wake_seq <> @wake_seq then now() when @never::boolean then null else now() + @after::interval end
where device_id = @device_id;

-- name: SetDeviceRead :exec
-- A change announced since the read began requires another read.
update devices set last_good_read_at = now(), failures = 0, reread_at = @reread_at, empty_since = @empty_since, read_needed = (wake_seq <> @wake_seq and read_needed)
where device_id = @device_id;

-- name: SetDeviceFailed :one
-- A failed read ends the grace period of an empty list; a failed write does not.
update devices set failures = failures + 1, read_needed = true, empty_since = case when not @unread::boolean then empty_since end
where device_id = @device_id returning failures;

-- name: SetDeviceAnswered :exec
-- The vendor answered for the device, which ends a series of failures.
update devices set failures = 0 where device_id = @device_id and failures > 0;

-- name: DeviceDue :one
-- The transaction may be older than a wake-up that the query sees.
select coalesce(due_at <= clock_timestamp(), false)::boolean as due from devices where device_id = @device_id;

-- name: DeviceOwners :many
select d.device_id, d.connected_account_id, d.workspace_id, coalesce(w.created_by, '00000000-0000-0000-0000-000000000000')::uuid as created_by
from devices d join workspaces w using (workspace_id) where d.device_id = any(@device_ids::uuid[]);

-- name: DueDevices :many
select device_id from devices d where due_at <= now()
and connected_account_id <> all(@exclude_accounts::uuid[]) and workspace_id <> all(@exclude_workspaces::uuid[])
and workspace_id not in (select w.workspace_id from workspaces w where w.created_by = any(@exclude_creators::uuid[]))
and not exists (select 1 from leases l where l.key = 'device:' || d.device_id::text and l.held_until > now())
order by due_at limit @max_rows::integer;
