-- +goose Up

set local lock_timeout = '200ms';
-- Its endpoint has answered well, and soon, the last time: such ones do not wait for all others, which may hang. Those that there are have the
-- benefit of the doubt, until they are sent something.
alter table webhooks add column is_prompt boolean not null default true;
alter table webhooks alter column is_prompt set default false;

-- +goose Down
alter table webhooks drop column is_prompt;
