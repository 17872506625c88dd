-- +goose Up

-- The outbox of a workspace is taken from for one account after the other. Where there are many events it has been made before, for
-- each partition while rows are written (makePartitionIndexes): here the parts are only joined. It serves the version before, too, which sorts
-- what it finds for as long as it runs.
set local lock_timeout = '200ms';
create index events_outbox_of_accounts on events (workspace_id, coalesce(connected_account_id, '00000000-0000-0000-0000-000000000000'), created_at) where fanned_out_at is null;
-- +goose StatementBegin
do $$
begin
  if exists (select from pg_index where indexrelid = 'events_outbox_of_accounts'::regclass and not indisvalid) then
    raise exception 'an index of a partition is half made' using errcode = 'lock_not_available'; -- it is made anew, and this is tried again
  end if;
end $$;
-- +goose StatementEnd
drop index events_outbox;

-- +goose Down
create index events_outbox on events (workspace_id, created_at) where fanned_out_at is null;
drop index events_outbox_of_accounts;
