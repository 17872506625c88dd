package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
)

// list is a paginated list of the API. Its table is filled with copies of a row that the server has created.
type list struct {
	path, key string
	params    map[string]any
	table, id string
	where     string // selects the copied row
	// changes are those of each copy, as arguments of jsonb_build_object; n counts them.
	changes string
}

// lists returns all paginated lists. The copies belong to a device and an account that no worker looks at.
func (b *listBed) lists() []list {
	at := `'created_at', timestamptz '2026-01-01' + n * interval '1 millisecond'`
	const hidden = `'pin_sealed', null, 'pin_mac', null, 'applied_sealed', null, ` // PINs are encrypted for their row
	device := map[string]any{"device_id": b.device}
	return []list{
		{"/devices/list", "devices", nil, "devices", "device_id", "is_managed", `'vendor_ref', 'copy/' || n, ` + at},
		{
			"/devices/unmanaged/list",
			"devices",
			nil,
			"devices",
			"device_id",
			"is_managed",
			`'vendor_ref', 'seen/' || n, 'is_managed', false, ` + at,
		},
		{
			"/connected_accounts/list",
			"connected_accounts",
			nil,
			"connected_accounts",
			"connected_account_id",
			"true",
			at,
		},
		{
			"/access_codes/list",
			"access_codes",
			device,
			"access_codes",
			"access_code_id",
			"is_managed",
			hidden + `'vendor_ref', 'copy/' || n, ` + at,
		},
		{
			"/access_codes/unmanaged/list",
			"access_codes",
			device,
			"access_codes",
			"access_code_id",
			"is_managed",
			hidden + `'vendor_ref', 'found/' || n, 'is_managed', false, ` + at,
		},
		{
			"/user_identities/list",
			"user_identities",
			nil,
			"user_identities",
			"user_identity_id",
			"true",
			`'user_identity_key', null, ` + at,
		},
		{
			"/acs/users/list",
			"acs_users",
			nil,
			"acs_users",
			"acs_user_id",
			"true",
			`'vendor_ref', 'copy/' || n, 'is_managed', true, ` + at,
		},
		{
			"/acs/users/unmanaged/list",
			"acs_users",
			nil,
			"acs_users",
			"acs_user_id",
			"true",
			`'vendor_ref', 'found/' || n, 'is_managed', false, ` + at,
		},
		{
			"/acs/entrances/list",
			"acs_entrances",
			nil,
			"acs_entrances",
			"acs_entrance_id",
			"true",
			`'vendor_ref', 'copy/' || n, ` + at,
		},
		{"/connect_webviews/list", "connect_webviews", nil, "connect_webviews", "connect_webview_id", "true", at},
		{"/action_attempts/list", "action_attempts", device, "action_attempts", "action_attempt_id", "true", at},
	}
}

type listBed struct {
	*bed
	account, device, system string
}

// pageOf is the number of rows of a page.
const pageOf = 100

// measureLists compares the first and last pages of every list, with this number of rows.
func measureLists(ctx context.Context, rounds, rows int, only string) (figures []figure, err error) {
	bed, err := newBed(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer bed.close()
	b := &listBed{bed: bed}
	if err := b.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare the rows that are copied: %w", err)
	}
	fmt.Fprintf(os.Stderr, "lists: %d rows in each table, pages of %d, %d rounds of 20 first and 20 last pages in "+
		"turns\n", rows, pageOf, rounds)
	for _, l := range b.lists() {
		if !strings.Contains(l.path, only) {
			continue
		}
		if err := b.fill(ctx, l, rows); err != nil {
			return nil, fmt.Errorf("fill %s: %w", l.table, err)
		}
		cursors, walked, err := b.walk(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("walk %s: %w", l.path, err)
		}
		if walked < rows {
			return nil, fmt.Errorf("%s: the walk met %d rows of %d", l.path, walked, rows)
		}
		first, last, err := b.ends(ctx, l, cursors, rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.path, err)
		}
		f := figure{
			what:  fmt.Sprintf("%s: last page of %d rows, to the first", l.path, walked),
			aim:   aim{atMost: 1.2},
			floor: fmt.Sprintf("%.2f ms", median(first)),
			ours:  fmt.Sprintf("%.2f ms", median(last)),
		}
		for i := range first {
			f.ratios = append(f.ratios, last[i]/first[i])
		}
		figures = append(figures, f)
		printFigure(f)
	}
	return figures, nil
}

// prepare creates one row of each kind through the API, and copies a device and an account for which no work is due.
func (b *listBed) prepare(ctx context.Context) error {
	var made struct {
		Devices []struct {
			DeviceID string `json:"device_id"`
		} `json:"devices"`
	}
	if err := b.post(ctx, "/devices/list", nil, &made); err != nil {
		return err
	}
	if err := b.post(ctx, "/access_codes/create", map[string]any{
		"device_id": made.Devices[0].DeviceID,
		"code":      "4711",
		"name":      "Guest",
		"sync":      true,
	}, nil); err != nil {
		return err
	}
	for path, params := range map[string]map[string]any{
		"/user_identities/create":  {"full_name": "Jane"},
		"/connect_webviews/create": {},
	} {
		if err := b.post(ctx, path, params, nil); err != nil {
			return err
		}
	}
	if err := b.copies(
		ctx,
		"connected_accounts",
		"connected_account_id",
		"true",
		`'due_at', null, 'address_mac', null, 'display_name', 'Copy'`,
		1,
	); err != nil {
		return err
	}
	if err := b.pool.QueryRow(ctx, "select connected_account_id::text from connected_accounts where display_name = "+
		"'Copy'").Scan(&b.account); err != nil {
		return err
	}
	if err := b.copies(
		ctx,
		"devices",
		"device_id",
		"true",
		fmt.Sprintf(`'due_at', null, 'connected_account_id', '%s'`, b.account),
		1,
	); err != nil {
		return err
	}
	if err := b.pool.QueryRow(
		ctx,
		"select device_id::text from devices where connected_account_id = $1",
		b.account,
	).Scan(
		&b.device,
	); err != nil {
		return err
	}
	return b.prepareSystem(ctx)
}

// prepareSystem connects an access system with its users, and copies it.
func (b *listBed) prepareSystem(ctx context.Context) error {
	if _, err := b.app.Access.Accounts.ConnectAccount(ctx, account.NewAccount{
		WorkspaceID:  b.app.Sandbox.WorkspaceID,
		Adapter:      account.SandboxAccessAdapter,
		DisplayName:  "Access systems",
		Capabilities: []string{account.AccessControl},
		Config:       []byte(`{"key":"bench"}`),
	}); err != nil {
		return err
	}
	for users := 0; users == 0; {
		if err := b.pool.QueryRow(ctx, "select count(*) from acs_users").Scan(&users); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := b.copies(
		ctx,
		"acs_systems",
		"acs_system_id",
		"true",
		fmt.Sprintf(`'due_at', null, 'connected_account_id', '%s'`, b.account),
		1,
	); err != nil {
		return err
	}
	return b.pool.QueryRow(
		ctx,
		"select acs_system_id::text from acs_systems where connected_account_id = $1",
		b.account,
	).Scan(
		&b.system,
	)
}

// copies copies a row of a table n times, with all its columns.
func (b *listBed) copies(ctx context.Context, table, id, where, changes string, n int) error {
	const statement = `insert into %[1]s select copy.* from (select t from %[1]s t where %[3]s order by created_at limit 1) o,
		generate_series(1, %[5]d) n, lateral jsonb_populate_record(o.t, jsonb_build_object('%[2]s', gen_random_uuid(), %[4]s)) copy`
	_, err := b.pool.Exec(ctx, fmt.Sprintf(statement, table, id, where, changes, n))
	return err
}

// fill creates the rows of a list.
func (b *listBed) fill(ctx context.Context, l list, rows int) error {
	where, changes := l.where, l.changes
	switch l.table {
	case "devices":
		where, changes = where+" and connected_account_id = '"+b.account+"'", changes+`, 'due_at', null`
	case "user_identities", "connect_webviews":
	case "acs_users", "acs_entrances":
		changes += fmt.Sprintf(", 'acs_system_id', '%s'", b.system)
	case "connected_accounts":
		where = "connected_account_id = '" + b.account + "'"
	default:
		changes += fmt.Sprintf(", 'device_id', '%s'", b.device)
	}
	if err := b.copies(ctx, l.table, l.id, where, changes, rows); err != nil {
		return err
	}
	_, err := b.pool.Exec(ctx, "vacuum analyze "+l.table)
	return err
}

// walk reads a list to its end. It returns the cursors of all pages but the first.
func (b *listBed) walk(ctx context.Context, l list) (cursors []string, rows int, err error) {
	for cursor := ""; ; {
		n, next, err := b.page(ctx, l, cursor)
		if err != nil {
			return nil, 0, err
		}
		rows += n
		if next == "" {
			return cursors, rows, nil
		}
		cursor = next
		cursors = append(cursors, cursor)
	}
}

// ends measures the first and the last full pages alternately, in ms each.
func (b *listBed) ends(ctx context.Context, l list, cursors []string, rounds int) (first, last []float64, err error) {
	const each = 20
	if len(cursors) < 2*each+1 {
		return nil, nil, fmt.Errorf("%d pages are too few to compare", len(cursors)+1)
	}
	read := func(some []string) (float64, error) {
		began := time.Now()
		for _, cursor := range some {
			if _, _, err := b.page(ctx, l, cursor); err != nil {
				return 0, err
			}
		}
		return time.Since(began).Seconds() * 1000 / float64(len(some)), nil
	}
	begin := append([]string{""}, cursors[:each-1]...)
	end := cursors[len(cursors)-each-1 : len(cursors)-1] // the very last page may be short
	for range rounds {
		f, err := read(begin)
		if err != nil {
			return nil, nil, err
		}
		e, err := read(end)
		if err != nil {
			return nil, nil, err
		}
		first, last = append(first, f), append(last, e)
	}
	return first, last, nil
}

func (b *listBed) page(ctx context.Context, l list, cursor string) (rows int, next string, err error) {
	params := maps.Clone(l.params)
	if params == nil {
		params = map[string]any{}
	}
	params["limit"] = pageOf
	if cursor != "" {
		params["page_cursor"] = cursor
	}
	var out map[string]json.RawMessage
	if err := b.post(ctx, l.path, params, &out); err != nil {
		return 0, "", err
	}
	var items []json.RawMessage
	var page struct {
		Next *string `json:"next_page_cursor"`
	}
	if err := json.Unmarshal(out[l.key], &items); err != nil {
		return 0, "", err
	}
	if err := json.Unmarshal(out["pagination"], &page); err != nil || page.Next == nil {
		return len(items), "", err
	}
	return len(items), *page.Next, nil
}

func (b *listBed) post(ctx context.Context, path string, params map[string]any, out any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.app.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, res.Status, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}
