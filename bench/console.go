package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

// pageAim is how long the server may take for the first page of a list in the console.
const pageAim = 100 * time.Millisecond

// consolePages are the pages with lists, below the workspace.
var consolePages = []string{
	"",
	"/locks",
	"/locks?state=offline",
	"/locks?state=battery",
	"/locks?q=copy",
	"/codes",
	"/codes?status=setting",
	"/codes?status=failing",
	"/codes?kind=time_bound",
	"/thermostats",
	"/noise-sensors",
	"/people",
	"/accounts",
	"/webhooks",
	"/activity",
	"/search?q=copy",
}

// measureConsole measures the first page of every list of the console, with a code in each row and ten codes on a lock.
func measureConsole(ctx context.Context, rounds, rows int, only string) (figures []figure, err error) {
	bed, err := newBed(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer bed.close()
	b := &listBed{bed: bed}
	if err := b.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare the rows that are copied: %w", err)
	}
	fmt.Fprintf(os.Stderr, "console: %d locks, %d codes, and %d people and audit entries; %d rounds of 5 pages\n",
		rows/10, rows, rows/10, rounds)
	if err := b.fillConsole(ctx, rows); err != nil {
		return nil, fmt.Errorf("fill the tables: %w", err)
	}
	token, err := b.signIn(ctx)
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	for _, page := range consolePages {
		if !strings.Contains("/console"+page, only) {
			continue
		}
		f := figure{
			what:  "first page of the console, " + strings.TrimPrefix(page, "/") + " to 100 ms",
			aim:   aim{atMost: 1},
			floor: pageAim.String(),
		}
		var took []float64
		for range rounds {
			ms, err := b.consolePage(ctx, token, page)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", page, err)
			}
			took = append(took, ms)
			f.ratios = append(f.ratios, ms/float64(pageAim.Milliseconds()))
		}
		f.ours = fmt.Sprintf("%.1f ms", median(took))
		figures = append(figures, f)
		printFigure(f)
	}
	return figures, nil
}

// fillConsole copies locks of an account that no worker looks at, with codes of all states on them.
func (b *listBed) fillConsole(ctx context.Context, rows int) error {
	at := `'created_at', timestamptz '2026-01-01' + n * interval '1 millisecond'`
	locks := `'vendor_ref', 'copy/' || n, 'nickname', 'Copy ' || n, 'due_at', null, 'online', n % 1000 <> 0, ` +
		`'battery_level', (n % 400) / 400.0, ` + at
	if err := b.copies(ctx, "devices", "device_id", "is_managed and connected_account_id = '"+b.account+"'", locks,
		rows/10); err != nil {
		return err
	}
	if _, err := b.pool.Exec(ctx, `insert into access_codes select copy.*
		from (select t from access_codes t where is_managed order by created_at limit 1) o,
		(select device_id, row_number() over () as lock from devices where vendor_ref like 'copy/%') d,
		generate_series(1, 10) k,
		lateral jsonb_populate_record(o.t, jsonb_build_object(
			'access_code_id', gen_random_uuid(), 'device_id', d.device_id,
			'name', 'Copy ' || lock || '/' || k, 'pin_sealed', null, 'pin_mac', null, 'applied_sealed', null,
			'vendor_ref', 'copy/' || k, 'status', case when lock % 500 = k then 'setting' else 'set' end,
			'error_code', case when lock % 700 = k then 'failed_to_set_on_device' end,
			'error_message', case when lock % 700 = k then 'The lock refuses the code.' end,
			'error_at', case when lock % 700 = k then now() end,
			'starts_at', case when k = 1 then now() + lock * interval '7 minutes' end,
			'ends_at', case when k = 1 then now() + lock * interval '7 minutes' + interval '1 day' end,
			'created_at', timestamptz '2026-01-01' + (lock * 10 + k) * interval '1 millisecond')) copy`); err != nil {
		return err
	}
	for table, id := range map[string]string{
		"user_identities": "user_identity_id",
		"audit_log":       "audit_id",
		"events":          "event_id",
	} {
		changes := map[string]string{
			"user_identities": `'user_identity_key', null, ` + at,
			"audit_log": `'occurred_at', now() - n * interval '1 second', ` +
				`'subject_kinds', jsonb_build_array('device_id'), 'subject_ids', jsonb_build_array(gen_random_uuid())`,
			"events": `'created_at', now() - n * interval '1 second', 'fanned_out_at', now()`,
		}[table]
		if err := b.copiesOf(ctx, table, id, changes, rows/10); err != nil {
			return err
		}
	}
	_, err := b.pool.Exec(ctx, "vacuum analyze")
	return err
}

// copiesOf is copies for tables without a created_at.
func (b *listBed) copiesOf(ctx context.Context, table, id, changes string, n int) error {
	const statement = `insert into %[1]s select copy.* from (select t from %[1]s t limit 1) o,
		generate_series(1, %[4]d) n,
		lateral jsonb_populate_record(o.t, jsonb_build_object('%[2]s', gen_random_uuid(), %[3]s)) copy`
	_, err := b.pool.Exec(ctx, fmt.Sprintf(statement, table, id, changes, n))
	return err
}

// signIn returns the token of an administrator's session.
func (b *listBed) signIn(ctx context.Context) (string, error) {
	operators, password := b.app.Access.Operators, uuid.NewString()
	_, _, err := operators.CreateOperator(ctx, operator.NewOperator{
		Email:    "bench@example.com",
		Password: password,
		Roles:    map[uuid.UUID]domain.Role{uuid.Nil: domain.RoleAdmin},
	})
	if err != nil {
		return "", err
	}
	token, _, err := operators.SignIn(ctx, "bench@example.com", password, operator.Client{})
	return token, err
}

// consolePage returns the median of how many milliseconds the server took for a page.
func (b *listBed) consolePage(ctx context.Context, token, page string) (ms float64, err error) {
	var took []float64
	for range 5 {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet,
			"/console/w/"+b.app.Sandbox.WorkspaceID.String()+page, nil)
		r.AddCookie(&http.Cookie{Name: "deviceaccess", Value: token})
		w := httptest.NewRecorder()
		begun := time.Now()
		b.handler.ServeHTTP(w, r)
		took = append(took, float64(time.Since(begun).Microseconds())/1000)
		if w.Code != http.StatusOK {
			return 0, fmt.Errorf("status %d", w.Code)
		}
	}
	return median(took), nil
}
