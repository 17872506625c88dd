-- With this schema deliveries began: an event that nobody has looked at yet, and one whose delivery has failed once.

insert into events (event_id, workspace_id, event_type, device_id, connected_account_id, payload) values
  ('018f0000-0000-7000-8000-00000000000c', '018f0000-0000-7000-8000-000000000001', 'device.connected',
   '018f0000-0000-7000-8000-000000000004', '018f0000-0000-7000-8000-000000000003', '{}');

insert into events (event_id, workspace_id, event_type, device_id, connected_account_id, payload, fanned_out_at) values
  ('018f0000-0000-7000-8000-00000000000d', '018f0000-0000-7000-8000-000000000001', 'device.disconnected',
   '018f0000-0000-7000-8000-000000000004', '018f0000-0000-7000-8000-000000000003', '{}', now());
insert into deliveries (webhook_id, event_id, state, attempts, step, next_attempt_at) values
  ('018f0000-0000-7000-8000-000000000009', '018f0000-0000-7000-8000-00000000000d', 'pending', 1, 1, now());
insert into delivery_attempts (webhook_id, event_id, attempt, attempted_at, latency_us, status, excerpt_sealed) values
  ('018f0000-0000-7000-8000-000000000009', '018f0000-0000-7000-8000-00000000000d', 1, now(), 1000, 500,
   {{seal "delivery_attempts.excerpt/018f0000-0000-7000-8000-000000000009/018f0000-0000-7000-8000-00000000000d" "try again"}});
update webhooks set due_at = now();
