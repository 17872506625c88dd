-- +goose Up

-- What is made all the time does not refer to its workspace any more: each row took a lock on the workspace's own, which
-- all that is made there at once had to share, and wrote that down. Workspaces are never deleted; whose a row is comes from
-- a credential, or another row of the workspace, that was read for the same change.
-- +goose StatementBegin
do $$
declare
  c record;
begin
  -- Whoever waits for these locks has others wait behind: it gives up soon, and is tried again.
  set local lock_timeout = '2s';
  lock table workspaces, webhooks, access_codes, action_attempts, events in access exclusive mode;
  for c in select conrelid::regclass as of, conname as name from pg_constraint
    where contype = 'f' and conparentid = 0 and confrelid = 'workspaces'::regclass
      and conrelid in ('webhooks'::regclass, 'access_codes'::regclass, 'action_attempts'::regclass, 'events'::regclass)
  loop
    execute format('alter table %s drop constraint %I', c.of, c.name);
  end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'nothing is migrated back: the way back is a backup'; end $$;
-- +goose StatementEnd
