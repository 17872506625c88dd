-- +goose Up

alter table webhooks
  add column due_at               timestamptz, -- when a delivery is due; null: none is
  add column paused_until         timestamptz, -- nothing is sent before then
  add column failing_since        timestamptz, -- since then nothing but failure
  add column consecutive_failures integer not null default 0,
  add column disabled_at          timestamptz,
  add column disabled_reason      text;
create index on webhooks (due_at) where due_at is not null;

-- What has happened before there were deliveries is told to nobody.
update events set fanned_out_at = now() where fanned_out_at is null;
drop index events_created_at_idx;
create index events_outbox on events (workspace_id, created_at) where fanned_out_at is null;

create table deliveries (
  webhook_id      uuid not null references webhooks on delete cascade,
  event_id        uuid not null references events on delete cascade,
  state           text not null check (state in ('pending', 'delivered', 'failed', 'held')), -- held: the webhook is disabled
  attempts        integer not null default 0, -- all that were made
  step            integer not null default 0, -- of the schedule: those made since it was created or replayed
  next_attempt_at timestamptz,                -- while pending
  created_at      timestamptz not null default now(),
  finished_at     timestamptz,
  primary key (webhook_id, event_id)
);
create index on deliveries (event_id);
create index deliveries_pending on deliveries (webhook_id, next_attempt_at) where state = 'pending';

create table delivery_attempts (
  webhook_id     uuid not null,
  event_id       uuid not null,
  attempt        integer not null, -- from 1
  attempted_at   timestamptz not null,
  latency_us     bigint not null,
  status         integer, -- of HTTP; null: there was no answer
  error          text,    -- why there was none, or why it counts as a failure
  excerpt_sealed bytea,   -- the beginning of the response's body, which may say back what was sent
  primary key (webhook_id, event_id, attempt),
  foreign key (webhook_id, event_id) references deliveries on delete cascade
);

-- +goose Down
drop table delivery_attempts, deliveries;
drop index events_outbox;
create index on events (created_at) where fanned_out_at is null;
alter table webhooks drop column due_at, drop column paused_until, drop column failing_since, drop column consecutive_failures,
  drop column disabled_at, drop column disabled_reason;
