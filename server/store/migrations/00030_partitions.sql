-- +goose Up
-- contract: tables of the same names with the same columns are in the place of the old ones, and no version has been released.

-- What grows for ever is kept in partitions of some days each, so that what was kept for long enough goes as whole files:
-- server/docs/scale.md. The key is the event's identifier: it begins with the time it was made at (RFC 9562, version 7), all
-- three tables have it, and a single event is looked for in one partition only.
--
-- The tables of before become the first partitions where there is anything in them: no row is moved.
alter table events rename to events_before;
alter table deliveries rename to deliveries_before;
alter table delivery_attempts rename to delivery_attempts_before;
-- No rows of one partition refer to those of another, so that each can go by itself. That there is no delivery without its
-- event, nor an attempt without its delivery, is seen to by the order in which they are removed.
alter table delivery_attempts_before drop constraint delivery_attempts_webhook_id_event_id_fkey;
alter table deliveries_before drop constraint deliveries_event_id_fkey;

-- +goose StatementBegin
do $$
declare
  i record;
begin
  for i in select c.oid, c.relname, t.relname as of from pg_index x join pg_class c on c.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
    where t.relnamespace = current_schema()::regnamespace and t.relname in ('events_before', 'deliveries_before', 'delivery_attempts_before')
  loop
    execute format('alter index %I rename to %I', i.relname, left('before_' || i.relname, 63));
  end loop;
end $$;
-- +goose StatementEnd

create table events (
  event_id             uuid not null,
  workspace_id         uuid not null references workspaces on delete cascade,
  event_type           text not null,
  device_id            uuid,
  access_code_id       uuid,
  connected_account_id uuid,
  payload              jsonb not null, -- what the type carries beyond the common fields; never a PIN
  pin_sealed           bytea,          -- the PIN, for the types that carry one
  occurred_at          timestamptz not null default now(),
  created_at           timestamptz not null default clock_timestamp(),
  fanned_out_at        timestamptz,
  primary key (event_id)
) partition by range (event_id);
create index on events (workspace_id, created_at, event_id);
create index on events (workspace_id, device_id, created_at) where device_id is not null;
create index on events (workspace_id, access_code_id, created_at) where access_code_id is not null;
create index on events (workspace_id, connected_account_id, created_at) where connected_account_id is not null;
create index events_outbox on events (workspace_id, created_at) where fanned_out_at is null;
create index events_of_webviews on events (workspace_id, (payload ->> 'connect_webview_id'), created_at) where payload ? 'connect_webview_id';
create index events_of_customers on events (workspace_id, (payload ->> 'customer_key'), created_at) where payload ? 'customer_key';
create index events_of_user_identities on events (workspace_id, (payload ->> 'user_identity_id'), created_at) where payload ? 'user_identity_id';
create index events_of_acs_systems on events (workspace_id, (payload ->> 'acs_system_id'), created_at) where payload ? 'acs_system_id';
create index events_of_acs_users on events (workspace_id, (payload ->> 'acs_user_id'), created_at) where payload ? 'acs_user_id';
create index events_of_acs_access_groups on events (workspace_id, (payload ->> 'acs_access_group_id'), created_at) where payload ? 'acs_access_group_id';
create index events_of_acs_entrances on events (workspace_id, (payload ->> 'acs_entrance_id'), created_at) where payload ? 'acs_entrance_id';

create table deliveries (
  webhook_id      uuid not null references webhooks on delete cascade,
  event_id        uuid not null,
  state           text not null constraint deliveries_state_check check (state in ('pending', 'delivered', 'failed', 'held')), -- held: the webhook is disabled
  attempts        integer not null default 0, -- all that were made
  step            integer not null default 0, -- of the schedule: those made since it was created or replayed
  next_attempt_at timestamptz,                -- while pending
  created_at      timestamptz not null default now(),
  finished_at     timestamptz,
  primary key (webhook_id, event_id)
) partition by range (event_id);
create index on deliveries (event_id);
create index deliveries_pending on deliveries (webhook_id, next_attempt_at) where state = 'pending';
create index deliveries_unsent on deliveries (webhook_id, event_id) where state in ('failed', 'held');

create table delivery_attempts (
  webhook_id     uuid not null references webhooks on delete cascade,
  event_id       uuid not null,
  attempt        integer not null, -- from 1
  attempted_at   timestamptz not null,
  latency_us     bigint not null,
  status         integer, -- of HTTP; null: there was no answer
  error          text,    -- why there was none, or why it counts as a failure
  excerpt_sealed bytea,   -- the beginning of the response's body, which may say back what was sent
  primary key (webhook_id, event_id, attempt)
) partition by range (event_id);

-- For what no partition was made for, so that nothing is ever refused.
create table events_rest partition of events default;
create table deliveries_rest partition of deliveries default;
create table delivery_attempts_rest partition of delivery_attempts default;

-- +goose StatementBegin
do $$
declare
  bound uuid; -- the first identifier of the day after tomorrow
begin
  if not exists (select from events_before) then
    drop table events_before, deliveries_before, delivery_attempts_before;
    return;
  end if;
  bound := (lpad(to_hex((extract(epoch from date_trunc('day', now(), 'UTC') + interval '2 days') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
  -- A clock that is wrong has made others.
  with odd as (delete from events_before where event_id >= bound returning *) insert into events select * from odd;
  with odd as (delete from deliveries_before where event_id >= bound returning *) insert into deliveries select * from odd;
  with odd as (delete from delivery_attempts_before where event_id >= bound returning *) insert into delivery_attempts select * from odd;
  execute format('alter table events attach partition events_before for values from (minvalue) to (%L)', bound);
  execute format('alter table deliveries attach partition deliveries_before for values from (minvalue) to (%L)', bound);
  execute format('alter table delivery_attempts attach partition delivery_attempts_before for values from (minvalue) to (%L)', bound);
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$ begin raise exception 'nothing is migrated back: the way back is a backup'; end $$;
-- +goose StatementEnd
