-- +goose NO TRANSACTION
-- +goose Up

-- What is found on a device may be of a pool that was left there.
drop index concurrently if exists access_codes_in_pool;
create index concurrently access_codes_in_pool on access_codes (workspace_id) where in_pool;

-- +goose Down
drop index concurrently access_codes_in_pool;
