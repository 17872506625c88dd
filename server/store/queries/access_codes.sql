-- name: InsertAccessCode :one
insert into access_codes (access_code_id, workspace_id, device_id, is_managed, name, pin_sealed, pin_mac, starts_at, ends_at, status,
  external_modification_allowed, prefer_native_scheduling, vendor_ref, desired_at, common_code_key,
  uses_backup_pool, is_backup, in_pool, offline_kind, created_at)
values (@access_code_id, @workspace_id, @device_id, @is_managed, @name, @pin_sealed, @pin_mac, @starts_at, @ends_at, @status,
  @external_modification_allowed, @prefer_native_scheduling, @vendor_ref, @desired_at, @common_code_key,
  @uses_backup_pool, @is_backup, @in_pool, @offline_kind, clock_timestamp())
returning *;

-- name: GetAccessCode :one
select sqlc.embed(c), sqlc.embed(d) from access_codes c join code_devices d using (device_id)
where c.workspace_id = @workspace_id and c.access_code_id = @access_code_id and c.is_managed = @is_managed and not c.in_pool;

-- name: GetAccessCodeByPIN :one
-- Codes with one PIN take turns: the answer is the one of now, else the next one, else the last one.
select sqlc.embed(c), sqlc.embed(d) from access_codes c join code_devices d using (device_id)
where c.workspace_id = @workspace_id and c.device_id = @device_id and c.pin_mac = any(@pin_macs::bytea[]) and c.is_managed = @is_managed and not c.in_pool
order by c.removing_since is not null,
  case when c.starts_at > @now::timestamptz then 1 when c.ends_at <= @now::timestamptz then 2 else 0 end,
  case when c.starts_at > @now::timestamptz then c.starts_at end,
  c.ends_at desc, c.created_at
limit 1;

-- name: FindAccessCode :one
select * from access_codes where workspace_id = @workspace_id and access_code_id = @access_code_id and not in_pool;

-- name: ListAccessCodes :many
-- Planned for each call: the number of identifiers decides between the primary key and the workspace index.
select sqlc.embed(c), sqlc.embed(d) from access_codes c join code_devices d using (device_id)
where c.workspace_id = @workspace_id and c.is_managed and not c.in_pool and (c.created_at, c.access_code_id) > (@after_at::timestamptz, @after_id::uuid)
  and c.access_code_id = any(@access_code_ids::uuid[])
  and (sqlc.narg('scope')::uuid[] is null or d.connected_account_id = any(sqlc.narg('scope')::uuid[]) or d.device_id = any(sqlc.narg('scope')::uuid[]))
  and (sqlc.narg('pattern')::text is null or c.name ~ sqlc.narg('pattern')::text)
order by c.created_at, c.access_code_id
limit @max_rows::integer;

-- name: ListAccessCodesOfAccounts :many
-- Planned for each call: the number of codes in the accounts decides between a sort and the workspace index.
select sqlc.embed(c), sqlc.embed(d) from access_codes c join code_devices d using (device_id)
where c.workspace_id = @workspace_id and c.is_managed and not c.in_pool and (c.created_at, c.access_code_id) > (@after_at::timestamptz, @after_id::uuid)
  and d.connected_account_id = any(@account_ids::uuid[])
  and (sqlc.narg('access_code_ids')::uuid[] is null or c.access_code_id = any(sqlc.narg('access_code_ids')::uuid[]))
  and (sqlc.narg('pattern')::text is null or c.name ~ sqlc.narg('pattern')::text)
order by c.created_at, c.access_code_id
limit @max_rows::integer;

-- name: ListAccessCodesOfDevice :many
select sqlc.embed(c), sqlc.embed(d) from access_codes c join code_devices d using (device_id)
where c.device_id = @device_id and c.workspace_id = @workspace_id and c.is_managed = @is_managed and not c.in_pool
  and (c.created_at, c.access_code_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('access_code_ids')::uuid[] is null or c.access_code_id = any(sqlc.narg('access_code_ids')::uuid[]))
  and (sqlc.narg('pattern')::text is null or c.name ~ sqlc.narg('pattern')::text)
order by c.created_at, c.access_code_id
limit @max_rows::integer;

-- name: ListConflictingCodes :many
-- Codes that occupy the PINs of other codes, and are reported with them.
select access_code_id, is_managed from access_codes
where workspace_id = @workspace_id and access_code_id = any(@access_code_ids::uuid[]) and not in_pool;

-- name: AllCodesOfDevice :many
select * from access_codes where device_id = @device_id order by created_at, access_code_id;

-- name: ListOccupiedPINs :many
-- What the codes of a device mean for a new one.
select access_code_id, is_managed, in_pool, (removing_since is not null)::boolean as removing, pin_mac,
  starts_at, ends_at, prefer_native_scheduling, is_backup, offline_kind, (vendor_ref is not null or write_gen > 0)::boolean as on_device
from access_codes where device_id = @device_id order by created_at, access_code_id;

-- name: UpdateAccessCode :exec
-- The caller holds the lock of the device, so the whole row is written.
update access_codes set is_managed = @is_managed, name = @name, vendor_name = @vendor_name, pin_sealed = @pin_sealed, pin_mac = @pin_mac, starts_at = @starts_at,
  ends_at = @ends_at, status = @status, external_modification_allowed = @external_modification_allowed, vendor_ref = @vendor_ref,
  desired_gen = @desired_gen, applied_gen = @applied_gen, applied_at = @applied_at, blocked_gen = @blocked_gen, write_gen = @write_gen, write_ref = @write_ref, write_pin_mac = @write_pin_mac,
  write_at = @write_at, write_accepted = @write_accepted, attempts = @attempts, next_attempt_at = @next_attempt_at,
  removing_since = @removing_since, error_code = @error_code, error_message = @error_message, error_at = @error_at,
  error_code_id = @error_code_id, warning_code = @warning_code, warning_message = @warning_message, warning_at = @warning_at,
  drift_count = @drift_count, drifted_at = @drifted_at, external_change = @external_change, common_code_key = @common_code_key,
  desired_at = @desired_at, applied_sealed = @applied_sealed, is_backup = @is_backup, in_pool = @in_pool, pulled_backup_code_id = @pulled_backup_code_id
where access_code_id = @access_code_id;

-- name: CodesOfKey :many
select * from access_codes
where workspace_id = @workspace_id and common_code_key = @common_code_key::text and is_managed and removing_since is null
order by device_id;

-- name: LockCommonCode :exec
-- Serializes transactions that add a code to a common code key or change the codes of that key.
select pg_advisory_xact_lock(hashtextextended(@workspace_id::text || '/' || @common_code_key::text, 0));

-- name: ClearVendorRefs :exec
-- References are unique, so a code that takes one over is written after the code that loses it.
update access_codes set vendor_ref = null where access_code_id = any(@access_code_ids::uuid[]);

-- name: DeleteAccessCode :exec
delete from access_codes where access_code_id = @access_code_id;

-- name: DeleteAccessCodes :exec
delete from access_codes where access_code_id = any(@access_code_ids::uuid[]);

-- name: GetAccessCodeByRef :one
select sqlc.embed(c), sqlc.embed(d) from access_codes c join code_devices d using (device_id)
where c.device_id = @device_id and c.vendor_ref = @vendor_ref;

-- name: ListOrphanedPoolCodes :many
-- Pool codes of deleted devices and disconnected accounts, which may still be on the device.
select c.* from access_codes c join devices d using (device_id) join connected_accounts a using (connected_account_id)
where c.workspace_id = @workspace_id and c.in_pool and (c.access_code_id = any(@keys::uuid[]) or c.vendor_ref = any(@vendor_refs::text[]))
  and d.removed_at is not null and (d.vendor_ref = 'deleted:' || d.device_id::text or a.deleted_at is not null);

-- name: InsertAccessCodeTombstone :exec
insert into access_code_tombstones (access_code_id, device_id, deleted_at) values (@access_code_id, @device_id, @deleted_at);

-- name: DeleteOldAccessCodeTombstones :exec
delete from access_code_tombstones where device_id = @device_id and deleted_at < @before;

-- name: ListAccessCodeTombstones :many
select access_code_id from access_code_tombstones where device_id = @device_id and access_code_id = any(@ids::uuid[]) and deleted_at >= @since;
