-- +goose Up

alter table access_codes add column write_ref text; -- where on the device the code that is on its way goes, written down before

-- +goose Down
alter table access_codes drop column write_ref;
