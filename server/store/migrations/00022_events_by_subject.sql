-- +goose Up

-- What has happened to one subject among many, of the subjects that few events are about.
create index events_of_customers on events (workspace_id, (payload ->> 'customer_key'), created_at) where payload ? 'customer_key';
create index events_of_user_identities on events (workspace_id, (payload ->> 'user_identity_id'), created_at) where payload ? 'user_identity_id';
create index events_of_acs_systems on events (workspace_id, (payload ->> 'acs_system_id'), created_at) where payload ? 'acs_system_id';
create index events_of_acs_users on events (workspace_id, (payload ->> 'acs_user_id'), created_at) where payload ? 'acs_user_id';
create index events_of_acs_access_groups on events (workspace_id, (payload ->> 'acs_access_group_id'), created_at) where payload ? 'acs_access_group_id';
create index events_of_acs_entrances on events (workspace_id, (payload ->> 'acs_entrance_id'), created_at) where payload ? 'acs_entrance_id';

-- +goose Down
drop index events_of_customers, events_of_user_identities, events_of_acs_systems, events_of_acs_users, events_of_acs_access_groups, events_of_acs_entrances;
