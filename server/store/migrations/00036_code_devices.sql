-- +goose Up

-- What is told of a code's device with the code: a quarter of the columns, read with each code.
create view code_devices as
select device_id, workspace_id, connected_account_id, online, online_changed_at, removed_at, hub_disconnected, subscription_missing_at,
  capabilities, reported_code_lengths, account_error, backup_pool
from devices;

-- +goose Down
drop view code_devices;
