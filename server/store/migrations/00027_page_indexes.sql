-- The console lists workspaces, operators, and keys in pages.
-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists workspaces_pages;
create index concurrently workspaces_pages on workspaces (created_at, workspace_id);
drop index concurrently if exists operators_pages;
create index concurrently operators_pages on operators (created_at, operator_id);
drop index concurrently if exists credentials_pages;
create index concurrently credentials_pages on credentials (created_at, credential_id);
