-- +goose Up
set local lock_timeout = '200ms';

-- The vendor_ref of each entrance that the user was granted in addition to those of its groups.
alter table acs_users add column entrance_refs text[] not null default '{}';
