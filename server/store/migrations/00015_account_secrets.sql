-- +goose Up
set local lock_timeout = '200ms';
lock table connected_accounts in share row exclusive mode;

-- What the adapter of an account stores: credentials that expire, the secret of a subscription, a cursor of events.
create table account_secrets (
  connected_account_id uuid not null references connected_accounts on delete cascade,
  name                 text not null,
  sealed               bytea not null,
  version              bigint not null default 1, -- increases with each value
  renewing_since       timestamptz, -- a renewal has started, and its result is not stored
  primary key (connected_account_id, name)
);

-- The calls that the vendor's limit leaves to an account: a token bucket, which all instances share.
create table account_call_budgets (
  connected_account_id uuid primary key references connected_accounts on delete cascade,
  remaining            double precision not null,
  updated_at           timestamptz not null default now(),
  blocked_until        timestamptz -- the vendor refuses calls until then
);
