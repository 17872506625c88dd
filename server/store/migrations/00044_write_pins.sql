-- +goose Up

set local lock_timeout = '200ms';
alter table access_codes add column write_pin_mac bytea; -- the keyed hash of the PIN that is on its way, written down before: the wanted one may change meanwhile

-- +goose Down
alter table access_codes drop column write_pin_mac;
