-- +goose Up

set local lock_timeout = '200ms';
alter table webhooks add column failed_at timestamptz; -- the last failure since failing_since; null: unknown

-- +goose Down
alter table webhooks drop column failed_at;
