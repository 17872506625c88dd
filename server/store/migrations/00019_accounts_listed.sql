-- +goose Up

-- Deleted accounts stay, and lists do not walk through them.
create index connected_accounts_listed on connected_accounts (workspace_id, created_at, connected_account_id) where deleted_at is null;
drop index connected_accounts_workspace_id_created_at_connected_accoun_idx;

-- +goose Down
create index on connected_accounts (workspace_id, created_at, connected_account_id);
drop index connected_accounts_listed;
