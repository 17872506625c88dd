-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists connect_webviews_of_account;
create index concurrently connect_webviews_of_account on connect_webviews (connected_account_id, created_at, connect_webview_id)
  where created_by_session is not null;
