-- +goose Up

set local lock_timeout = '200ms';
alter table access_codes add column external_change text; -- what somebody last did to the code at its device: modified or removed; null: unknown

-- +goose Down
alter table access_codes drop column external_change;
