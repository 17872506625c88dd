-- +goose Up

alter table access_codes
  add column uses_backup_pool      boolean not null default false, -- another code can be pulled in its place
  add column is_backup             boolean not null default false, -- it was made to be pulled
  add column in_pool               boolean not null default false, -- and has not been: nobody is shown it
  add column pulled_backup_code_id uuid; -- the one that was pulled in its place
alter table devices add column backup_pool jsonb not null default '{}'; -- how its pool stands

-- +goose Down
alter table access_codes drop column uses_backup_pool, drop column is_backup, drop column in_pool, drop column pulled_backup_code_id;
alter table devices drop column backup_pool;
