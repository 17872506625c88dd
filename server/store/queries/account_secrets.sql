-- name: GetAccountSecret :one
select * from account_secrets where connected_account_id = @connected_account_id and name = @name;

-- name: ListAccountSecrets :many
select s.* from account_secrets s join connected_accounts a using (connected_account_id)
where a.workspace_id = @workspace_id and s.connected_account_id = any(@connected_account_ids::uuid[]) and s.name = @name;

-- name: LockAccountSecret :one
select * from account_secrets where connected_account_id = @connected_account_id and name = @name for no key update;

-- name: PutAccountSecret :execrows
insert into account_secrets (connected_account_id, name, sealed)
select a.connected_account_id, @name, @sealed from connected_accounts a where a.connected_account_id = @connected_account_id and a.deleted_at is null
on conflict (connected_account_id, name) do update set sealed = excluded.sealed, version = account_secrets.version + 1, renewing_since = null;

-- name: BeginSecretRenewal :execrows
update account_secrets set renewing_since = coalesce(renewing_since, now())
where connected_account_id = @connected_account_id and name = @name and version = @version;

-- name: StoreRenewedSecret :execrows
update account_secrets set sealed = @sealed, version = version + 1, renewing_since = null
where connected_account_id = @connected_account_id and name = @name and version = @version;

-- name: DeleteAccountSecret :exec
delete from account_secrets where connected_account_id = @connected_account_id and name = @name;

-- name: DeleteAccountSecrets :exec
delete from account_secrets where connected_account_id = @connected_account_id;

-- name: TakeAccountCalls :one
-- Returns no row if fewer than reserve calls would remain, or while the vendor refuses calls.
with given as (
  select @connected_account_id::uuid as connected_account_id, @burst::float8 as burst, @per_second::float8 as per_second, @calls::float8 as calls, @reserve::float8 as reserve
)
insert into account_call_budgets as b (connected_account_id, remaining)
select connected_account_id, burst - calls from given
on conflict (connected_account_id) do update set updated_at = now(),
  remaining = (select least(burst, b.remaining + greatest(0, extract(epoch from now() - b.updated_at)::float8) * per_second) - calls from given)
where coalesce(b.blocked_until <= now(), true)
  and (select least(burst, b.remaining + greatest(0, extract(epoch from now() - b.updated_at)::float8) * per_second) - calls >= reserve from given)
returning b.remaining;

-- name: GetAccountCalls :one
select least(@burst::float8, remaining + greatest(0, extract(epoch from now() - updated_at)::float8) * @per_second::float8)::float8 as remaining,
  greatest(0, coalesce(extract(epoch from blocked_until - now()), 0))::float8 as blocked_seconds
from account_call_budgets where connected_account_id = @connected_account_id;

-- name: ListAccountCalls :many
-- The accounts of an adapter with the fewest calls left.
select b.connected_account_id,
  (case when b.blocked_until > now() then 0
    else least(@burst::float8, b.remaining + greatest(0, extract(epoch from now() - b.updated_at)::float8) * @per_second::float8)
  end)::float8 as remaining
from account_call_budgets b join connected_accounts a using (connected_account_id)
where a.adapter = @adapter and a.deleted_at is null
order by 2, 1 limit @most;

-- name: BlockAccountCalls :exec
insert into account_call_budgets as b (connected_account_id, remaining, blocked_until) values (@connected_account_id, 0, now() + @after::interval)
on conflict (connected_account_id) do update set blocked_until = greatest(b.blocked_until, excluded.blocked_until);

-- name: BlockClientCalls :exec
-- Blocks all accounts of the adapter of an account: they share the operator's client.
insert into account_call_budgets as b (connected_account_id, remaining, blocked_until)
select a.connected_account_id, 0, now() + @after::interval
from connected_accounts a
join connected_accounts own on own.adapter = a.adapter
where own.connected_account_id = @connected_account_id and a.deleted_at is null
order by a.connected_account_id
on conflict (connected_account_id) do update set blocked_until = greatest(b.blocked_until, excluded.blocked_until);
