-- +goose Up
-- The people who sign in to the console. Every row has a keyed hash of what it allows, so that writing to the database
-- makes no operator, widens no role, and opens no session.
set local lock_timeout = '200ms';

create table operators (
  operator_id     uuid primary key,
  email           text not null,
  name            text not null default '',
  roles           jsonb not null default '{}', -- role by workspace; *: every workspace
  password_hash   text, -- argon2id as a PHC string
  totp_sealed     bytea, -- the secret of one-time codes
  issuer          text, -- of the OpenID Connect provider
  subject         text, -- at the issuer
  mac             bytea not null,
  created_at      timestamptz not null default now(),
  disabled_at     timestamptz,
  last_sign_in_at timestamptz,
  -- Not part of the keyed hash.
  totp_step        bigint not null default 0,  -- of the last accepted code: each is accepted once
  totp_failures    integer not null default 0, -- wrong codes since totp_failed_at
  totp_failed_at   timestamptz
);
create unique index operators_email on operators (lower(email));
create unique index operators_subject on operators (issuer, subject) where subject is not null;

create table operator_sessions (
  operator_session_id uuid primary key,
  operator_id         uuid not null references operators on delete cascade,
  token_hash          bytea not null unique, -- SHA-256
  method              text not null check (method in ('password', 'passkey', 'oidc', 'link')),
  agent               text not null default '', -- of the browser
  address             text not null default '',
  created_at          timestamptz not null,
  seen_at             timestamptz not null, -- accurate to a minute
  signed_in_at        timestamptz not null, -- when the operator last proved who it is
  expires_at          timestamptz not null,
  mac                 bytea not null
);
create index on operator_sessions (operator_id, created_at);
create index on operator_sessions (expires_at);
create index on operator_sessions (seen_at);

create table operator_passkeys (
  operator_passkey_id uuid primary key,
  operator_id         uuid not null references operators on delete cascade,
  webauthn_id         bytea not null unique, -- the credential's identifier
  name                text not null,
  credential          text not null, -- JSON: public key, flags, and sign counter
  mac                 bytea not null,
  created_at          timestamptz not null default now(),
  last_used_at        timestamptz
);
create index on operator_passkeys (operator_id);

-- One-time links with which a person sets a password.
create table operator_links (
  operator_link_id uuid primary key,
  operator_id      uuid references operators on delete cascade, -- null: creates the first operator
  purpose          text not null check (purpose in ('setup', 'invitation', 'reset')),
  token_hash       bytea not null unique, -- SHA-256
  created_at       timestamptz not null default now(),
  expires_at       timestamptz not null,
  mac              bytea not null
);
create index on operator_links (operator_id);
create index on operator_links (expires_at);
create unique index operator_links_setup on operator_links (purpose) where purpose = 'setup';

-- Challenges of sign-ins that were used, until they expire.
create table operator_challenges (
  challenge_hash bytea primary key,
  expires_at     timestamptz not null
);
create index on operator_challenges (expires_at);
