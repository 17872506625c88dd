-- +goose Up

-- Pages on which people log in to their vendor accounts. The token of a page's URL is made from its identifier, and kept nowhere.
create table connect_webviews (
  connect_webview_id   uuid primary key,
  workspace_id         uuid not null references workspaces on delete cascade,
  accepted_providers   text[], -- null: any
  accepted_capabilities text[], -- null: those of any device
  manage_new_devices   boolean not null,
  wait_for_devices     boolean not null, -- it is authorized only once the account's devices are there
  redirect_url         text,
  failure_url          text,
  custom_metadata      jsonb not null default '{}',
  customer_key         text,
  status               text not null default 'pending' check (status in ('pending', 'failed', 'authorized')),
  selected_provider    text,
  connected_account_id uuid references connected_accounts on delete set null, -- which was logged in to
  login_attempts       integer not null default 0,
  created_at           timestamptz not null default now(),
  expires_at           timestamptz not null, -- nobody can log in any more then
  authorized_at        timestamptz
);
create index on connect_webviews (workspace_id, created_at, connect_webview_id);
create index connect_webviews_waiting on connect_webviews (connected_account_id) where status <> 'authorized';

-- The few events that are about a webview.
create index events_of_webviews on events (workspace_id, (payload ->> 'connect_webview_id'), created_at) where payload ? 'connect_webview_id';

-- +goose Down
drop index events_of_webviews;
drop table connect_webviews;
