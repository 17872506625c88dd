-- +goose Up

alter table webhooks
  add column old_secret_sealed bytea, -- the secret before the last rotation, which signs too
  add column old_secret_until  timestamptz; -- until then
create index on webhooks (old_secret_until) where old_secret_until is not null;
create index on webhooks (disabled_at) where disabled_at is not null;

-- When what is kept for a time only is looked through next.
alter table workspaces add column retention_due_at timestamptz not null default now();
create index on workspaces (retention_due_at);

-- What is held has come to rest like what was given up: its time counts from then on.
update deliveries set finished_at = now() where state = 'held' and finished_at is null;
create index deliveries_unsent on deliveries (webhook_id, event_id) where state in ('failed', 'held');

-- +goose Down
drop index deliveries_unsent;
alter table workspaces drop column retention_due_at;
alter table webhooks drop column old_secret_sealed, drop column old_secret_until;
drop index webhooks_disabled_at_idx;
