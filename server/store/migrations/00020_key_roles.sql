-- +goose Up
-- What a key may do, who uses it, and when it was last used. The keyed hash of a key covers its role, unless that is
-- admin, so that keys of earlier versions stay valid and writing to the database widens no role. An instance of an
-- earlier version does not accept keys with another role.
set local lock_timeout = '200ms';

alter table credentials add column role text not null default 'admin' check (role in ('admin', 'operator', 'viewer'));
alter table credentials add column owner text not null default '';
alter table credentials add column last_used_at timestamptz;
