-- name: InsertPendingLogin :execrows
insert into pending_logins (pending_login_id, connect_webview_id, provider, sealed, state_hash, expires_at)
select @pending_login_id, w.connect_webview_id, @provider, @sealed, sqlc.narg('state_hash')::bytea, now() + @ttl::interval
from connect_webviews w where w.connect_webview_id = @connect_webview_id and w.status <> 'authorized';

-- name: GetPendingLogin :one
select * from pending_logins
where pending_login_id = @pending_login_id and connect_webview_id = @connect_webview_id and expires_at > now();

-- name: ReplacePendingLogin :exec
update pending_logins set sealed = @sealed where pending_login_id = @pending_login_id;

-- name: UseLoginState :one
-- Of concurrent calls with one state, one returns the row.
update pending_logins set returned_at = now()
where state_hash = @state_hash::bytea and returned_at is null and expires_at > now()
returning *;

-- name: GetLoginOfState :one
select * from pending_logins where state_hash = @state_hash::bytea;

-- name: DropPendingLogin :exec
delete from pending_logins where pending_login_id = @pending_login_id and connect_webview_id = @connect_webview_id;

-- name: DropPendingLogins :exec
-- Deletes the pending logins of a webview.
delete from pending_logins where connect_webview_id = @connect_webview_id;

-- name: DropExpiredLogins :exec
-- Skips those that a login holds.
delete from pending_logins where pending_login_id in (
  select p.pending_login_id from pending_logins p where p.expires_at <= now() limit @max_rows::integer for update skip locked
);
