-- +goose Up

alter table devices add column emptied_at timestamptz; -- since when its list of codes has been empty all of a sudden, which is not believed yet
alter table access_codes
  add column disputes    integer not null default 0, -- how often in a row it was found otherwise than it had been put
  add column disputed_at timestamptz;                -- the last time

-- +goose Down
alter table access_codes drop column disputes, drop column disputed_at;
alter table devices drop column emptied_at;
