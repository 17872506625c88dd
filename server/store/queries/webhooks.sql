-- name: InsertWebhook :exec
insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed)
values (@webhook_id, @workspace_id, @url, @event_types, @secret_sealed);

-- name: GetWebhook :one
select * from webhooks where workspace_id = @workspace_id and webhook_id = @webhook_id;

-- name: ListWebhooks :many
select * from webhooks where workspace_id = @workspace_id order by created_at, webhook_id;

-- name: UpdateWebhook :execrows
update webhooks set event_types = @event_types where workspace_id = @workspace_id and webhook_id = @webhook_id;

-- name: DeleteWebhook :execrows
delete from webhooks where workspace_id = @workspace_id and webhook_id = @webhook_id;

-- name: RotateWebhookSecret :one
-- The webhook is locked. No overlap: the old secret ends at once.
update webhooks set secret_sealed = @secret_sealed, old_secret_sealed = nullif(@old_secret_sealed, ''::bytea),
  old_secret_until = now() + nullif(@overlap::interval, interval '0')
where webhook_id = @webhook_id
returning old_secret_until;

-- name: DropOldSecrets :execrows
update webhooks set old_secret_sealed = null, old_secret_until = null where workspace_id = @workspace_id and old_secret_until <= now();
