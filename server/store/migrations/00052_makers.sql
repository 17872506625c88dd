-- +goose Up

set local lock_timeout = '200ms';
-- The credential that has made it, also when that is gone; null: the server's own, or of before. What is done for all workspaces
-- that one has made leaves room for those of others.
alter table workspaces add column made_by uuid;
create index workspaces_by_maker on workspaces (made_by) where made_by is not null;

-- +goose Down
alter table workspaces drop column made_by;
