package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// What the full size is: size 0.01 has a hundredth of all but the workspaces.
const (
	growthWorkspaces = 1000
	growthDevices    = 1_000_000
	codesEach        = 10 // of a device
	eventsEach       = 50
	hooked           = 5 // each such workspace has a webhook, and the largest one
	growthWeeks      = 5 // of events: what is kept for 30 days, and what goes next
)

// fillGrowth makes so much of what there would be, spread over workspaces as in life: the largest one, which is measured,
// has an eighth of all devices, the smallest ones a few. Nothing of it is ever due, so that nobody works on it.
func (b *listBed) fillGrowth(ctx context.Context, size float64) error {
	if err := b.fillDevices(ctx, size); err != nil {
		return err
	}
	if err := b.fillEvents(ctx, int(growthDevices*size), time.Now().UTC().Truncate(store.Day)); err != nil {
		return err
	}
	for _, rest := range []string{"vacuum analyze", "checkpoint"} { // neither is for a transaction
		if _, err := b.pool.Exec(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

// fillDevices makes all but the events.
func (b *listBed) fillDevices(ctx context.Context, size float64) error {
	devices := int(growthDevices * size)
	firstCode := idAt("timestamptz '2026-02-01' + n * interval '1 second'", "n || '/1'")
	for _, step := range []struct{ what, sql string }{
		{"workspaces", fmt.Sprintf(`
			insert into workspaces (workspace_id, name, is_sandbox, retention_due_at) select gen_random_uuid(), 'w' || n, true, now() + interval '1 day' from generate_series(2, %d) n;
			create unlogged table bench_workspaces as
				select row_number() over (order by created_at, workspace_id)::int as n, workspace_id, gen_random_uuid() as account, gen_random_uuid() as hook from workspaces;
			insert into connected_accounts select copy.* from (select a from connected_accounts a where connected_account_id = '%s') o, bench_workspaces w,
				lateral jsonb_populate_record(o.a, jsonb_build_object('connected_account_id', w.account, 'workspace_id', w.workspace_id, 'due_at', null, 'address_mac', null, 'display_name', 'Copy ' || w.n)) copy;
			insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed) select hook, workspace_id, 'https://example.com', '{*}', '' from bench_workspaces where n %% %d = 1`,
			growthWorkspaces, b.account, hooked)},
		{"devices", fmt.Sprintf(`
			create unlogged table bench_devices as
				with share as (select w.*, 1.0 / n / sum(1.0 / n) over () as part from bench_workspaces w)
				select n, %s as device, %s as code, workspace_id, account, hook, hooked from (
					select row_number() over ()::int as n, s.workspace_id, s.account, s.hook, s.n %% %d = 1 as hooked from share s, generate_series(1, greatest(1, round(s.part * %d))::int)) d;
			create index on bench_devices (n);
			analyze bench_devices;
			insert into devices select copy.* from (select d from devices d where device_id = '%s') o, bench_devices x,
				lateral jsonb_populate_record(o.d, jsonb_build_object('device_id', x.device, 'workspace_id', x.workspace_id, 'connected_account_id', x.account, 'due_at', null,
					'vendor_ref', 'copy/' || x.n, 'created_at', timestamptz '2026-01-01' + x.n * interval '1 second')) copy`,
			idAt("timestamptz '2026-01-01' + n * interval '1 second'", "n"), firstCode, hooked, devices, b.device)},
		{"codes", fmt.Sprintf(`
			insert into access_codes (access_code_id, workspace_id, device_id, is_managed, name, status, vendor_ref, desired_gen, applied_gen, pin_mac, created_at)
			select %s, x.workspace_id, x.device, true, 'Guest ' || i, 'set', 'copy/' || i, 1, 1, sha256(x.device::text::bytea || i::text::bytea), timestamptz '2026-02-01' + x.n * interval '1 second' + i * interval '1 hour'
			from (select * from bench_devices order by n) x, generate_series(1, %d) i`, idAt("timestamptz '2026-02-01' + n * interval '1 second'", "n || '/' || i"), codesEach)},
	} {
		if err := b.insert(ctx, step.what, step.sql+"; analyze"); err != nil {
			return err
		}
	}
	return nil
}

// insert makes rows, and says how long that took.
func (b *listBed) insert(ctx context.Context, what, sql string) error {
	began := time.Now()
	// What is made here refers to what there is: that is not looked up for each row.
	if _, err := b.pool.Exec(ctx, "set local session_replication_role = replica; "+sql); err != nil {
		return fmt.Errorf("fill %s: %w", what, err)
	}
	fmt.Printf("  %s in %.0f s\n", what, time.Since(began).Seconds())
	return nil
}

// fillEvents makes the events of all weeks, with what has become of them, of two weeks at a time. Their indexes are made when all is
// there: a page for each row and index would have to be read from the disk otherwise.
func (b *listBed) fillEvents(ctx context.Context, devices int, today time.Time) error {
	var all sync.WaitGroup
	var attaching sync.Mutex
	turn, failed := make(chan struct{}, 2), make([]error, growthWeeks)
	each := devices * eventsEach / growthWeeks
	for week := range growthWeeks {
		from := today.Add(-time.Duration(growthWeeks-week) * 7 * store.Day)
		to, name := from.Add(7*store.Day), from.Format("p20060102")
		var create, attach strings.Builder
		attach.WriteString("set local maintenance_work_mem = '512MB'")
		for _, table := range []string{"events", "deliveries", "delivery_attempts"} {
			fmt.Fprintf(&create, "create table %[1]s_%[2]s (like %[1]s including all excluding indexes);", table, name)
			fmt.Fprintf(&attach, "; alter table %[1]s attach partition %[1]s_%[2]s for values from ('%[3]s') to ('%[4]s')", table, name, store.FirstID(from), store.FirstID(to))
		}
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			err := b.insert(ctx, "events since "+from.Format(time.DateOnly), create.String()+fmt.Sprintf(`
				insert into events_%[7]s (event_id, workspace_id, event_type, device_id, access_code_id, connected_account_id, payload, occurred_at, created_at, fanned_out_at)
				select %[1]s, x.workspace_id, case when i %% 3 = 0 then 'device.connected' else 'access_code.set_on_device' end, x.device, case when i %% 3 > 0 then x.code end, x.account,
					jsonb_build_object('device_id', x.device, 'device_custom_metadata', '{}'::jsonb, 'connected_account_id', x.account), at, at, at
				from generate_series(%[2]d::bigint, %[3]d) i, lateral (select timestamptz '%[4]s' + (i - %[2]d) * interval '%[5]d microseconds' as at) t, bench_devices x where x.n = 1 + (i * 7919) %% %[6]d;
				insert into deliveries_%[7]s (webhook_id, event_id, state, attempts, step, created_at, finished_at)
				select h.webhook_id, e.event_id, 'delivered', 1, 1, e.created_at, e.created_at from events_%[7]s e join webhooks h using (workspace_id) where h.url = 'https://example.com';
				insert into delivery_attempts_%[7]s (webhook_id, event_id, attempt, attempted_at, latency_us, status) select webhook_id, event_id, 1, created_at, 20000, 200 from deliveries_%[7]s`,
				idAt("at", "i"), week*each+1, (week+1)*each, from.Format(time.RFC3339), (7*store.Day).Microseconds()/int64(each), devices-growthWorkspaces/2, name))
			attaching.Lock()
			defer attaching.Unlock()
			if err == nil {
				err = b.insert(ctx, "indexes of events since "+from.Format(time.DateOnly), attach.String())
			}
			failed[week] = err
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// idAt is, in SQL, an identifier as the server would have made it at a time, different for each seed. Those of the codes of one device are of
// one second.
func idAt(at, seed string) string {
	return fmt.Sprintf("(lpad(to_hex((extract(epoch from %[1]s) * 1000)::bigint), 12, '0') || '7' || substr(md5((%[2]s)::text), 1, 3) || '8' || substr(md5((%[2]s)::text), 4, 15))::uuid", at, seed)
}
