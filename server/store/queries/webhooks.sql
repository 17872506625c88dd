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
