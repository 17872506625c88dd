-- +goose Up

set local lock_timeout = '200ms';
-- The credential that has made it, also when that is gone; null: the server's own. What is done for all workspaces that one has made
-- leaves room for those of others.
alter table workspaces add column made_by uuid;
create index workspaces_by_maker on workspaces (made_by) where made_by is not null;
-- A credential enters those that there were when it was issued, and those that it has made.
update workspaces w set made_by = m.credential_id from (
  select distinct on (x.workspace_id) x.workspace_id, c.credential_id
  from credential_workspaces x join credentials c using (credential_id) join workspaces o on o.workspace_id = x.workspace_id
  where c.kind in ('pat', 'console_session') and c.created_at < o.created_at
  order by x.workspace_id, c.created_at
) m where m.workspace_id = w.workspace_id;

-- +goose Down
-- What waits at webhooks of suspended workspaces is sent: whoever ends the suspension does not wake them.
update webhooks w set due_at = now() where due_at is null and disabled_at is null
and exists (select from deliveries d where d.webhook_id = w.webhook_id and d.state = 'pending');
alter table workspaces drop column made_by;
