-- name: TakeLease :one
-- No row when another holds it.
insert into leases as l (key, holder, fence, held_until) values (@key, @holder, 1, now() + @ttl::interval)
on conflict (key) do update set holder = excluded.holder, fence = l.fence + 1, held_until = excluded.held_until
where l.held_until <= now()
returning fence;

-- name: RenewLease :execrows
update leases set held_until = now() + @ttl::interval where key = @key and fence = @fence and held_until > now();

-- name: ReleaseLease :exec
update leases set held_until = '-infinity' where key = @key and fence = @fence;

-- name: CheckLease :one
select exists (select 1 from leases where key = @key and fence = @fence and held_until > now() for share) as held;
