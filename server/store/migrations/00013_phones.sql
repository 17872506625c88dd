-- +goose Up
set local lock_timeout = '200ms';
lock table workspaces, user_identities in share row exclusive mode;

-- The simulated phones of people. A phone is no row of devices, because it has no connected account.
create table phones (
  device_id                  uuid primary key,
  workspace_id               uuid not null references workspaces on delete cascade,
  user_identity_id           uuid not null references user_identities on delete cascade,
  custom_sdk_installation_id text, -- of the app on the phone, as its creator names it
  operating_system           text not null check (operating_system in ('android', 'ios')),
  device_model               text not null,
  seos_tsm_endpoint_id       double precision not null,
  -- Of the clock, not of the transaction: transactions that wait for the identity's lock keep their order.
  created_at                 timestamptz not null default clock_timestamp()
);
create index on phones (workspace_id, created_at, device_id);
create unique index phones_installation on phones (user_identity_id, custom_sdk_installation_id);
