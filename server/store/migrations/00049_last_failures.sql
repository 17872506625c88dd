-- +goose Up

set local lock_timeout = '200ms';
alter table webhooks add column failed_at timestamptz; -- the last failure since failing_since; null: a version of before knew no better

-- +goose Down
alter table webhooks drop column failed_at;
