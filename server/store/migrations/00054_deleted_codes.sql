-- +goose Up

set local lock_timeout = '200ms';
-- Codes that were deleted without anybody knowing what had become of their creation: it may arrive afterwards.
create table access_codes_gone (
  access_code_id uuid primary key,
  device_id      uuid not null references devices on delete cascade,
  gone_at        timestamptz not null
);
create index on access_codes_gone (device_id, gone_at);

-- +goose Down
drop table access_codes_gone;
