package store_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Plans are made when tables are empty, too, such as a partition whose time has not come, and kept when they are not
// any more: none reads a table as a whole. What is done for each delivery reads no more of a partition than is of its
// webhook.
func TestNoPlanReadsATableThatIsEmptyNow(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(
		t.Context(),
		"analyze; set plan_cache_mode = force_generic_plan; set enable_partition_pruning = off",
		pgx.QueryExecModeSimpleProtocol,
	); err != nil {
		t.Fatal(err)
	}
	whole := map[string][]string{
		"DropRetiredDataKeys": {"data_keys"},   // a few
		"ListDataKeys":        {"data_keys"},   // a few
		"GetOldestServerKey":  {"server_keys"}, // a few
		"GetLastBackup":       {"server_keys"}, // a few
		"GetFirstSteps":       {"workspaces"},  // once, at the start of the server
		// once, by the upgrade that adds the column
		"ListCredentialsWithoutMAC":          {"credentials"},
		"ListCredentialWorkspacesWithoutMAC": {"credential_workspaces"},
		"ListClientSessionsWithoutMAC":       {"client_sessions"},
		"FindDevices": {
			"devices",
		},
		"OverviewDevices": {
			"devices",
		}, // only where planned without its parameters, of which is_managed tells the index, and that costs too much
		"GetDeviceByName": {"devices"}, // the same
	}
	eachDelivery := []string{"RecordAttempts", "FanOut"}
	query, parameter := regexp.MustCompile(`^-- name: (\w+) `), regexp.MustCompile(`\$(\d+)`)
	read, part := regexp.MustCompile(
		`Seq Scan on (\w+)`,
	), regexp.MustCompile(
		`Index (Only )?Scan .*on (events|deliveries)_`,
	)
	narrowed := regexp.MustCompile(`Index Cond: .*(webhook_id = |event_id = ANY)`)
	seen := map[string]bool{}
	for _, text := range store.QueryTexts(t) {
		name, n := query.FindStringSubmatch(text)[1], 0
		for _, m := range parameter.FindAllStringSubmatch(text, -1) {
			i, _ := strconv.Atoi(m[1])
			n = max(n, i)
		}
		seen[name] = true
		execute := "execute of_" + name
		if n > 0 {
			execute += "(" + strings.TrimSuffix(strings.Repeat("null,", n), ",") + ")"
		}
		if _, err := conn.Exec(
			t.Context(),
			fmt.Sprintf("prepare of_%s as %s", name, text),
			pgx.QueryExecModeSimpleProtocol,
		); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows, err := conn.Query(t.Context(), "explain "+execute, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for i, line := range lines {
			if m := read.FindStringSubmatch(line); m != nil {
				got = append(got, m[1])
			}
			// An index is read as a whole, too, for a join.
			if m := part.FindString(
				line,
			); m != "" && slices.Contains(eachDelivery, name) &&
				!narrowed.MatchString(strings.Join(lines[i+1:min(i+2, len(lines))], "")) {
				got = append(got, m)
			}
		}
		if !slices.Equal(got, whole[name]) {
			t.Errorf("%s reads all of %v, want %v:\n%s", name, got, whole[name], strings.Join(lines, "\n"))
		}
	}
	for _, name := range slices.AppendSeq(eachDelivery, maps.Keys(whole)) {
		if !seen[name] {
			t.Errorf("there is no query %s", name)
		}
	}
}

// A reset finds the devices of its accounts among all others.
func TestDevicesOfAResetAreFoundInAnIndex(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	if _, err := db.Pool.Exec(t.Context(), `
		insert into workspaces (workspace_id, name, is_sandbox) values (gen_random_uuid(), 'w', true);
		insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
			select gen_random_uuid(), workspace_id, 'sandbox', '', '', '' from workspaces, generate_series(1, 50);
		insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online, capabilities, flags)
			select gen_random_uuid(), workspace_id, connected_account_id, i::text, '', '', '', '', '', '', true, '{}', '{}' from connected_accounts, generate_series(1, 100) i;
		analyze`); err != nil {
		t.Fatal(err)
	}
	var account uuid.UUID
	if err := db.Pool.QueryRow(t.Context(), "select connected_account_id from connected_accounts limit 1").
		Scan(&account); err != nil {
		t.Fatal(err)
	}
	plan := explain(
		t,
		db,
		true,
		func(q *dbsqlc.Queries) error { return q.LockDevicesOfAccounts(t.Context(), []uuid.UUID{account}) },
	)
	if !strings.Contains(plan, "Index Cond: (connected_account_id = ANY") {
		t.Error(plan)
	}
}

// What is found on a device is looked for among the codes of pools that were left, not among all of its workspace.
func TestLeftPoolsAreFoundInAnIndex(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	if _, err := db.Pool.Exec(t.Context(), `
		insert into workspaces (workspace_id, name, is_sandbox) values (gen_random_uuid(), 'w', true);
		insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
			select gen_random_uuid(), workspace_id, 'sandbox', '', '', '' from workspaces;
		insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online, capabilities, flags)
			select gen_random_uuid(), workspace_id, connected_account_id, i::text, '', '', '', '', '', '', true, '{}', '{}' from connected_accounts, generate_series(1, 100) i;
		insert into access_codes (access_code_id, workspace_id, device_id, is_managed, status, vendor_ref, in_pool, desired_at)
			select gen_random_uuid(), workspace_id, device_id, true, 'set', i::text, i = 1, now() from devices, generate_series(1, 100) i;
		analyze`); err != nil {
		t.Fatal(err)
	}
	var workspace uuid.UUID
	if err := db.Pool.QueryRow(t.Context(), "select workspace_id from workspaces").Scan(&workspace); err != nil {
		t.Fatal(err)
	}
	arg := dbsqlc.ListOrphanedPoolCodesParams{
		WorkspaceID: workspace,
		Keys:        []uuid.UUID{uuid.New()},
		VendorRefs:  []string{"1", "2"},
	}
	plan := explain(
		t,
		db,
		true,
		func(q *dbsqlc.Queries) error { _, err := q.ListOrphanedPoolCodes(t.Context(), arg); return err },
	)
	if !strings.Contains(plan, "access_codes_in_pool") {
		t.Error(plan)
	}
}
