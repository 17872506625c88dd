-- +goose Up

-- Which gateway an account reaches, by what the gateway itself says: one has many addresses. Nothing keeps two accounts from having one, as whoever
-- runs the server may connect it twice; what asks for it holds a lock of its own meanwhile. The index is made with the column because it is empty
-- until rows have one, so that making it is no more than a look at a table that has few rows.
set local lock_timeout = '200ms';
alter table connected_accounts add column gateway_mac bytea; -- keyed hash; null: not known yet, or no gateway
create index connected_accounts_gateway on connected_accounts (adapter, gateway_mac) where deleted_at is null and gateway_mac is not null;

-- +goose Down
drop index connected_accounts_gateway;
alter table connected_accounts drop column gateway_mac;
