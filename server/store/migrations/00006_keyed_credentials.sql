-- +goose Up
-- Keyed hashes of credentials, so that a row written by anything but a server is no credential. A row without one is
-- not accepted. Their first byte, and that of access_codes.pin_mac and write_pin_mac and of idempotency_keys.request_mac,
-- is the generation of the hash key; it is missing until the first rotation.
set local lock_timeout = '500ms';

alter table credentials add column mac bytea;
alter table credential_workspaces add column mac bytea;
alter table client_sessions add column mac bytea;
