-- +goose Up
set local lock_timeout = '200ms';
-- The name that the device has, which a vendor's limits may have changed. Null: not sent yet, or the device keeps no names.
alter table access_codes add column vendor_name text;
