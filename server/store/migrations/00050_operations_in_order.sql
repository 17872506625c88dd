-- +goose Up

set local lock_timeout = '200ms';
alter table devices add column operated_at timestamptz; -- when the bolt's last operation that was told happened, by the clock of who told it; null: nobody has said

-- +goose Down
alter table devices drop column operated_at;
