-- The console lists thermostats and noise sensors, which are few among many locks.
-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists devices_thermostats;
create index concurrently devices_thermostats on devices (workspace_id, created_at, device_id)
  where removed_at is null and is_managed and capabilities ? 'thermostat';
drop index concurrently if exists devices_noise_sensors;
create index concurrently devices_noise_sensors on devices (workspace_id, created_at, device_id)
  where removed_at is null and is_managed and capabilities ? 'noise_sensor';
