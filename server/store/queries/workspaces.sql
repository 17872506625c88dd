-- name: InsertWorkspace :exec
insert into workspaces (workspace_id, name, company_name, connect_partner_name, is_sandbox)
values (@workspace_id, @name, @company_name, @connect_partner_name, @is_sandbox);

-- name: GetWorkspace :one
select * from workspaces where workspace_id = @workspace_id;

-- name: ListAllWorkspaces :many
select * from workspaces order by created_at, workspace_id;

-- name: ListWorkspacesOfCredential :many
select w.* from workspaces w join credential_workspaces c using (workspace_id)
where c.credential_id = @credential_id order by w.created_at, w.workspace_id;

-- name: InsertCredential :exec
insert into credentials (credential_id, kind, name, hint, token_hash, expires_at)
values (@credential_id, @kind, @name, @hint, @token_hash, @expires_at);

-- name: InsertCredentialWorkspace :exec
insert into credential_workspaces (credential_id, workspace_id) values (@credential_id, @workspace_id);

-- name: FindCredential :one
-- The workspace is the one asked for if the credential may enter it; an API key enters its own unasked.
select c.credential_id, c.kind, w.workspace_id
from credentials c left join credential_workspaces w on w.credential_id = c.credential_id
  and (w.workspace_id = sqlc.narg('workspace_id')::uuid or (c.kind = 'api_key' and sqlc.narg('workspace_id')::uuid is null))
where c.token_hash = @token_hash and c.revoked_at is null and (c.expires_at is null or c.expires_at > now());

-- name: ListCredentials :many
select c.*, coalesce(array_agg(w.workspace_id order by w.workspace_id) filter (where w.workspace_id is not null), '{}')::uuid[] as workspace_ids
from credentials c left join credential_workspaces w using (credential_id)
group by c.credential_id order by c.created_at, c.credential_id;

-- name: RevokeCredential :execrows
update credentials set revoked_at = now() where credential_id = @credential_id and revoked_at is null;
