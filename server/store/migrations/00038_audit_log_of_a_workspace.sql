-- +goose NO TRANSACTION
-- +goose Up

-- What was changed in one workspace is asked by people who wait for the answer: without this the entries of all others were read for it.
-- It is made while entries are written, which no transaction can, and waits for those that are open, in nobody's way. Whoever is cut
-- off meanwhile leaves half of it.
drop index concurrently if exists audit_log_of_workspace;
create index concurrently audit_log_of_workspace on audit_log (workspace_id, at, audit_id);

-- +goose Down
drop index concurrently audit_log_of_workspace;
