-- +goose Up

-- The outbox of a workspace is taken from for one account after the other. Where there are many events it has been made before, for
-- each partition while rows are written (makeBeside): here the parts are only joined. It serves the version before, too.
set local lock_timeout = '200ms';
create index events_outbox_of_accounts on events (workspace_id, coalesce(connected_account_id, '00000000-0000-0000-0000-000000000000'), created_at) where fanned_out_at is null;
drop index events_outbox;

-- +goose Down
create index events_outbox on events (workspace_id, created_at) where fanned_out_at is null;
drop index events_outbox_of_accounts;
