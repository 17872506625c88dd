-- +goose Up
set local lock_timeout = '200ms';
lock table connect_webviews in share row exclusive mode;

-- Logins on connect webviews that wait for the person: for the next step, or for the return from the vendor's pages.
create table pending_logins (
  pending_login_id   uuid primary key,
  connect_webview_id uuid not null references connect_webviews on delete cascade,
  provider           text not null,
  sealed             bytea not null, -- the values of the earlier steps, or the PKCE verifier
  state_hash         bytea unique,   -- SHA-256 of the state parameter of OAuth; null for a login with steps
  returned_at        timestamptz,    -- the state was used
  expires_at         timestamptz not null
);
create index pending_logins_of_webview on pending_logins (connect_webview_id);
create index pending_logins_by_expiry on pending_logins (expires_at);
