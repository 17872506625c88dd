-- +goose Up

-- Everybody may make client sessions with a publishable key; how many of them there are that reach nothing is limited.
set local lock_timeout = '200ms';
alter table client_sessions add column is_unclaimed boolean not null default false; -- made with a publishable key, and not seen to reach anything yet

-- +goose Down
alter table client_sessions drop column is_unclaimed;
