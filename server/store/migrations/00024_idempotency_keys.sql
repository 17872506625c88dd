-- +goose Up

-- Requests that came with an Idempotency-Key, and what they were answered. A row is written in the transaction of the
-- request's effect, so there is none where there was no effect.
create table idempotency_keys (
  idempotency_key_id uuid primary key,
  workspace_id       uuid not null, -- zero where the credential acts in none
  credential_id      uuid not null,
  operation          text not null,
  key_mac            bytea not null,
  request_mac        bytea not null,
  answer_sealed      bytea, -- absent until the request is answered
  action_attempt_id  uuid,  -- what an answer that is absent is made from
  held_until         timestamptz, -- while an answer is absent that can be made from nothing: until when it is waited for
  created_at         timestamptz not null default clock_timestamp(),
  unique (workspace_id, credential_id, operation, key_mac)
);
create index on idempotency_keys (workspace_id, created_at);

-- +goose Down
drop table idempotency_keys;
