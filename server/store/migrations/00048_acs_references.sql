-- +goose Up

alter table acs_users add column blocked_by uuid; -- with blocked_gen: the system takes it for this user, and once that is gone for nobody

-- +goose Down
alter table acs_users drop column blocked_by;
