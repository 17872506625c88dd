-- name: InsertAccount :exec
insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed, address_mac, gateway_mac, user_identifier, manage_new_devices, writes_allowed, accepted_capabilities)
values (@connected_account_id, @workspace_id, @adapter, @provider, @display_name, @config_sealed, @address_mac, @gateway_mac, @user_identifier, @manage_new_devices, @writes_allowed, @accepted_capabilities);

-- name: GetAccountOfDevice :one
select a.* from connected_accounts a join devices d using (connected_account_id) where d.device_id = @device_id;

-- name: GetAccount :one
select * from connected_accounts where connected_account_id = @connected_account_id;

-- name: GetWorkspaceAccount :one
select * from connected_accounts where workspace_id = @workspace_id and connected_account_id = @connected_account_id and deleted_at is null;

-- name: GetAccountByEmail :one
select * from connected_accounts
where workspace_id = @workspace_id and lower(user_identifier ->> 'email') = lower(@email::text) and deleted_at is null
  and (sqlc.narg('scope')::uuid[] is null or connected_account_id = any(sqlc.narg('scope')::uuid[]))
order by created_at, connected_account_id limit 1;

-- name: AccountsOfCustomer :many
select connected_account_id from connected_accounts where workspace_id = @workspace_id and customer_key = @customer_key::text;

-- name: FindAccounts :many
-- Planned for each call, because the conditions are optional.
select * from connected_accounts
where workspace_id = @workspace_id and deleted_at is null
  and (created_at, connected_account_id) > (@after_at::timestamptz, @after_id::uuid)
  and (sqlc.narg('scope')::uuid[] is null or connected_account_id = any(sqlc.narg('scope')::uuid[]))
  and (sqlc.narg('ids')::uuid[] is null or connected_account_id = any(sqlc.narg('ids')::uuid[]))
  and (sqlc.narg('customer_key')::text is null or customer_key = sqlc.narg('customer_key')::text)
  and (sqlc.narg('metadata')::jsonb is null or custom_metadata @> sqlc.narg('metadata')::jsonb)
  and (sqlc.narg('without_metadata')::text[] is null or not custom_metadata ?| sqlc.narg('without_metadata')::text[])
  and (sqlc.narg('pattern')::text is null or display_name ~ sqlc.narg('pattern')::text
    or concat_ws(' ', user_identifier ->> 'api_url', user_identifier ->> 'email', user_identifier ->> 'username') ~ sqlc.narg('pattern')::text)
order by created_at, connected_account_id
limit @max_rows::integer;

-- name: DescribeAccount :exec
update connected_accounts set display_name = @display_name, custom_metadata = @custom_metadata, customer_key = @customer_key,
  manage_new_devices = @manage_new_devices, accepted_capabilities = @accepted_capabilities
where connected_account_id = @connected_account_id;

-- name: AllowAccountWrites :exec
update connected_accounts set writes_allowed = true, manage_new_devices = manage_new_devices or @manage_new_devices
where connected_account_id = @connected_account_id;

-- name: LockAccount :one
-- Serializes updates of an account and its deletion.
select * from connected_accounts where connected_account_id = @connected_account_id for no key update;

-- name: LockWorkspaceAccount :one
-- Accounts out of scope are not locked, so the caller does not wait for them.
select * from connected_accounts where workspace_id = @workspace_id and connected_account_id = @connected_account_id and deleted_at is null
  and (sqlc.narg('scope')::uuid[] is null or connected_account_id = any(sqlc.narg('scope')::uuid[]))
for no key update;

-- name: GetAccountByAddress :one
select * from connected_accounts where adapter = @adapter and address_mac = @address_mac and deleted_at is null;

-- name: AnyAccountOfUser :one
-- Whether the workspace has an account of the adapter whose login name is one of these.
select exists (select from connected_accounts
  where workspace_id = @workspace_id and adapter = @adapter and deleted_at is null
    and user_identifier ->> 'username' = any(@usernames::text[]));

-- name: HoldGateway :exec
-- Until the transaction ends, no other transaction connects the gateway or records that an account uses it.
select pg_advisory_xact_lock(hashtextextended('connected_accounts.gateway/' || encode(@gateway_mac::bytea, 'hex'), 0));

-- name: GetAccountByGateway :one
-- Another account that uses the gateway.
select * from connected_accounts
where adapter = @adapter and gateway_mac = @gateway_mac and deleted_at is null and connected_account_id <> @connected_account_id
order by created_at, connected_account_id limit 1;

-- name: SetAccountGateway :exec
update connected_accounts set gateway_mac = @gateway_mac where connected_account_id = @connected_account_id and deleted_at is null;

-- name: ListAccountsOfAdapter :many
select * from connected_accounts where adapter = @adapter and deleted_at is null order by created_at, connected_account_id;

-- name: ListAllAccounts :many
select sqlc.embed(a), (select count(*) from devices d where d.connected_account_id = a.connected_account_id and d.removed_at is null)::integer as devices
from connected_accounts a where a.deleted_at is null order by a.created_at, a.connected_account_id;

-- name: UpdateAccountConfig :execrows
update connected_accounts set display_name = @display_name, config_sealed = @config_sealed, address_mac = @address_mac, gateway_mac = @gateway_mac,
  user_identifier = @user_identifier, due_at = now(), wake_seq = wake_seq + 1
where connected_account_id = @connected_account_id and deleted_at is null;

-- name: DeleteAccount :exec
update connected_accounts set deleted_at = now(), config_sealed = @config_sealed, address_mac = null, gateway_mac = null, error_code = null, error_message = null,
  due_at = now(), wake_seq = wake_seq + 1
where connected_account_id = @connected_account_id;

-- name: ClearAccountDue :exec
update connected_accounts set due_at = null where connected_account_id = @connected_account_id and deleted_at is not null;

-- name: SetAccountError :execrows
update connected_accounts set error_code = @error_code, error_message = @error_message,
  error_at = case when sqlc.narg('error_code')::text is not null then now() end
where connected_account_id = @connected_account_id and error_code is distinct from @error_code and deleted_at is null;

-- name: SetAccountSynced :execrows
update connected_accounts set first_synced_at = now() where connected_account_id = @connected_account_id and first_synced_at is null;

-- name: WakeAccount :exec
update connected_accounts set wake_seq = wake_seq + 1, due_at = now() where connected_account_id = @connected_account_id and deleted_at is null;

-- name: ScheduleAccount :exec
-- The account is due immediately if it was woken while it was checked.
update connected_accounts set due_at = case when wake_seq = @wake_seq then now() + @after::interval else now() end
where connected_account_id = @connected_account_id and deleted_at is null;

-- name: AccountDue :one
select coalesce(due_at <= now(), false)::boolean as due from connected_accounts where connected_account_id = @connected_account_id;

-- name: AccountOwners :many
select a.connected_account_id, a.workspace_id, coalesce(w.created_by, '00000000-0000-0000-0000-000000000000')::uuid as created_by
from connected_accounts a join workspaces w using (workspace_id) where a.connected_account_id = any(@connected_account_ids::uuid[]);

-- name: DueAccounts :many
select connected_account_id from connected_accounts a where due_at <= now() and workspace_id <> all(@exclude_workspaces::uuid[])
and workspace_id not in (select w.workspace_id from workspaces w where w.created_by = any(@exclude_creators::uuid[]))
and not exists (select 1 from leases l where l.key = 'account:' || a.connected_account_id::text and l.held_until > now())
order by due_at limit @max_rows::integer;

-- name: ListNetworks :many
-- One account for each gateway, the oldest one.
select n.* from (
  select distinct on (adapter, gateway_mac) connected_account_id, display_name, created_at from connected_accounts
  where workspace_id = @workspace_id and gateway_mac is not null and deleted_at is null
  order by adapter, gateway_mac, created_at, connected_account_id) n
order by n.created_at, n.connected_account_id;

-- name: AccountsWithDevice :many
-- The accounts of an adapter that have a device of that reference.
select a.connected_account_id from connected_accounts a
join devices d on d.connected_account_id = a.connected_account_id and d.vendor_ref = @vendor_ref and d.removed_at is null
where a.adapter = @adapter and a.deleted_at is null order by a.connected_account_id limit 100;

-- name: AccountKindsInUse :many
-- What the accounts of a workspace are connected to.
select distinct adapter, provider from connected_accounts where workspace_id = @workspace_id and deleted_at is null;
