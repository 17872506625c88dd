-- +goose Up

alter table devices
  add column losses      timestamptz[] not null default '{}', -- the last times it went offline, as many as make a connection flaky
  add column flaky_since timestamptz; -- device.connection_became_flaky rather than device.connection_stabilized

-- +goose Down
alter table devices drop column losses, drop column flaky_since;
