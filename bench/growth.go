package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// grown is what was measured at one size, by name, and in which order.
type grown struct {
	names  []string
	values map[string]float64
	seen   int64 // blocks, so far
}

func (g *grown) add(name string, value float64) {
	g.names, g.values[name] = append(g.names, name), value
	fmt.Printf("  %s: %.4g\n", name, value)
}

// measureGrowth fills a database to each of some fractions of the full size, and compares what is measured there with the
// smallest one.
func measureGrowth(ctx context.Context, sizes string, rounds int) error {
	var all []*grown
	heads := strings.Split(sizes, ",")
	for _, text := range heads {
		size, err := strconv.ParseFloat(text, 64)
		if err != nil || size <= 0 || size > 1 {
			return fmt.Errorf("a size is more than 0 and at most 1, not %q", text)
		}
		fmt.Printf("size %s: %d workspaces, %.0f devices, %.0f codes, %.0f events\n", text, growthWorkspaces, size*growthDevices, size*growthDevices*codesEach, size*growthDevices*eventsEach)
		g := &grown{values: map[string]float64{}}
		if err := g.measure(ctx, size, rounds); err != nil {
			return fmt.Errorf("size %s: %w", text, err)
		}
		all = append(all, g)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n\t%s\tratio\t\n", strings.Join(heads, "\t"))
	for _, name := range all[0].names {
		fmt.Fprint(table, name)
		for _, g := range all {
			fmt.Fprintf(table, "\t%.4g", g.values[name])
		}
		fmt.Fprintf(table, "\t%.2f\t\n", all[len(all)-1].values[name]/all[0].values[name])
	}
	return table.Flush()
}

func (g *grown) measure(ctx context.Context, size float64, rounds int) error {
	bed, err := newBed(ctx, 1)
	if err != nil {
		return err
	}
	defer bed.close()
	b := &listBed{bed: bed}
	if err := b.prepare(ctx); err != nil {
		return fmt.Errorf("prepare the rows that are copied: %w", err)
	}
	if err := b.fillGrowth(ctx, size); err != nil {
		return err
	}
	db, err := store.Open(ctx, b.cluster.DSN("postgres"), 2)
	if err != nil {
		return err
	}
	defer db.Close()
	return errors.Join(g.requests(ctx, b, rounds), g.sweeps(ctx, b, db, rounds), g.space(ctx, b), g.fanOut(ctx, b, db, rounds), g.removal(ctx, b, db))
}

// each measures f so often, and adds its median and its slowest hundredth in ms, and the blocks of the database that it touches.
func (g *grown) each(ctx context.Context, b *listBed, name string, n int, f func(i int) error) error {
	var took []float64
	before := g.seen
	if before == 0 {
		var err error
		if before, err = b.blocks(ctx); err != nil {
			return err
		}
	}
	for i := range n {
		began := time.Now()
		if err := f(i); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, time.Since(began).Seconds()*1000)
	}
	after, err := b.blocks(ctx)
	if err != nil {
		return err
	}
	g.seen = after
	slices.Sort(took)
	g.add(name+" p50 ms", took[len(took)/2])
	g.add(name+" p99 ms", took[len(took)*99/100])
	g.add(name+" blocks", float64(after-before)/float64(n))
	return nil
}

// blocks counts those that were read, from memory or not. Connections tell of theirs when they have done nothing for ten seconds.
func (b *listBed) blocks(ctx context.Context) (n int64, err error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(11 * time.Second):
	}
	err = b.pool.QueryRow(ctx, "select blks_hit + blks_read from pg_stat_database where datname = current_database()").Scan(&n)
	return n, err
}

// requests are the main ones, of the largest workspace, one after the other.
func (g *grown) requests(ctx context.Context, b *listBed, rounds int) error {
	const some = 200
	rows, err := b.pool.Query(ctx, `select x.device::text, x.code::text, (select event_id::text from events e where e.device_id = x.device and e.workspace_id = x.workspace_id limit 1)
		from bench_devices x where workspace_id = $1 order by md5(n::text) limit $2`, b.app.Sandbox.WorkspaceID, some)
	if err != nil {
		return err
	}
	var devices, codes, events []string
	for rows.Next() {
		var device, code string
		var event *string
		if err := rows.Scan(&device, &code, &event); err != nil {
			return err
		}
		devices, codes = append(devices, device), append(codes, code)
		if event != nil {
			events = append(events, *event)
		}
	}
	if rows.Err() != nil {
		return rows.Err()
	}
	n := some * max(1, rounds)
	day, month := time.Now().Add(-store.Day).Format(time.RFC3339), time.Now().Add(-30*store.Day).Format(time.RFC3339)
	for _, r := range []struct {
		name, path string
		params     func(i int) map[string]any
	}{
		{"devices/list, 20", "/devices/list", func(int) map[string]any { return map[string]any{"limit": 20} }},
		{"access_codes/list of a device", "/access_codes/list", func(i int) map[string]any { return map[string]any{"device_id": devices[i%len(devices)]} }},
		{"access_codes/get", "/access_codes/get", func(i int) map[string]any {
			return map[string]any{"device_id": devices[i%len(devices)], "access_code_id": codes[i%len(codes)]}
		}},
		{"events/list of a day, 100", "/events/list", func(int) map[string]any { return map[string]any{"since": day, "limit": 100} }},
		{"events/list of a device", "/events/list", func(i int) map[string]any {
			return map[string]any{"since": month, "device_id": devices[i%len(devices)], "limit": 100}
		}},
		{"events/get", "/events/get", func(i int) map[string]any { return map[string]any{"event_id": events[i%len(events)]} }},
	} {
		if err := g.each(ctx, b, r.name, n, func(i int) error { return b.post(ctx, r.path, r.params(i), nil) }); err != nil {
			return err
		}
	}
	if err := g.each(ctx, b, "webhooks/create and delete", n/4, func(i int) error {
		var made struct {
			Webhook struct {
				ID string `json:"webhook_id"`
			} `json:"webhook"`
		}
		if err := b.post(ctx, "/webhooks/create", map[string]any{"url": "https://example.com/" + strconv.Itoa(i), "event_types": []string{stuckType}}, &made); err != nil {
			return err
		}
		return b.post(ctx, "/webhooks/delete", map[string]any{"webhook_id": made.Webhook.ID}, nil)
	}); err != nil {
		return err
	}
	var live string
	if err := b.pool.QueryRow(ctx, "select device_id::text from devices d join connected_accounts a using (connected_account_id) where d.workspace_id = $1 and a.display_name not like 'Copy%' limit 1", b.app.Sandbox.WorkspaceID).Scan(&live); err != nil {
		return err
	}
	if err := g.each(ctx, b, "access_codes/create and delete", n/10, func(i int) error {
		var made struct {
			Code struct {
				ID string `json:"access_code_id"`
			} `json:"access_code"`
		}
		if err := b.post(ctx, "/access_codes/create", map[string]any{"device_id": live, "name": "Guest " + strconv.Itoa(i)}, &made); err != nil {
			return err
		}
		return b.post(ctx, "/access_codes/delete", map[string]any{"access_code_id": made.Code.ID, "device_id": live}, nil)
	}); err != nil {
		return err
	}
	var hook uuid.UUID
	if err := b.pool.QueryRow(ctx, "select webhook_id from webhooks where workspace_id = $1 and url = 'https://example.com' limit 1", b.app.Sandbox.WorkspaceID).Scan(&hook); err != nil {
		return err
	}
	return g.each(ctx, b, "deliveries of a webhook, 100", n, func(int) error {
		_, err := b.app.Access.ListDeliveries(ctx, access.Principal{WorkspaceID: b.app.Sandbox.WorkspaceID}, hook, access.DeliveryFilter{}, 100)
		return err
	})
}

// sweeps are asked by every instance each two seconds.
func (g *grown) sweeps(ctx context.Context, b *listBed, db *store.DB, rounds int) error {
	for _, s := range []struct {
		name  string
		sweep func() error
	}{
		{"sweep of devices", func() error {
			_, err := db.DueDevices(ctx, dbsqlc.DueDevicesParams{MaxRows: 1000, ExcludeAccounts: []uuid.UUID{}, ExcludeWorkspaces: []uuid.UUID{}, ExcludeCreators: []uuid.UUID{}})
			return err
		}},
		{"sweep of outboxes", func() error {
			_, err := db.DueOutboxes(ctx, dbsqlc.DueOutboxesParams{MaxRows: 1000, ExcludeCreators: []uuid.UUID{}})
			return err
		}},
		{"sweep of webhooks", func() error {
			_, err := db.DueWebhooks(ctx, dbsqlc.DueWebhooksParams{MaxRows: 1000, ExcludeWorkspaces: []uuid.UUID{}, ExcludeCreators: []uuid.UUID{}})
			return err
		}},
		{"sweep of retentions", func() error { _, err := db.DueRetentions(ctx, 1000); return err }},
		{"old rows of a workspace", func() error {
			_, err := db.OldEvents(ctx, dbsqlc.OldEventsParams{WorkspaceID: b.app.Sandbox.WorkspaceID, Retention: 40 * store.Day, Before: store.FirstID(time.Now().Add(-40 * store.Day)), MaxRows: 500})
			return err
		}},
	} {
		if err := g.each(ctx, b, s.name, 50*max(1, rounds), func(int) error { return s.sweep() }); err != nil {
			return err
		}
	}
	return nil
}

var errUndone = errors.New("measured, and undone")

// fanOut hands 100 events to some webhooks, and has it undone.
func (g *grown) fanOut(ctx context.Context, b *listBed, db *store.DB, rounds int) error {
	for _, hooks := range []int{1, 10, 100} {
		// What is undone stays as dead rows until it is vacuumed, which takes how long it takes where the tables are large.
		if _, err := b.pool.Exec(ctx, "vacuum events, deliveries, webhooks, workspaces"); err != nil {
			return err
		}
		if err := g.each(ctx, b, fmt.Sprintf("100 events to %d webhooks", hooks), 5*max(1, rounds), func(int) error {
			err := db.InTx(ctx, func(tx store.Tx) error {
				w := uuid.New()
				if err := tx.InsertWorkspace(ctx, dbsqlc.InsertWorkspaceParams{WorkspaceID: w, Name: "fan out"}); err != nil {
					return err
				}
				for range hooks {
					if err := tx.InsertWebhook(ctx, dbsqlc.InsertWebhookParams{WebhookID: uuid.New(), WorkspaceID: w, Url: "https://example.com", EventTypes: []string{"*"}, SecretSealed: []byte{}}); err != nil {
						return err
					}
				}
				for range 100 {
					if _, err := tx.InsertEvent(ctx, dbsqlc.InsertEventParams{EventID: uuid.Must(uuid.NewV7()), WorkspaceID: w, EventType: eventType, Payload: payload}); err != nil {
						return err
					}
				}
				taken, err := tx.TakeEvents(ctx, dbsqlc.TakeEventsParams{WorkspaceID: w, MaxRows: 500, MaxDeliveries: 50_000})
				if err != nil {
					return err
				}
				arg := dbsqlc.FanOutParams{}
				for _, e := range taken {
					arg.EventIds = append(arg.EventIds, e.EventID)
				}
				if arg.WebhookIds, err = tx.LockWebhooksFor(ctx, dbsqlc.LockWebhooksForParams{WorkspaceID: w, EventTypes: []string{eventType}}); err != nil {
					return err
				}
				if _, err = tx.FanOut(ctx, arg); err != nil {
					return err
				}
				return errUndone
			})
			if errors.Is(err, errUndone) {
				return nil
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// space is what a row of each table takes, before what is undone leaves dead rows.
func (g *grown) space(ctx context.Context, b *listBed) error {
	for _, table := range []string{"devices", "access_codes", "events", "deliveries", "delivery_attempts"} {
		var rows, heap, indexes float64
		if err := b.pool.QueryRow(ctx, fmt.Sprintf(`select greatest(1, (select count(*) from %[1]s))::float8, sum(pg_table_size(c.oid))::float8, sum(pg_indexes_size(c.oid))::float8
			from pg_class c where c.oid = '%[1]s'::regclass or c.oid in (select inhrelid from pg_inherits where inhparent = '%[1]s'::regclass)`, table)).Scan(&rows, &heap, &indexes); err != nil {
			return err
		}
		g.add(table+" rows", rows)
		g.add(table+" bytes a row", heap/rows)
		g.add(table+" index bytes a row", indexes/rows)
	}
	return nil
}

// removal compares the two ways in which a week of events goes.
func (g *grown) removal(ctx context.Context, b *listBed, db *store.DB) error {
	cost := func(name string, f func() error) error {
		var from string
		if err := b.pool.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text").Scan(&from); err != nil {
			return err
		}
		began := time.Now()
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		g.add(name+" ms", time.Since(began).Seconds()*1000)
		var mib float64
		if err := b.pool.QueryRow(ctx, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1::text::pg_lsn)::float8 / 1048576", from).Scan(&mib); err != nil {
			return err
		}
		g.add(name+" MiB of log", mib)
		return nil
	}
	today := time.Now().UTC().Truncate(store.Day)
	second, third := store.FirstID(today.Add(-(growthWeeks-1)*7*store.Day)), store.FirstID(today.Add(-(growthWeeks-2)*7*store.Day))
	suffix := today.Add(-(growthWeeks - 1) * 7 * store.Day).Format("p20060102")
	if err := cost("a week deleted", func() error {
		for _, table := range []string{"delivery_attempts", "deliveries", "events"} {
			if _, err := b.pool.Exec(ctx, "delete from "+table+" where event_id >= $1 and event_id < $2", second, third); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := cost("its vacuum", func() error {
		for _, table := range []string{"delivery_attempts", "deliveries", "events"} {
			if _, err := b.pool.Exec(ctx, "vacuum "+table+"_"+suffix); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return cost("a week dropped", func() error {
		dropped, left, err := db.DropPartitions(ctx, today.Add(-(growthWeeks-1)*7*store.Day))
		if err == nil && len(dropped) != 1 {
			err = fmt.Errorf("dropped %v, left %v", dropped, left)
		}
		return err
	})
}
