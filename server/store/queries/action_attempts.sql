-- name: InsertActionAttempt :one
insert into action_attempts (action_attempt_id, workspace_id, device_id, access_code_id, action_type, desired_gen, options, status, deadline_at, created_at, finished_at)
values (@action_attempt_id, @workspace_id, @device_id, @access_code_id, @action_type, @desired_gen, @options, @status, now() + @timeout::interval, clock_timestamp(),
  case when @status::text <> 'pending' then now() end)
returning *;

-- name: InsertWorkspaceAttempt :one
-- An attempt on the workspace has no device.
insert into action_attempts (action_attempt_id, workspace_id, action_type, status, deadline_at, created_at)
values (@action_attempt_id, @workspace_id, @action_type, 'pending', now() + @timeout::interval, clock_timestamp())
returning *;

-- name: FinishWorkspaceAttempts :exec
update action_attempts set status = 'success', finished_at = now()
where workspace_id = @workspace_id and action_type = @action_type and device_id is null and status = 'pending';

-- name: FailLateWorkspaceAttempts :many
update action_attempts set status = 'error', error_type = @error_type, error_message = @error_message, finished_at = now()
where workspace_id = @workspace_id and device_id is null and action_type = @action_type and status = 'pending' and deadline_at <= now() returning action_attempt_id;

-- name: LateUnlocks :many
-- The pending commands to entrances whose deadline has passed.
select a.action_attempt_id, s.connected_account_id from action_attempts a left join acs_unlocks u using (action_attempt_id) left join acs_systems s using (acs_system_id)
where a.workspace_id = @workspace_id and a.device_id is null and a.action_type = 'UNLOCK_DOOR' and a.status = 'pending' and a.deadline_at <= now();

-- name: GetActionAttempt :one
select * from action_attempts a where a.workspace_id = @workspace_id and a.action_attempt_id = @action_attempt_id
  and (sqlc.narg('scope')::uuid[] is null or exists (select 1 from devices d
    where d.device_id = a.device_id and (d.connected_account_id = any(sqlc.narg('scope')::uuid[]) or d.device_id = any(sqlc.narg('scope')::uuid[]))));

-- name: ListActionAttempts :many
-- Planned for each call: the number of identifiers decides between the primary key and the workspace index.
select * from action_attempts where workspace_id = @workspace_id
  and (created_at, action_attempt_id) > (@after_at::timestamptz, @after_id::uuid)
  and action_attempt_id = any(@action_attempt_ids::uuid[])
  and (sqlc.narg('device_id')::uuid is null or device_id = sqlc.narg('device_id')::uuid)
order by created_at, action_attempt_id limit @max_rows::integer;

-- name: ListActionAttemptsOfDevice :many
select * from action_attempts where workspace_id = @workspace_id and device_id = @device_id::uuid
  and (created_at, action_attempt_id) > (@after_at::timestamptz, @after_id::uuid)
order by created_at, action_attempt_id limit @max_rows::integer;

-- name: PendingAttemptsOfDevice :many
select * from action_attempts where device_id = @device_id::uuid and status = 'pending' order by created_at, action_attempt_id;

-- name: CountCommands :one
-- Pending commands to the device itself, as opposed to its codes.
select count(*) from action_attempts where device_id = @device_id::uuid and status = 'pending' and action_type in ('LOCK_DOOR', 'UNLOCK_DOOR', 'CONFIGURE_AUTO_LOCK');

-- name: StartActionAttempt :exec
update action_attempts set started_at = @started_at where action_attempt_id = @action_attempt_id;

-- name: MarkAttemptReported :exec
update action_attempts set reported_at = now() where action_attempt_id = @action_attempt_id;

-- name: GetUnreportedAttempt :one
-- The last successful operation that the vendor has not reported yet.
select * from action_attempts where workspace_id = @workspace_id and device_id = @device_id::uuid and action_type = @action_type
  and status = 'success' and started_at is not null and reported_at is null and finished_at > now() - @within::interval
order by created_at limit 1;

-- name: FinishActionAttempt :execrows
update action_attempts set status = @status, error_type = @error_type, error_message = @error_message, finished_at = now()
where action_attempt_id = @action_attempt_id and status = 'pending';
