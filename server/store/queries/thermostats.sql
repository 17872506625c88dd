-- name: InsertThermostatSchedule :exec
insert into thermostat_schedules (thermostat_schedule_id, workspace_id, device_id, name, climate_preset_key, starts_at, ends_at,
  override_allowed, max_override_minutes, created_at)
values (@thermostat_schedule_id, @workspace_id, @device_id, @name, @climate_preset_key, @starts_at, @ends_at,
  @override_allowed, @max_override_minutes, @created_at);

-- name: GetThermostatSchedule :one
-- Schedules of unmanaged and removed devices are not shown.
select s.* from thermostat_schedules s join devices d using (device_id)
where s.workspace_id = @workspace_id and s.thermostat_schedule_id = @thermostat_schedule_id and d.removed_at is null and d.is_managed
  and (sqlc.narg('scope')::uuid[] is null or d.connected_account_id = any(sqlc.narg('scope')::uuid[]));

-- name: ListThermostatSchedules :many
select * from thermostat_schedules where workspace_id = @workspace_id and device_id = @device_id order by starts_at;

-- name: UpdateThermostatSchedule :exec
update thermostat_schedules set name = @name, climate_preset_key = @climate_preset_key, starts_at = @starts_at, ends_at = @ends_at,
  override_allowed = @override_allowed, max_override_minutes = @max_override_minutes, errors = @errors
where thermostat_schedule_id = @thermostat_schedule_id;

-- name: DeleteThermostatSchedule :exec
delete from thermostat_schedules where thermostat_schedule_id = @thermostat_schedule_id;

-- name: DeleteEndedThermostatSchedules :exec
-- Those that ended before a time, and the oldest ones beyond a number.
delete from thermostat_schedules s where s.device_id = @device_id and s.ends_at <= @now::timestamptz and (s.ends_at < @before::timestamptz
  or s.thermostat_schedule_id in (select o.thermostat_schedule_id from thermostat_schedules o
    where o.device_id = @device_id and o.ends_at <= @now::timestamptz order by o.ends_at desc offset @max_rows::integer));

-- name: InsertThermostatDailyProgram :exec
insert into thermostat_daily_programs (thermostat_daily_program_id, workspace_id, device_id)
values (@thermostat_daily_program_id, @workspace_id, @device_id);

-- name: GetDeviceOfDailyProgram :one
select device_id from thermostat_daily_programs
where workspace_id = @workspace_id and thermostat_daily_program_id = @thermostat_daily_program_id;

-- name: DeleteThermostatDailyProgram :exec
delete from thermostat_daily_programs where thermostat_daily_program_id = @thermostat_daily_program_id;
