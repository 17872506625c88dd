-- +goose Up

-- Who has changed what: one row for each request, or command, that has changed something in a workspace, written in the
-- transaction of the change. Identifiers refer to nothing: rows outlive what they tell of, and the workspace.
create table audit_log (
  audit_id      uuid primary key,
  at            timestamptz not null default now(),
  workspace_id  uuid,                              -- null: the whole installation
  actor_kind    text not null,
  actor_id      uuid,                              -- of the credential, or the webview; null: the command line, the server itself
  actor_name    text not null default '',
  request_id    uuid,
  operation     text not null,                     -- a path of the contract, or the words of a command
  subject_kinds text[] not null,                   -- such as device_id, for each of subject_ids
  subject_ids   uuid[] not null,
  outcome       text not null check (outcome in ('done', 'begun')) -- begun: the action attempt among the subjects tells how it ended
);
create index on audit_log (at, audit_id);
create index on audit_log using gin (subject_ids);

-- +goose Down
drop table audit_log;
