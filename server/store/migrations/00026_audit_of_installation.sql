-- Administrators of every workspace see entries of the whole installation among those of a workspace.
-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists audit_log_of_installation;
create index concurrently audit_log_of_installation on audit_log (occurred_at, audit_id) where workspace_id is null;
