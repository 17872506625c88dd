-- Bounds for what the holders of publishable keys and client sessions create, and the clock of the retention.

-- +goose Up
set local lock_timeout = '200ms';
lock table connect_webviews, idempotency_keys in access exclusive mode;

alter table connect_webviews
  add column created_by_session uuid, -- the client session that created it, kept after that is deleted
  add column is_unclaimed boolean not null default false; -- created by a session of a publishable key whose scope was empty
-- Count and find the webviews that make room for new ones.
create index connect_webviews_of_session on connect_webviews (created_by_session, created_at, connect_webview_id)
  where created_by_session is not null and status <> 'authorized';
create index connect_webviews_unclaimed on connect_webviews (workspace_id, created_at) where is_unclaimed and status <> 'authorized';

alter table idempotency_keys
  add column is_public boolean not null default false; -- of a publishable key, or of a session of one whose scope was empty
create index idempotency_keys_public on idempotency_keys (workspace_id, created_at) where is_public;

-- The clock of the retention, in one row. It follows the clock of the database, but runs at most a few times as fast as real
-- time, so that a wrong clock deletes little.
create table retention_clock (
  is_only boolean primary key default true check (is_only),
  at      timestamptz not null
);

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'there is no migration back: restore a backup'; end $$;
-- +goose StatementEnd
