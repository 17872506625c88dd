-- +goose Up

alter table connected_accounts
  add column custom_metadata       jsonb not null default '{}',
  add column customer_key          text,
  add column manage_new_devices    boolean not null default true, -- whether devices that appear are managed
  add column accepted_capabilities text[] not null default '{lock}',
  add column user_identifier       jsonb not null default '{}'; -- with what was logged in, or which gateway it is: no secret
create index on connected_accounts (workspace_id, customer_key) where customer_key is not null;

alter table devices
  add column is_managed boolean not null default true, -- false: seen, but neither read nor written
  add column nickname   text; -- what the workspace calls it; null: as its vendor does

-- Managed and unmanaged devices are listed apart.
create index devices_managed on devices (workspace_id, created_at, device_id) where removed_at is null and is_managed;
create index devices_unmanaged on devices (workspace_id, created_at, device_id) where removed_at is null and not is_managed;
drop index devices_workspace_id_created_at_device_id_idx;

-- +goose Down
create index devices_workspace_id_created_at_device_id_idx on devices (workspace_id, created_at, device_id) where removed_at is null;
drop index devices_managed, devices_unmanaged;
alter table devices drop column is_managed, drop column nickname;
alter table connected_accounts drop column custom_metadata, drop column customer_key, drop column manage_new_devices,
  drop column accepted_capabilities, drop column user_identifier;
