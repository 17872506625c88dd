-- name: InsertAccount :exec
insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
values (@connected_account_id, @workspace_id, @adapter, @provider, @display_name, @config_sealed);

-- name: GetAccount :one
select * from connected_accounts where connected_account_id = @connected_account_id;

-- name: ListAccountsOfAdapter :many
select * from connected_accounts where adapter = @adapter order by created_at, connected_account_id;

-- name: UpdateAccountConfig :exec
update connected_accounts set config_sealed = @config_sealed, due_at = now(), wake_seq = wake_seq + 1
where connected_account_id = @connected_account_id;

-- name: SetAccountError :execrows
update connected_accounts set error_code = @error_code, error_message = @error_message
where connected_account_id = @connected_account_id and error_code is distinct from @error_code;

-- name: WakeAccount :exec
update connected_accounts set wake_seq = wake_seq + 1, due_at = now() where connected_account_id = @connected_account_id;

-- name: ScheduleAccount :exec
-- What was asked for since the look began is due at once.
update connected_accounts set due_at = case when wake_seq = @wake_seq then now() + @after::interval else now() end
where connected_account_id = @connected_account_id;

-- name: AccountDue :one
select coalesce(due_at <= now(), false)::boolean as due from connected_accounts where connected_account_id = @connected_account_id;

-- name: DueAccounts :many
select connected_account_id from connected_accounts a where due_at <= now()
and not exists (select 1 from leases l where l.key = 'account:' || a.connected_account_id::text and l.held_until > now())
order by due_at limit @max_rows::integer;
