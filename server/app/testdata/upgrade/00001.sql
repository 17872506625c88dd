-- A database as a server with the first schema leaves it. Every table has a row. The functions of upgrade_test.go seal columns
-- with the test's master key. The file of a later migration is applied after that migration.

insert into server_keys (name, sealed) values
  ('sandbox_seed', {{seal "server_keys.sealed/sandbox_seed" seed}}),
  ('page_cursors', {{seal "server_keys.sealed/page_cursors" seed}});

-- New values are sealed with the data key. The values below are sealed with the master key, as before a rotation.
insert into data_keys (key_id, wrapped, is_current, resealed_at) values ({{dataKeyID}}, {{dataKey}}, true, now());

insert into workspaces (workspace_id, name, company_name, is_sandbox) values
  ('018f0000-0000-7000-8000-000000000001', 'Harbour Street', 'Old Houses Ltd', true);

insert into credentials (credential_id, kind, name, hint, token_hash) values
  ('018f0000-0000-7000-8000-000000000002', 'api_key', 'of old', 'seam_test…', {{hash token}});
insert into credential_workspaces (credential_id, workspace_id) values
  ('018f0000-0000-7000-8000-000000000002', '018f0000-0000-7000-8000-000000000001');

insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed, first_synced_at) values
  ('018f0000-0000-7000-8000-000000000003', '018f0000-0000-7000-8000-000000000001', 'sandbox', '', 'Simulated locks',
   {{seal "connected_accounts.config/018f0000-0000-7000-8000-000000000003" "{\"key\":\"of old\",\"profiles\":[\"august\"]}"}}, now() - interval '1 day');

insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model,
  serial_number, name, online, locked, battery_level, capabilities, flags, custom_metadata, announced_online, announced_locked) values
  ('018f0000-0000-7000-8000-000000000004', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000003',
   '{{lock}}', 'august_lock', 'august', 'August', 'Smart Lock', '{{serial}}', 'Front door', true, true, 0.8, '{}',
   '{can_program_online_access_codes}', '{"floor": 2}', true, true);
insert into lock_operations (device_id, operation) values ('018f0000-0000-7000-8000-000000000004', 'of old');

-- A code that is on the lock, a code on its way to the lock with its attempt, and a code that was set at the lock, which hides its PIN.
insert into access_codes (access_code_id, workspace_id, device_id, is_managed, name, pin_sealed, pin_mac, status,
  vendor_ref, desired_gen, applied_gen, applied_at, write_gen, write_at, write_accepted) values
  ('018f0000-0000-7000-8000-000000000005', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000004', true, 'Cleaner',
   {{seal "access_codes.pin/018f0000-0000-7000-8000-000000000005" "730158"}},
   {{mac "access_codes.pin/device/018f0000-0000-7000-8000-000000000004" "730158"}},
   'set', 'of old', 1, 1, now() - interval '1 day', 0, null, false),
  ('018f0000-0000-7000-8000-000000000006', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000004', true, 'Guest',
   {{seal "access_codes.pin/018f0000-0000-7000-8000-000000000006" "914736"}},
   {{mac "access_codes.pin/device/018f0000-0000-7000-8000-000000000004" "914736"}},
   'setting', null, 1, 0, null, 0, null, false),
  ('018f0000-0000-7000-8000-000000000007', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000004', false, null,
   null, null, 'set', 'by hand', 1, 1, now() - interval '1 day', 0, null, false);
insert into access_code_tombstones (access_code_id, device_id, deleted_at) values
  ('018f0000-0000-7000-8000-00000000000e', '018f0000-0000-7000-8000-000000000004', now() - interval '1 hour');

insert into action_attempts (action_attempt_id, workspace_id, device_id, access_code_id, action_type, desired_gen, status, deadline_at) values
  ('018f0000-0000-7000-8000-000000000008', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000004',
   '018f0000-0000-7000-8000-000000000006', 'CREATE_ACCESS_CODE', 1, 'pending', now() + interval '1 hour');

-- An end user who has connected the account on a webview.
insert into user_identities (user_identity_id, workspace_id, user_identity_key, email_address, full_name) values
  ('018f0000-0000-7000-8000-00000000000f', '018f0000-0000-7000-8000-000000000001', 'resident-1', 'resident@example.com', 'Robin Resident');
insert into connect_webviews (connect_webview_id, workspace_id, manage_new_devices, wait_for_devices, status, selected_provider,
  connected_account_id, expires_at, authorized_at) values
  ('018f0000-0000-7000-8000-000000000010', '018f0000-0000-7000-8000-000000000001', true, false, 'authorized', 'august',
   '018f0000-0000-7000-8000-000000000003', now() + interval '1 hour', now());
insert into client_sessions (client_session_id, workspace_id, token_hash, token_sealed, user_identity_id, expires_at) values
  ('018f0000-0000-7000-8000-000000000011', '018f0000-0000-7000-8000-000000000001', {{hash "a session of old"}},
   {{seal "client_sessions.token/018f0000-0000-7000-8000-000000000011" "a session of old"}}, '018f0000-0000-7000-8000-00000000000f', now() + interval '1 day');
insert into client_session_accounts (client_session_id, connected_account_id) values
  ('018f0000-0000-7000-8000-000000000011', '018f0000-0000-7000-8000-000000000003');
insert into client_session_webviews (client_session_id, connect_webview_id) values
  ('018f0000-0000-7000-8000-000000000011', '018f0000-0000-7000-8000-000000000010');
insert into user_identity_webviews (user_identity_id, connect_webview_id) values
  ('018f0000-0000-7000-8000-00000000000f', '018f0000-0000-7000-8000-000000000010');
insert into user_identity_accounts (user_identity_id, connected_account_id) values
  ('018f0000-0000-7000-8000-00000000000f', '018f0000-0000-7000-8000-000000000003');

-- An access system that its vendor has removed.
insert into acs_systems (acs_system_id, workspace_id, connected_account_id, vendor_ref, name, removed_at, due_at) values
  ('018f0000-0000-7000-8000-000000000012', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000003', 'site of old', 'Site',
   now() - interval '1 day', null);
insert into acs_entrances (acs_entrance_id, workspace_id, acs_system_id, vendor_ref, name) values
  ('018f0000-0000-7000-8000-000000000013', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000012', 'entrance', 'Gate');
insert into acs_access_groups (acs_access_group_id, workspace_id, acs_system_id, vendor_ref, name, entrance_refs) values
  ('018f0000-0000-7000-8000-000000000014', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000012', 'group', 'Residents', '{entrance}');
insert into acs_users (acs_user_id, workspace_id, acs_system_id, user_identity_id, is_managed, full_name, group_refs, vendor_ref) values
  ('018f0000-0000-7000-8000-000000000015', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000012', '018f0000-0000-7000-8000-00000000000f',
   true, 'Robin Resident', '{group}', 'user');
insert into acs_user_tombstones (acs_user_id, acs_system_id, deleted_at) values
  ('018f0000-0000-7000-8000-000000000016', '018f0000-0000-7000-8000-000000000012', now() - interval '1 hour');

insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed, created_at, due_at, is_healthy) values
  ('018f0000-0000-7000-8000-000000000009', '018f0000-0000-7000-8000-000000000001', '{{hook}}', '{*}',
   {{seal "webhooks.secret/018f0000-0000-7000-8000-000000000009" secret}}, now() - interval '2 days', now(), true);

-- An event that was delivered, an event without deliveries yet, and an event whose delivery has failed once.
insert into events (event_id, workspace_id, event_type, device_id, access_code_id, connected_account_id, payload, pin_sealed, fanned_out_at) values
  ('018f0000-0000-7000-8000-00000000000a', '018f0000-0000-7000-8000-000000000001', 'access_code.set_on_device',
   '018f0000-0000-7000-8000-000000000004', '018f0000-0000-7000-8000-000000000005', '018f0000-0000-7000-8000-000000000003', '{}',
   {{seal "events.pin/018f0000-0000-7000-8000-00000000000a" "730158"}}, now()),
  ('018f0000-0000-7000-8000-00000000000c', '018f0000-0000-7000-8000-000000000001', 'device.connected',
   '018f0000-0000-7000-8000-000000000004', null, '018f0000-0000-7000-8000-000000000003', '{}', null, null),
  ('018f0000-0000-7000-8000-00000000000d', '018f0000-0000-7000-8000-000000000001', 'device.disconnected',
   '018f0000-0000-7000-8000-000000000004', null, '018f0000-0000-7000-8000-000000000003', '{}', null, now());
insert into deliveries (webhook_id, event_id, state, attempts, retry_step, next_attempt_at, finished_at) values
  ('018f0000-0000-7000-8000-000000000009', '018f0000-0000-7000-8000-00000000000a', 'delivered', 1, 1, null, now()),
  ('018f0000-0000-7000-8000-000000000009', '018f0000-0000-7000-8000-00000000000d', 'pending', 1, 1, now(), null);
insert into delivery_attempts (webhook_id, event_id, attempt, attempted_at, latency_us, status, excerpt_sealed) values
  ('018f0000-0000-7000-8000-000000000009', '018f0000-0000-7000-8000-00000000000a', 1, now(), 1000, 200, null),
  ('018f0000-0000-7000-8000-000000000009', '018f0000-0000-7000-8000-00000000000d', 1, now(), 1000, 500,
   {{seal "delivery_attempts.excerpt/018f0000-0000-7000-8000-000000000009/018f0000-0000-7000-8000-00000000000d" "try again"}});

insert into idempotency_keys (idempotency_key_id, workspace_id, credential_id, operation, key_mac, request_mac, answer_sealed) values
  ('018f0000-0000-7000-8000-000000000017', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000002', '/webhooks/create',
   {{mac "idempotency_keys.key" "of old"}}, {{mac "idempotency_keys.request//webhooks/create" "{}"}},
   {{seal "idempotency_keys.answer/018f0000-0000-7000-8000-000000000017" "{}"}});

insert into audit_log (audit_id, workspace_id, actor_kind, actor_id, operation, subject_kinds, subject_ids, outcome) values
  ('018f0000-0000-7000-8000-000000000018', '018f0000-0000-7000-8000-000000000001', 'api_key', '018f0000-0000-7000-8000-000000000002', '/webhooks/create',
   '{webhook_id}', array['018f0000-0000-7000-8000-000000000009']::uuid[], 'done');

insert into leases (key, holder, fence, held_until) values
  ('device/018f0000-0000-7000-8000-000000000004', '018f0000-0000-7000-8000-00000000000b', 7, now() - interval '1 hour');
