-- +goose Up
-- When an endpoint last accepted an event, accurate to a minute. Null for webhooks that no instance of this version has
-- sent an event to.
set local lock_timeout = '200ms';

alter table webhooks add column last_success_at timestamptz;
