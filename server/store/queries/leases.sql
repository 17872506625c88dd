-- name: TakeLease :one
-- Returns no row if another holder has it. A fence is at least the current time in microseconds, so that a database
-- that lost its last commits, such as a promoted standby, does not issue it twice. The lease starts now, not with the
-- transaction, which may have waited for the key's rows.
insert into leases as l (key, holder, fence, held_until)
values (@key, @holder, (extract(epoch from clock_timestamp()) * 1000000)::bigint, clock_timestamp() + @ttl::interval)
on conflict (key) do update set holder = excluded.holder, fence = greatest(l.fence + 1, excluded.fence), held_until = excluded.held_until
where l.held_until <= now()
returning fence;

-- name: RenewLease :execrows
update leases set held_until = now() + @ttl::interval where key = @key and fence = @fence and held_until > now();

-- name: ReleaseLease :exec
update leases set held_until = '-infinity' where key = @key and fence = @fence;

-- name: CheckLease :one
select exists (select 1 from leases where key = @key and fence = @fence and held_until > now() for share) as held;
