-- +goose NO TRANSACTION
-- +goose Up

-- They are counted, up to what there may be, when one more is asked for.
drop index concurrently if exists client_sessions_unclaimed;
create index concurrently client_sessions_unclaimed on client_sessions (workspace_id, expires_at) where is_unclaimed and revoked_at is null;

-- +goose Down
drop index concurrently client_sessions_unclaimed;
