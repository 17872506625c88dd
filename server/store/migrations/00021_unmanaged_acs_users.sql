-- +goose Up

-- Managed and unmanaged users are listed apart.
create index on acs_users (workspace_id, created_at, acs_user_id) where not is_managed;

-- +goose Down
drop index acs_users_workspace_id_created_at_acs_user_id_idx1;
