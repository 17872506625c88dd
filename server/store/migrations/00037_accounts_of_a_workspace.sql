-- +goose Up

-- A sandbox's reset takes the accounts of one workspace, those that were deleted among them. The indexes that begin with a workspace have only some.
set local lock_timeout = '2s';
create index connected_accounts_of_workspace on connected_accounts (workspace_id, connected_account_id);

-- +goose Down
drop index connected_accounts_of_workspace;
