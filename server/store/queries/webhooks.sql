-- name: InsertWebhook :exec
insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed)
values (@webhook_id, @workspace_id, @url, @event_types, @secret_sealed);

-- name: CountWebhooks :one
-- Webhooks of a workspace, up to a maximum.
select count(*)::integer from (select 1 from webhooks where workspace_id = @workspace_id limit @max_rows::integer) w;

-- name: GetWebhook :one
select * from webhooks where workspace_id = @workspace_id and webhook_id = @webhook_id;

-- name: ListWebhooks :many
select * from webhooks where workspace_id = @workspace_id order by created_at, webhook_id;

-- name: UpdateWebhook :execrows
update webhooks set event_types = @event_types where workspace_id = @workspace_id and webhook_id = @webhook_id;

-- name: DeleteWebhook :execrows
-- Only with at most so many deliveries, because the statement deletes them too.
delete from webhooks w where w.workspace_id = @workspace_id and w.webhook_id = @webhook_id
and not exists (select 1 from deliveries d where d.webhook_id = @webhook_id order by d.event_id offset @max_deliveries::integer limit 1);

-- name: ListDeliveryIDs :many
select d.event_id from deliveries d where d.webhook_id = @webhook_id
and exists (select 1 from webhooks w where w.workspace_id = @workspace_id and w.webhook_id = @webhook_id)
order by d.event_id limit @max_rows::integer;

-- name: DropAttemptsOf :exec
delete from delivery_attempts where webhook_id = @webhook_id and event_id = any(@event_ids::uuid[]);

-- name: DropDeliveriesOf :exec
delete from deliveries where webhook_id = @webhook_id and event_id = any(@event_ids::uuid[]);

-- name: RotateWebhookSecret :one
-- The webhook is locked. Without an overlap the old secret ends immediately.
update webhooks set secret_sealed = @secret_sealed, old_secret_sealed = nullif(@old_secret_sealed, ''::bytea),
  old_secret_until = now() + nullif(@overlap::interval, interval '0')
where webhook_id = @webhook_id
returning old_secret_until;

-- name: DropOldSecrets :execrows
update webhooks set old_secret_sealed = null, old_secret_until = null where workspace_id = @workspace_id and old_secret_until <= @at::timestamptz;
