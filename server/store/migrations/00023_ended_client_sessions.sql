-- +goose Up

-- Client sessions by when they have ended, or will have.
create index client_sessions_by_end on client_sessions (workspace_id, (least(expires_at, revoked_at)));

-- +goose Down
drop index client_sessions_by_end;
