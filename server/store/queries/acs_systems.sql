-- name: InsertAcsSystem :one
insert into acs_systems (acs_system_id, workspace_id, connected_account_id, vendor_ref, name, time_zone)
values (@acs_system_id, @workspace_id, @connected_account_id, @vendor_ref, @name, @time_zone)
returning *;

-- name: UpdateAcsSystem :exec
-- A system that is listed again is due immediately.
update acs_systems set name = @name, time_zone = @time_zone, removed_at = null, unlisted_at = null, wake_seq = wake_seq + 1, due_at = now()
where acs_system_id = @acs_system_id;

-- name: RemoveAcsSystem :exec
update acs_systems set removed_at = now(), due_at = null, error_message = null, error_at = null,
  write_refused = false, unlisted_at = null, empty_since = null where acs_system_id = @acs_system_id;

-- name: ListAcsSystemsOfAccount :many
select * from acs_systems where connected_account_id = @connected_account_id order by created_at, acs_system_id for no key update;

-- name: LockAcsSystem :one
-- What is decided about the users of a system and what is found on it happen one after another.
select * from acs_systems where acs_system_id = @acs_system_id for no key update;

-- name: LockWorkspaceAcsSystem :one
-- Systems of other workspaces are not locked, so the caller does not wait for them.
select * from acs_systems where workspace_id = @workspace_id and acs_system_id = @acs_system_id and removed_at is null for no key update;

-- name: GetAcsSystem :one
select sqlc.embed(s), a.error_code as account_error_code, a.error_message as account_error_message, a.error_at as account_error_at,
  (select count(*) from acs_users u where u.acs_system_id = s.acs_system_id)::integer as users,
  (select count(*) from acs_access_groups g where g.acs_system_id = s.acs_system_id)::integer as groups
from acs_systems s join connected_accounts a using (connected_account_id)
where s.workspace_id = @workspace_id and s.acs_system_id = @acs_system_id and s.removed_at is null;

-- name: ListAcsSystems :many
-- Planned for each call, because the conditions are optional.
select sqlc.embed(s), a.error_code as account_error_code, a.error_message as account_error_message, a.error_at as account_error_at,
  (select count(*) from acs_users u where u.acs_system_id = s.acs_system_id)::integer as users,
  (select count(*) from acs_access_groups g where g.acs_system_id = s.acs_system_id)::integer as groups
from acs_systems s join connected_accounts a using (connected_account_id)
where s.workspace_id = @workspace_id and s.removed_at is null
  and (sqlc.narg('connected_account_id')::uuid is null or s.connected_account_id = sqlc.narg('connected_account_id')::uuid)
  and (sqlc.narg('customer_key')::text is null or a.customer_key = sqlc.narg('customer_key')::text)
  and (sqlc.narg('user_identity_id')::uuid is null or exists (select 1 from acs_users u where u.acs_system_id = s.acs_system_id and u.is_managed
    and u.user_identity_id = sqlc.narg('user_identity_id')::uuid))
  and (sqlc.narg('scope')::uuid[] is null or s.connected_account_id = any(sqlc.narg('scope')::uuid[]))
  and (sqlc.narg('pattern')::text is null or s.name ~ sqlc.narg('pattern')::text)
order by s.created_at, s.acs_system_id;

-- name: SetAcsSystemUnlisted :exec
update acs_systems set unlisted_at = @unlisted_at where acs_system_id = @acs_system_id;

-- name: SetAcsSystemEmptySince :exec
update acs_systems set empty_since = @empty_since where acs_system_id = @acs_system_id;

-- name: ClearAcsSystemGracePeriods :exec
update acs_systems set empty_since = null, unlisted_at = null where acs_system_id = @acs_system_id;

-- name: SetAcsSystemError :exec
update acs_systems set error_message = @error_message, write_refused = @write_refused, error_at = case when sqlc.narg('error_message')::text is not null then now() end
where acs_system_id = @acs_system_id;

-- name: WakeAcsSystem :exec
update acs_systems set wake_seq = wake_seq + 1, due_at = now() where acs_system_id = @acs_system_id and removed_at is null;

-- name: ScheduleAcsSystem :exec
-- The system is due immediately if it was woken while it was checked.
update acs_systems set due_at = case when wake_seq = @wake_seq then now() + @after::interval else now() end
where acs_system_id = @acs_system_id and removed_at is null;

-- name: ReadAcsSystem :one
-- For workers, which act for all workspaces.
select * from acs_systems where acs_system_id = @acs_system_id;

-- name: AcsSystemDue :one
select coalesce(due_at <= now(), false)::boolean as due from acs_systems where acs_system_id = @acs_system_id;

-- name: AcsSystemOwners :many
select s.acs_system_id, s.connected_account_id, s.workspace_id, coalesce(w.created_by, '00000000-0000-0000-0000-000000000000')::uuid as created_by
from acs_systems s join workspaces w using (workspace_id) where s.acs_system_id = any(@acs_system_ids::uuid[]);

-- name: DueAcsSystems :many
select acs_system_id from acs_systems s where due_at <= now()
and connected_account_id <> all(@exclude_accounts::uuid[]) and workspace_id <> all(@exclude_workspaces::uuid[])
and workspace_id not in (select w.workspace_id from workspaces w where w.created_by = any(@exclude_creators::uuid[]))
and not exists (select 1 from leases l where l.key = 'acs_system:' || s.acs_system_id::text and l.held_until > now())
order by due_at limit @max_rows::integer;

-- name: PutAcsEntrance :one
-- Returns no row if the entrance exists with that name.
insert into acs_entrances as e (acs_entrance_id, workspace_id, acs_system_id, vendor_ref, name)
values (@acs_entrance_id, @workspace_id, @acs_system_id, @vendor_ref, @name)
on conflict (acs_system_id, vendor_ref) do update set name = excluded.name where e.name <> excluded.name
returning e.acs_entrance_id;

-- name: DeleteOtherAcsEntrances :many
delete from acs_entrances where acs_system_id = @acs_system_id and not exists (select from unnest(@refs::text[]) as r(ref) where r.ref = vendor_ref) returning acs_entrance_id;

-- name: GetAcsEntrance :one
select sqlc.embed(e), s.connected_account_id from acs_entrances e join acs_systems s using (acs_system_id)
where e.workspace_id = @workspace_id and e.acs_entrance_id = @acs_entrance_id;

-- name: FindAcsEntrances :many
-- Planned for each call, because the conditions are optional.
select sqlc.embed(e), s.connected_account_id from acs_entrances e join acs_systems s using (acs_system_id) join connected_accounts a using (connected_account_id)
where e.workspace_id = @workspace_id and (e.created_at, e.acs_entrance_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('acs_system_id')::uuid is null or e.acs_system_id = sqlc.narg('acs_system_id')::uuid)
  and (sqlc.narg('connected_account_id')::uuid is null or s.connected_account_id = sqlc.narg('connected_account_id')::uuid)
  and (sqlc.narg('customer_key')::text is null or a.customer_key = sqlc.narg('customer_key')::text)
  and (sqlc.narg('ids')::uuid[] is null or e.acs_entrance_id = any(sqlc.narg('ids')::uuid[]))
  and (sqlc.narg('scope')::uuid[] is null or s.connected_account_id = any(sqlc.narg('scope')::uuid[]))
  and (sqlc.narg('pattern')::text is null or e.name ~ sqlc.narg('pattern')::text)
order by e.created_at, e.acs_entrance_id
limit @max_rows::integer;

-- name: ListAcsEntrancesOfUser :many
-- The entrances that a set of groups of one system opens, and those that the user was granted.
select sqlc.embed(e), s.connected_account_id from acs_entrances e join acs_systems s using (acs_system_id)
where e.workspace_id = @workspace_id and e.acs_system_id = @acs_system_id
  and (e.vendor_ref = any(@entrance_refs::text[])
    or e.vendor_ref in (select unnest(g.entrance_refs) from acs_access_groups g where g.acs_system_id = @acs_system_id and g.vendor_ref = any(@group_refs::text[])))
order by e.created_at, e.acs_entrance_id;

-- name: ListAcsEntrancesOfIdentity :many
-- The entrances that the users of a person can pass, through groups or because they were granted.
select sqlc.embed(e), s.connected_account_id from acs_entrances e join acs_systems s using (acs_system_id)
where e.workspace_id = @workspace_id and s.removed_at is null
  and (sqlc.narg('scope')::uuid[] is null or s.connected_account_id = any(sqlc.narg('scope')::uuid[]))
  and exists (select 1 from acs_users u where u.user_identity_id = @user_identity_id::uuid and u.acs_system_id = e.acs_system_id and u.is_managed and u.deleting_at is null
    and (e.vendor_ref = any(u.entrance_refs) or exists (select 1 from acs_access_groups g
      where g.acs_system_id = u.acs_system_id and g.vendor_ref = any(u.group_refs) and e.vendor_ref = any(g.entrance_refs))))
order by e.created_at, e.acs_entrance_id;

-- name: RequestAcsGroupDeletion :exec
-- A request after a refusal is a new one.
insert into acs_group_deletions (acs_access_group_id) values (@acs_access_group_id)
on conflict (acs_access_group_id) do update set requested_at = now(), attempts = 0, next_attempt_at = null, is_refused = false, error_message = null
where acs_group_deletions.is_refused;

-- name: ListAcsGroupDeletions :many
-- The deletions that a system has not refused.
select g.acs_access_group_id, g.vendor_ref, d.attempts, d.next_attempt_at from acs_group_deletions d join acs_access_groups g using (acs_access_group_id)
where g.acs_system_id = @acs_system_id and not d.is_refused order by d.requested_at, g.acs_access_group_id;

-- name: AcsGroupDeletionSent :exec
-- Records a try. A message says why it failed.
update acs_group_deletions set attempts = attempts + 1, next_attempt_at = @next_attempt_at, is_refused = @is_refused, error_message = sqlc.narg('error_message')
where acs_access_group_id = @acs_access_group_id;

-- name: InsertAcsUnlock :exec
insert into acs_unlocks (action_attempt_id, acs_system_id, entrance_ref) values (@action_attempt_id, @acs_system_id, @entrance_ref);

-- name: CountAcsUnlocks :one
select count(*) from acs_unlocks where acs_system_id = @acs_system_id;

-- name: ListAcsUnlocks :many
-- The pending commands to the entrances of a system, oldest first.
select u.action_attempt_id, u.entrance_ref, a.started_at, a.deadline_at from acs_unlocks u join action_attempts a using (action_attempt_id)
where u.acs_system_id = @acs_system_id order by u.created_at, u.action_attempt_id;

-- name: DeleteAcsUnlock :exec
delete from acs_unlocks where action_attempt_id = @action_attempt_id;

-- name: PutAcsAccessGroup :exec
insert into acs_access_groups as g (acs_access_group_id, workspace_id, acs_system_id, vendor_ref, name, entrance_refs)
values (@acs_access_group_id, @workspace_id, @acs_system_id, @vendor_ref, @name, @entrance_refs)
on conflict (acs_system_id, vendor_ref) do update set name = excluded.name, entrance_refs = excluded.entrance_refs
where (g.name, g.entrance_refs) <> (excluded.name, excluded.entrance_refs);

-- name: DeleteOtherAcsAccessGroups :many
delete from acs_access_groups where acs_system_id = @acs_system_id and not exists (select from unnest(@refs::text[]) as r(ref) where r.ref = vendor_ref) returning acs_access_group_id;

-- name: GetAcsAccessGroup :one
select sqlc.embed(g), s.connected_account_id, d.requested_at as deletion_requested_at, d.is_refused as deletion_refused, d.error_message as deletion_error
from acs_access_groups g join acs_systems s using (acs_system_id) left join acs_group_deletions d using (acs_access_group_id)
where g.workspace_id = @workspace_id and g.acs_access_group_id = @acs_access_group_id;

-- name: FindAcsAccessGroups :many
select acs_access_group_id, acs_system_id, vendor_ref from acs_access_groups
where workspace_id = @workspace_id and acs_access_group_id = any(@acs_access_group_ids::uuid[]);

-- name: ListAcsAccessGroups :many
-- Planned for each call, because the conditions are optional.
select g.acs_access_group_id, g.workspace_id, g.acs_system_id, g.name, g.created_at, s.connected_account_id,
  d.requested_at as deletion_requested_at, d.is_refused as deletion_refused, d.error_message as deletion_error
from acs_access_groups g join acs_systems s using (acs_system_id) left join acs_group_deletions d using (acs_access_group_id)
where g.workspace_id = @workspace_id
  and (sqlc.narg('acs_system_id')::uuid is null or g.acs_system_id = sqlc.narg('acs_system_id')::uuid)
  and (sqlc.narg('acs_user_id')::uuid is null or (g.acs_system_id, g.vendor_ref) in (select u.acs_system_id, unnest(u.group_refs) from acs_users u
    where u.acs_user_id = sqlc.narg('acs_user_id')::uuid))
  and (sqlc.narg('user_identity_id')::uuid is null or (g.acs_system_id, g.vendor_ref) in (select u.acs_system_id, unnest(u.group_refs) from acs_users u
    where u.user_identity_id = sqlc.narg('user_identity_id')::uuid))
  and (sqlc.narg('pattern')::text is null or concat_ws(chr(10), g.name, g.acs_access_group_id::text) ~ sqlc.narg('pattern')::text)
  and (g.created_at, g.acs_access_group_id) > (@after_at::timestamptz, @after_id::uuid)
order by g.created_at, g.acs_access_group_id limit sqlc.narg('max_rows')::integer;

-- name: ListAcsGroupsOfSystems :many
select acs_access_group_id, acs_system_id, vendor_ref from acs_access_groups where acs_system_id = any(@systems::uuid[]);
