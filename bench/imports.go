package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// imported is a vendor's list that the server has not stored yet. The floor writes the same number of rows as fast as
// PostgreSQL can: copies of the rows of account $1, with its events, in one transaction.
type imported struct {
	what   string
	list   string // suffix of the list's path
	answer string
	access bool // the vendor has access systems
	there  string
	floor  []string
}

func imports() []imported {
	const (
		locks, codes, users = 1000, 5000, 10_000
		name                = `"name":"of a door, as a person may have called it"`
	)
	const events = `insert into events (event_id, workspace_id, event_type, device_id, access_code_id, connected_account_id, payload, occurred_at, fanned_out_at)
		select gen_random_uuid(), workspace_id, event_type, device_id, access_code_id, connected_account_id, payload, occurred_at, fanned_out_at from events where connected_account_id = $1`
	return []imported{
		{
			what: fmt.Sprintf("%d codes of a lock", codes),
			list: "/access_codes",
			answer: `{"access_codes":[` + numbered(`{"access_code_id":"c%d","status":"set","code":"1234567",`+name+
				`}`, codes) + `]}`,
			there: "select exists (select 1 from access_codes join devices using (device_id) where " +
				"connected_account_id = $1)",
			floor: []string{
				`insert into access_codes (access_code_id, workspace_id, device_id, is_managed, name, pin_sealed, pin_mac, status, prefer_native_scheduling, vendor_ref, desired_at)
				select gen_random_uuid(), c.workspace_id, device_id, c.is_managed, c.name, pin_sealed, pin_mac, status, prefer_native_scheduling, 'copy ' || c.vendor_ref, desired_at
				from access_codes c join devices using (device_id) where connected_account_id = $1`,
				events,
			},
		},
		{
			what: fmt.Sprintf("%d locks of an account", locks),
			list: "/locks",
			answer: `{"locks":[` + numbered(`{"lock_id":"l%d",`+name+`,"capabilities":{"list_codes":false}}`, locks) +
				`]}`,
			there: "select exists (select 1 from devices where connected_account_id = $1)",
			floor: []string{
				`insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online, capabilities, flags, is_managed, due_at)
				select gen_random_uuid(), workspace_id, connected_account_id, 'copy ' || vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online, capabilities, flags, is_managed, null
				from devices where connected_account_id = $1`,
				events,
			},
		},
		{
			what:   fmt.Sprintf("%d people of an access system", users),
			list:   "/systems/s0",
			access: true,
			answer: `{"groups":[],"entrances":[],"users":[` +
				numbered(
					`{"user_id":"u%d","full_name":"A name as people have","email":"user.one@example.com"}`,
					users,
				) + `]}`,
			there: "select exists (select 1 from acs_users join acs_systems using (acs_system_id) where " +
				"connected_account_id = $1)",
			floor: []string{
				`insert into acs_users (acs_user_id, workspace_id, acs_system_id, is_managed, full_name, email_address, group_refs, vendor_ref, applied)
				select gen_random_uuid(), u.workspace_id, acs_system_id, is_managed, full_name, email_address, group_refs, 'copy ' || u.vendor_ref, applied
				from acs_users u join acs_systems using (acs_system_id) where connected_account_id = $1`,
			},
		},
	}
}

// vendor is a vendor with one lock and one system, except for the imported list.
type vendor struct {
	*httptest.Server
	of imported
	// last is the time of the list's last response, in Unix nanoseconds.
	last atomic.Int64
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := `{"locks":[{"lock_id":"l0"}],"systems":[{"system_id":"s0"}],"access_codes":[],"webhooks":[],"users":[],"groups":[],"entrances":[]}`
	if strings.HasSuffix(r.URL.Path, v.of.list) {
		answer = v.of.answer
		v.last.Store(time.Now().UnixNano())
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, answer) //nolint:errcheck // the server retries
}

func numbered(format string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, ",")
}

// measureImports measures the time from a vendor's response until the server has stored it.
func measureImports(ctx context.Context, o options) (figures []figure, err error) {
	b, err := newBed(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer b.close()
	admin, err := app.OpenAdmin(ctx, b.config.Database, b.config.Log)
	if err != nil {
		return nil, err
	}
	defer admin.Close(ctx) //nolint:errcheck // the work is done
	for _, of := range imports() {
		var floor, ours []float64
		f := figure{what: of.what}
		for i := range o.rounds + 1 {
			took, least, err := b.imported(ctx, admin, of)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of.what, err)
			}
			if i > 0 {
				ours, floor, f.ratios = append(ours, took), append(floor, least), append(f.ratios, took/least)
			}
		}
		f.floor, f.ours = fmt.Sprintf("%.0f ms", median(floor)), fmt.Sprintf("%.0f ms", median(ours))
		figures = append(figures, f)
		printFigure(f)
	}
	return figures, nil
}

func (b *bed) imported(ctx context.Context, admin *app.Admin, of imported) (ours, floor float64, err error) {
	v := &vendor{of: of}
	v.Server = httptest.NewServer(v)
	defer v.Close()
	var c adapter.Connection = &devicecloud.Connection{BaseURL: v.URL, Token: "t"}
	if of.access {
		c = &accesscloud.Connection{BaseURL: v.URL, Token: "t"}
	}
	account, err := admin.Connect(ctx, b.app.Sandbox.WorkspaceID, "A vendor", c)
	if err != nil {
		return 0, 0, err
	}
	for there := false; !there; {
		if err := b.pool.QueryRow(ctx, of.there, account).Scan(&there); err != nil {
			return 0, 0, err
		}
		time.Sleep(time.Millisecond)
	}
	ours = ms(time.Since(time.Unix(0, v.last.Load())))
	floor, err = b.copied(ctx, account, of.floor)
	return ours, floor, err
}

// copied returns the duration of the statements, without commit.
func (b *bed) copied(ctx context.Context, account uuid.UUID, statements []string) (took float64, err error) {
	tx, err := b.pool.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // rolled back on purpose
	began := time.Now()
	for _, sql := range statements {
		tag, err := tx.Exec(ctx, sql, account)
		if err != nil {
			return 0, err
		}
		if tag.RowsAffected() < 10 {
			return 0, fmt.Errorf("%d rows were copied by %.60s", tag.RowsAffected(), sql)
		}
	}
	return ms(time.Since(began)), nil
}
