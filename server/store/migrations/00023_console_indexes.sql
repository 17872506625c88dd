-- What the console's first page shows: codes that begin or end soon.
-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists access_codes_starting;
create index concurrently access_codes_starting on access_codes (workspace_id, starts_at) where is_managed and starts_at is not null;
drop index concurrently if exists access_codes_ending;
create index concurrently access_codes_ending on access_codes (workspace_id, ends_at) where is_managed and ends_at is not null;
