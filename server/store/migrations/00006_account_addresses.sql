-- +goose Up

alter table connected_accounts
  add column address_mac bytea, -- keyed hash of where the account is reached: one gateway is one account
  add column deleted_at  timestamptz; -- when it was disconnected; its credentials are gone from then on
create unique index connected_accounts_address on connected_accounts (adapter, address_mac) where deleted_at is null;

-- +goose Down
drop index connected_accounts_address;
alter table connected_accounts drop column address_mac, drop column deleted_at;
