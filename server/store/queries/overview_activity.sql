-- The activity of a workspace for the console: who changed what, and what happened, newest first.

-- name: ActivityAudit :many
-- Entries of the workspace and, with installation, those of the whole installation. Each has its index.
select x.audit_id, x.occurred_at, x.actor_kind, x.actor_id, x.actor_name, x.request_id, x.operation, x.subject_kinds, x.subject_ids, x.outcome from (
  (select a.audit_id, a.occurred_at, a.actor_kind, a.actor_id, a.actor_name, a.request_id, a.operation, a.subject_kinds, a.subject_ids, a.outcome from audit_log a
   where a.workspace_id = @workspace_id::uuid
    and (a.occurred_at, a.audit_id) < (@before_at::timestamptz, @before_id::uuid)
    and a.occurred_at >= @since::timestamptz and a.occurred_at < @until::timestamptz
    and (@actor::text = '' or a.actor_kind = @actor::text or strpos(lower(a.actor_name), lower(@actor::text)) > 0
      or a.actor_id::text = @actor::text)
    and starts_with(a.operation, @operation::text)
    and (@request_id::uuid = '00000000-0000-0000-0000-000000000000'::uuid or a.request_id = @request_id::uuid)
   order by a.occurred_at desc, a.audit_id desc limit @max_rows::integer)
  union all
  (select a.audit_id, a.occurred_at, a.actor_kind, a.actor_id, a.actor_name, a.request_id, a.operation, a.subject_kinds, a.subject_ids, a.outcome from audit_log a
   where @installation::boolean and a.workspace_id is null
    and (a.occurred_at, a.audit_id) < (@before_at::timestamptz, @before_id::uuid)
    and a.occurred_at >= @since::timestamptz and a.occurred_at < @until::timestamptz
    and (@actor::text = '' or a.actor_kind = @actor::text or strpos(lower(a.actor_name), lower(@actor::text)) > 0
      or a.actor_id::text = @actor::text)
    and starts_with(a.operation, @operation::text)
    and (@request_id::uuid = '00000000-0000-0000-0000-000000000000'::uuid or a.request_id = @request_id::uuid)
   order by a.occurred_at desc, a.audit_id desc limit @max_rows::integer)
) x
order by x.occurred_at desc, x.audit_id desc limit @max_rows::integer;

-- name: ActivityAuditOf :many
-- ActivityAudit of one subject. The planner would otherwise read the entries of the workspace in their order.
with named as materialized (select a.* from audit_log a where a.subject_ids @> array[@subject_id::uuid])
select audit_id, occurred_at, actor_kind, actor_id, actor_name, request_id, operation, subject_kinds, subject_ids, outcome from named
where (workspace_id = @workspace_id::uuid or @installation::boolean and workspace_id is null)
  and (occurred_at, audit_id) < (@before_at::timestamptz, @before_id::uuid)
  and occurred_at >= @since::timestamptz and occurred_at < @until::timestamptz
  and (@actor::text = '' or actor_kind = @actor::text or strpos(lower(actor_name), lower(@actor::text)) > 0
    or actor_id::text = @actor::text)
  and starts_with(operation, @operation::text)
  and (@request_id::uuid = '00000000-0000-0000-0000-000000000000'::uuid or request_id = @request_id::uuid)
order by occurred_at desc, audit_id desc limit @max_rows::integer;

-- name: AuditScanEnd :one
-- Where a page of ActivityAudit stops its search for rare matches.
select x.occurred_at from (
  (select a.occurred_at, a.audit_id from audit_log a
   where a.workspace_id = @workspace_id::uuid and (a.occurred_at, a.audit_id) < (@before_at::timestamptz, @before_id::uuid)
     and a.occurred_at >= @since::timestamptz and a.occurred_at < @until::timestamptz
   order by a.occurred_at desc, a.audit_id desc limit @scanned_rows::integer)
  union all
  (select a.occurred_at, a.audit_id from audit_log a
   where @installation::boolean and a.workspace_id is null and (a.occurred_at, a.audit_id) < (@before_at::timestamptz, @before_id::uuid)
     and a.occurred_at >= @since::timestamptz and a.occurred_at < @until::timestamptz
   order by a.occurred_at desc, a.audit_id desc limit @scanned_rows::integer)
) x
order by x.occurred_at desc, x.audit_id desc offset @skipped_rows::integer limit 1;

-- name: EventScanEnd :one
-- Where a page of ActivityEvents stops its search for rare matches.
select created_at from events
where workspace_id = @workspace_id and (created_at, event_id) < (@before_at::timestamptz, @before_id::uuid)
  and created_at >= @since::timestamptz and created_at < @until::timestamptz and event_id >= @since_id::uuid and event_id <= @until_id::uuid
order by created_at desc, event_id desc offset @scanned_rows::integer limit 1;

-- name: ActivityEvents :many
select event_id, created_at, event_type, device_id, access_code_id, connected_account_id from events
where workspace_id = @workspace_id
  and (created_at, event_id) < (@before_at::timestamptz, @before_id::uuid)
  and created_at >= @since::timestamptz and created_at < @until::timestamptz and event_id >= @since_id::uuid and event_id <= @until_id::uuid
  and starts_with(event_type, @event_type::text)
order by created_at desc, event_id desc limit @max_rows::integer;

-- name: ActivityEventsOf :many
-- ActivityEvents of one subject. Each kind of subject has its index.
select x.* from (
  (select e.event_id, e.created_at, e.event_type, e.device_id, e.access_code_id, e.connected_account_id from events e
   where e.workspace_id = @workspace_id and e.device_id = @subject_id::uuid
     and (e.created_at, e.event_id) < (@before_at::timestamptz, @before_id::uuid) and e.created_at >= @since::timestamptz and e.created_at < @until::timestamptz
     and starts_with(e.event_type, @event_type::text)
   order by e.created_at desc, e.event_id desc limit @max_rows::integer)
  union all
  (select e.event_id, e.created_at, e.event_type, e.device_id, e.access_code_id, e.connected_account_id from events e
   where e.workspace_id = @workspace_id and e.access_code_id = @subject_id::uuid
     and (e.created_at, e.event_id) < (@before_at::timestamptz, @before_id::uuid) and e.created_at >= @since::timestamptz and e.created_at < @until::timestamptz
     and starts_with(e.event_type, @event_type::text)
   order by e.created_at desc, e.event_id desc limit @max_rows::integer)
  union all
  (select e.event_id, e.created_at, e.event_type, e.device_id, e.access_code_id, e.connected_account_id from events e
   where e.workspace_id = @workspace_id and e.connected_account_id = @subject_id::uuid
     and (e.created_at, e.event_id) < (@before_at::timestamptz, @before_id::uuid) and e.created_at >= @since::timestamptz and e.created_at < @until::timestamptz
     and starts_with(e.event_type, @event_type::text)
   order by e.created_at desc, e.event_id desc limit @max_rows::integer)
  union all
  (select e.event_id, e.created_at, e.event_type, e.device_id, e.access_code_id, e.connected_account_id from events e
   where e.workspace_id = @workspace_id and e.event_id = @subject_id::uuid
     and (e.created_at, e.event_id) < (@before_at::timestamptz, @before_id::uuid) and e.created_at >= @since::timestamptz and e.created_at < @until::timestamptz
     and starts_with(e.event_type, @event_type::text))
  union all
  (select e.event_id, e.created_at, e.event_type, e.device_id, e.access_code_id, e.connected_account_id from events e
   where e.workspace_id = @workspace_id and e.payload ? 'user_identity_id' and e.payload ->> 'user_identity_id' = (@subject_id::uuid)::text
     and (e.created_at, e.event_id) < (@before_at::timestamptz, @before_id::uuid) and e.created_at >= @since::timestamptz and e.created_at < @until::timestamptz
     and starts_with(e.event_type, @event_type::text)
   order by e.created_at desc, e.event_id desc limit @max_rows::integer)
  union all
  (select e.event_id, e.created_at, e.event_type, e.device_id, e.access_code_id, e.connected_account_id from events e
   where e.workspace_id = @workspace_id and e.payload ? 'acs_user_id' and e.payload ->> 'acs_user_id' = (@subject_id::uuid)::text
     and (e.created_at, e.event_id) < (@before_at::timestamptz, @before_id::uuid) and e.created_at >= @since::timestamptz and e.created_at < @until::timestamptz
     and starts_with(e.event_type, @event_type::text)
   order by e.created_at desc, e.event_id desc limit @max_rows::integer)
) x
order by x.created_at desc, x.event_id desc limit @max_rows::integer;

-- name: NameCodes :many
select access_code_id, coalesce(name, '')::text as name from access_codes
where workspace_id = @workspace_id and access_code_id = any(@access_code_ids::uuid[]) and not in_pool;

-- name: NameAccounts :many
select connected_account_id, display_name from connected_accounts
where workspace_id = @workspace_id and connected_account_id = any(@connected_account_ids::uuid[]);
