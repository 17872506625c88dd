-- +goose Up

alter table access_codes add column common_code_key text; -- codes that share it have the same PIN
create index on access_codes (workspace_id, common_code_key) where common_code_key is not null;

-- +goose Down
alter table access_codes drop column common_code_key;
