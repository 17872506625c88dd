-- +goose Up
set local lock_timeout = '200ms';
lock table connected_accounts in access exclusive mode;

-- The operator lets the server write to the devices of the account. It counts only while the adapter never met its
-- vendor (see adapter.Verification).
alter table connected_accounts add column writes_allowed boolean not null default false;
