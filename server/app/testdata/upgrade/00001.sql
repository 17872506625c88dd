-- What a server of the first schema had written: every table of it has a row. Sealed columns are sealed with the test's
-- master key, by the functions of upgrade_test.go. A file of a later number is put in when the schema is that old.

insert into server_keys (name, sealed) values
  ('sandbox_seed', {{seal "server_keys.sealed/sandbox_seed" seed}}),
  ('page_cursors', {{seal "server_keys.sealed/page_cursors" seed}});

insert into workspaces (workspace_id, name, company_name, is_sandbox) values
  ('018f0000-0000-7000-8000-000000000001', 'Harbour Street', 'Old Houses Ltd', true);

insert into credentials (credential_id, kind, name, hint, token_hash) values
  ('018f0000-0000-7000-8000-000000000002', 'api_key', 'of old', 'seam_test…', {{hash token}});
insert into credential_workspaces (credential_id, workspace_id) values
  ('018f0000-0000-7000-8000-000000000002', '018f0000-0000-7000-8000-000000000001');

insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed) values
  ('018f0000-0000-7000-8000-000000000003', '018f0000-0000-7000-8000-000000000001', 'sandbox', '', 'Simulated locks',
   {{seal "connected_accounts.config/018f0000-0000-7000-8000-000000000003" "{\"key\":\"of old\",\"profiles\":[\"august\"]}"}});

insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model,
  serial_number, name, online, locked, battery_level, capabilities, flags, custom_metadata) values
  ('018f0000-0000-7000-8000-000000000004', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000003',
   '{{lock}}', 'august_lock', 'august', 'August', 'Smart Lock', '{{serial}}', 'Front door', true, true, 0.8, '{}',
   '{can_program_online_access_codes}', '{"floor": 2}');

-- One that is on the lock, one on its way to it with its attempt, one that somebody made at the lock and whose PIN it hides.
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

insert into action_attempts (action_attempt_id, workspace_id, device_id, access_code_id, action_type, gen, status, deadline_at) values
  ('018f0000-0000-7000-8000-000000000008', '018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000004',
   '018f0000-0000-7000-8000-000000000006', 'CREATE_ACCESS_CODE', 1, 'pending', now() + interval '1 hour');

insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed, created_at) values
  ('018f0000-0000-7000-8000-000000000009', '018f0000-0000-7000-8000-000000000001', '{{hook}}', '{*}',
   {{seal "webhooks.secret/018f0000-0000-7000-8000-000000000009" secret}}, now() - interval '2 days');

insert into events (event_id, workspace_id, event_type, device_id, access_code_id, connected_account_id, payload, pin_sealed) values
  ('018f0000-0000-7000-8000-00000000000a', '018f0000-0000-7000-8000-000000000001', 'access_code.set_on_device',
   '018f0000-0000-7000-8000-000000000004', '018f0000-0000-7000-8000-000000000005', '018f0000-0000-7000-8000-000000000003', '{}',
   {{seal "events.pin/018f0000-0000-7000-8000-00000000000a" "730158"}});

insert into leases (key, holder, fence, held_until) values
  ('device/018f0000-0000-7000-8000-000000000004', '018f0000-0000-7000-8000-00000000000b', 7, now() - interval '1 hour');
