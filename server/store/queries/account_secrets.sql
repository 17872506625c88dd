-- name: GetAccountSecret :one
select * from account_secrets where connected_account_id = @connected_account_id and name = @name;

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
