-- +goose Up
set local lock_timeout = '200ms';

-- Thresholds of noise sensors. The documents are those of package noise.
create table noise_thresholds (
  noise_threshold_id uuid primary key,
  workspace_id       uuid not null,
  device_id          uuid not null references devices on delete cascade,
  created_at         timestamptz not null default clock_timestamp(),
  is_managed         boolean not null, -- a client has set it; otherwise the desired state follows the device
  is_deleting        boolean not null default false,
  vendor_ref         text, -- null: not known to be on the device
  desired            jsonb not null,
  observed           jsonb, -- null: not on the device
  tries              integer not null default 0, -- consecutive operations that had no effect yet
  next_at            timestamptz, -- when to look again
  await_until        timestamptz -- until when a read may not show the last operation
);
create index on noise_thresholds (device_id, created_at, noise_threshold_id);
create index on noise_thresholds (workspace_id);

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'there is no migration back: restore a backup'; end $$;
-- +goose StatementEnd
