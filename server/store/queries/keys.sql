-- name: ListServerKeys :many
select name, sealed, now()::timestamptz as now from server_keys order by name;

-- name: LockServerKeys :many
select name, sealed, now()::timestamptz as now from server_keys order by name for update;

-- name: ReplaceServerKey :exec
update server_keys set sealed = @sealed where name = @name;

-- name: GetOldestServerKey :one
select sealed from server_keys order by created_at, name limit 1;

-- name: InsertServerKey :exec
insert into server_keys (name, sealed) values (@name, @sealed) on conflict do nothing;

-- name: ListDataKeys :many
select * from data_keys order by created_at, key_id;

-- name: InsertDataKey :exec
insert into data_keys (key_id, wrapped, is_current) values (@key_id, @wrapped, true);

-- name: InsertFirstDataKey :exec
-- The first data key starts no rotation, even if the master key has sealed values.
insert into data_keys (key_id, wrapped, is_current, resealed_at)
select @key_id, @wrapped, true, now() where not exists (select from data_keys)
on conflict do nothing;

-- name: RetireDataKeys :exec
update data_keys set is_current = false, retired_at = now() where is_current;

-- name: RewrapDataKey :exec
update data_keys set wrapped = @wrapped where key_id = @key_id;

-- name: FinishDataKey :exec
update data_keys set resealed_at = now() where key_id = @key_id and is_current;

-- name: DropRetiredDataKeys :execrows
delete from data_keys where not is_current and retired_at < now() - @ago::interval;

-- name: LockRotation :one
select pg_try_advisory_xact_lock(hashtextextended('data_keys', 0)) as locked;
