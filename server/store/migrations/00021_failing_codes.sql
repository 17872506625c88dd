-- What the metric of failing codes counts: codes with an error, which are few.
-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists access_codes_failing;
create index concurrently access_codes_failing on access_codes (device_id)
  where is_managed and not in_pool and error_code is not null;
