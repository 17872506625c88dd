-- name: InsertNoiseThreshold :exec
insert into noise_thresholds (noise_threshold_id, workspace_id, device_id, is_managed, is_deleting, vendor_ref, desired, observed, tries, next_at, await_until)
values (@noise_threshold_id, @workspace_id, @device_id, @is_managed, @is_deleting, @vendor_ref, @desired, @observed, @tries, @next_at, @await_until);

-- name: UpdateNoiseThreshold :exec
update noise_thresholds set is_managed = @is_managed, is_deleting = @is_deleting, vendor_ref = @vendor_ref, desired = @desired,
  observed = @observed, tries = @tries, next_at = @next_at, await_until = @await_until
where noise_threshold_id = @noise_threshold_id;

-- name: DeleteNoiseThresholds :exec
delete from noise_thresholds where noise_threshold_id = any(@ids::uuid[]);

-- name: NoiseThresholdsOfDevice :many
-- The caller has locked the device.
select * from noise_thresholds where device_id = @device_id order by created_at, noise_threshold_id;

-- name: ListNoiseThresholds :many
-- Thresholds of managed devices.
select t.* from noise_thresholds t join devices d using (device_id)
where t.workspace_id = @workspace_id and d.removed_at is null and d.is_managed
  and (sqlc.narg('scope')::uuid[] is null or d.connected_account_id = any(sqlc.narg('scope')::uuid[]))
  and (sqlc.narg('device_id')::uuid is null or t.device_id = sqlc.narg('device_id')::uuid)
  and (sqlc.narg('ids')::uuid[] is null or t.noise_threshold_id = any(sqlc.narg('ids')::uuid[]))
order by t.created_at, t.noise_threshold_id;
