-- +goose Up

set local lock_timeout = '200ms';
-- Its endpoint has answered well, and soon, the last time: such ones do not wait for all others, which may hang. Those that there are have the
-- benefit of the doubt, unless they fail.
alter table webhooks add column is_prompt boolean not null default true;
alter table webhooks alter column is_prompt set default false;
update webhooks set is_prompt = false where consecutive_failures > 0;

-- +goose Down
alter table webhooks drop column is_prompt;
