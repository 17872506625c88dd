package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	deviceCount = 5_000
	locks       = 300 // locks for concurrent creation of codes
)

// measureAPI measures operations of the server against a minimal chi and pgx handler for each.
func measureAPI(ctx context.Context, o options) ([]figure, error) {
	bed, err := newBed(ctx, locks)
	if err != nil {
		return nil, err
	}
	defer bed.close()
	// before accounts are copied, which no server could decrypt
	if err := bed.startTraced(ctx); err != nil {
		return nil, err
	}
	b := &listBed{bed: bed}
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	devices, err := b.ids(ctx, "select device_id::text from devices where device_id <> $1", b.device)
	if err != nil {
		return nil, err
	}
	code, err := b.ids(
		ctx,
		"select access_code_id::text from access_codes where is_managed and workspace_id = $1",
		b.app.Sandbox.WorkspaceID,
	)
	if err != nil {
		return nil, err
	}
	if err := b.copies(ctx, "devices", "device_id", "connected_account_id = '"+b.account+
		"'", `'due_at', null, 'vendor_ref', 'copy/' || n`, deviceCount); err != nil {
		return nil, err
	}
	copied, err := b.ids(ctx, "select device_id::text from devices where vendor_ref like 'copy/%'")
	if err != nil {
		return nil, err
	}
	if _, err := b.pool.Exec(ctx, "vacuum analyze"); err != nil {
		return nil, err
	}
	device := fmt.Sprintf(`{"device_id":%q}`, b.device)
	accessCode := fmt.Sprintf(`{"access_code_id":%q}`, code[0])
	const hook = `{"url":"https://example.com/hook"}`
	// codes use other locks, and later uses many, because waiting codes slow down each look at their lock and each new
	// code
	var codes, later []string
	for _, id := range devices {
		codes = append(codes, fmt.Sprintf(`{"device_id":%q,"name":"Guest"}`, id))
	}
	for _, id := range copied {
		later = append(
			later,
			fmt.Sprintf(
				`{"device_id":%q,"name":"Guest","starts_at":"2999-01-01T12:00:00Z","ends_at":"2999-01-08T12:00:00Z"}`,
				id,
			),
		)
	}
	const twenty, made = `"device_id":`, `"url":"https://example.com/hook"`
	one, oneCode := fmt.Sprintf(`"device_id":%q`, b.device), fmt.Sprintf(`"access_code_id":%q`, code[0])
	create := b.ours("/webhooks/create", hook).expecting(made, 1)
	keyed := create
	keyed.keyed = true
	aims := func(known float64) aim { return aim{atLeast: 0.6, known: known} }
	reads, writes := aims(0), aims(0)
	fmt.Fprintf(
		os.Stderr,
		"api: %d rounds of %s each in turns, %d connections, PostgreSQL with fsync\n",
		o.rounds,
		o.length,
		o.clients,
	)
	withTraces, err := b.rows(ctx, o, []row{
		{
			"/devices/get with traces, to without",
			aim{},
			b.ours("/devices/get", device).expecting(one, 1),
			b.traced("/devices/get", device).expecting(one, 1),
		},
		{
			"/webhooks/create with traces, to without",
			aim{},
			create,
			b.traced("/webhooks/create", hook).expecting(made, 1),
		},
	})
	if err != nil {
		return nil, err
	}
	spans, err := b.spans(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "spans of the server with traces: %s\n", spans)
	// it would share the work of the other server
	bed.stopTraced(ctx)
	figures, err := b.rows(ctx, o, []row{
		{
			fmt.Sprintf("/devices/list, 20 of %d devices", deviceCount),
			reads,
			b.floor("/devices", "{}").expecting(twenty, 20),
			b.ours("/devices/list", `{"limit":20}`).expecting(twenty, 20),
		},
		{
			"/devices/get",
			reads,
			b.floor("/device", device).expecting(one, 1),
			b.ours("/devices/get", device).expecting(one, 1),
		},
		{
			"/access_codes/get",
			reads,
			b.floor("/code", accessCode).expecting(oneCode, 1),
			b.ours("/access_codes/get", accessCode).expecting(oneCode, 1),
		},
		{"/webhooks/create", writes, b.floor("/hook", hook).expecting(made, 1), create},
		{
			"/webhooks/create, to a floor that has an audit log, too",
			aim{},
			b.floor("/logged-hook", hook).expecting(made, 1),
			create,
		},
		{"/webhooks/create with an Idempotency-Key, to without", aim{}, create, keyed},
	})
	if err != nil {
		return nil, err
	}
	if err := b.forgetWebhooks(ctx); err != nil {
		return nil, err
	}
	const guest = `"name":"Guest"`
	oursNow := b.ours("/access_codes/create", codes...).expecting(fmt.Sprintf(`"device_id":%q`, devices[0]), 1)
	// twice, because the response contains the finished attempt, too
	oursLater := b.ours("/access_codes/create", later...).expecting(fmt.Sprintf(`"device_id":%q`, copied[0]), 2)
	created, err := b.rows(ctx, o, []row{
		{
			"/access_codes/create, for a stay to come",
			aims(0.25),
			b.floor("/new-code", later...).expecting(guest, 1),
			oursLater,
		},
		{
			"/access_codes/create, for a stay to come, to a floor that writes the same rows",
			aims(0.44),
			b.floor("/whole-new-code", later...).expecting(guest, 1),
			oursLater,
		},
		{
			"/access_codes/create, while locks are worked on",
			aims(0.21),
			b.floor("/new-code", codes...).expecting(guest, 1),
			oursNow,
		},
	})
	return slices.Concat(figures, created, withTraces), err
}

// forgetWebhooks deletes the created webhooks: each code would cause a hundred thousand deliveries.
func (b *bed) forgetWebhooks(ctx context.Context) error {
	for _, statement := range []string{"delete from webhooks", "vacuum analyze"} {
		if _, err := b.pool.Exec(ctx, statement); err != nil {
			return fmt.Errorf("delete the webhooks: %w", err)
		}
	}
	return nil
}

// row is one comparison.
type row struct {
	what        string
	aim         aim
	floor, ours target
}

// rows runs the selected comparisons one after another.
func (b *bed) rows(ctx context.Context, o options, rows []row) (figures []figure, err error) {
	for _, c := range rows {
		if !strings.Contains(c.what, o.only) {
			continue
		}
		result, err := b.compare(ctx, c.floor, c.ours, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.what, err)
		}
		figures = append(figures, result.figure(c.what, c.aim))
		printFigure(figures[len(figures)-1])
		for i, cost := range result.costOurs {
			if cost != "" {
				fmt.Fprintf(os.Stderr, "    floor: %s\n    ours:  %s\n", result.costFloor[i], cost)
			}
		}
	}
	return figures, nil
}

// ids returns the first column of a query's result.
func (b *bed) ids(ctx context.Context, query string, args ...any) (ids []string, err error) {
	rows, err := b.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
