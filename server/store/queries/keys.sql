-- name: GetServerKey :one
select sealed from server_keys where name = @name;

-- name: InsertServerKey :exec
insert into server_keys (name, sealed) values (@name, @sealed) on conflict do nothing;

-- name: Ping :one
select now()::timestamptz as now;
