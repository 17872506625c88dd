-- Lists of accounts and connect webviews for the console, as in overview.sql.

-- name: OverviewAccounts :many
select a.connected_account_id, a.created_at from connected_accounts a
where a.workspace_id = @workspace_id and a.deleted_at is null
  and (a.created_at, a.connected_account_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('failing')::boolean is null or (a.error_code is not null) = sqlc.narg('failing')::boolean)
  and (sqlc.narg('adapter')::text is null or a.adapter = sqlc.narg('adapter')::text)
  and (sqlc.narg('customer_key')::text is null or a.customer_key = sqlc.narg('customer_key')::text)
  and (sqlc.narg('pattern')::text is null or a.display_name ~ sqlc.narg('pattern')::text
    or concat_ws(' ', a.user_identifier ->> 'api_url', a.user_identifier ->> 'email', a.user_identifier ->> 'username') ~ sqlc.narg('pattern')::text)
order by a.created_at desc, a.connected_account_id desc
limit @max_rows::integer;

-- name: ListAdaptersOfWorkspace :many
select distinct adapter from connected_accounts where workspace_id = @workspace_id and deleted_at is null order by adapter;

-- name: CountDevicesOfAccounts :many
-- Devices of each account, up to a maximum, and when the newest read of one of them succeeded.
select a.connected_account_id, d.devices, d.read_at
from connected_accounts a cross join lateral (
  select count(*)::bigint as devices, coalesce(max(x.last_good_read_at), '0001-01-01 00:00:00+00')::timestamptz as read_at from (
    select last_good_read_at from devices where connected_account_id = a.connected_account_id and removed_at is null limit @max_rows::integer
  ) x
) d
where a.workspace_id = @workspace_id and a.connected_account_id = any(@connected_account_ids::uuid[]);

-- name: ListCallsLeftOfAccounts :many
select connected_account_id,
  least(@burst::float8, remaining + greatest(0, extract(epoch from now() - updated_at)::float8) * @per_second::float8)::float8 as remaining,
  greatest(0, coalesce(extract(epoch from blocked_until - now()), 0))::float8 as blocked_seconds
from account_call_budgets where connected_account_id = any(@connected_account_ids::uuid[]);

-- name: OverviewWebviews :many
select connect_webview_id, accepted_providers, customer_key, status, selected_provider, connected_account_id, login_attempts, created_at, expires_at, authorized_at
from connect_webviews
where workspace_id = @workspace_id
  and (created_at, connect_webview_id) < (@before_at::timestamptz, @before_id::uuid)
  and (sqlc.narg('connected_account_id')::uuid is null or connected_account_id = sqlc.narg('connected_account_id')::uuid)
  and (sqlc.narg('state')::text is null or case sqlc.narg('state')::text
    when 'used' then status = 'authorized'
    when 'open' then status <> 'authorized' and expires_at > now()
    else status <> 'authorized' and expires_at <= now() end)
order by created_at desc, connect_webview_id desc
limit @max_rows::integer;
