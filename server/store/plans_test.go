package store_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Plans are made when tables are empty, too, such as a partition whose time has not come, and kept when they are not any
// more: none reads a table as a whole. What is done for each delivery reads no more of a partition than is of its webhook.
func TestNoPlanReadsATableThatIsEmptyNow(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "analyze; set plan_cache_mode = force_generic_plan; set enable_partition_pruning = off", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	whole := map[string][]string{
		"DropRetiredDataKeys": {"data_keys"},          // a few
		"ListDataKeys":        {"data_keys"},          // a few
		"EraseWorkspace":      {"connected_accounts"}, // those that were deleted, too; of a sandbox
		"FindDevices":         {"devices"},            // only where planned without its parameters, of which is_managed tells the index, and that costs too much
		"GetDeviceByName":     {"devices"},            // the same
	}
	query, parameter, read, part, narrowed := regexp.MustCompile(`^-- name: (\w+) `), regexp.MustCompile(`\$(\d+)`), regexp.MustCompile(`Seq Scan on (\w+)`), regexp.MustCompile(`Index (Only )?Scan .*on (events|deliveries)_`), regexp.MustCompile(`Index Cond: .*(webhook_id = |event_id = ANY)`)
	for _, text := range store.QueryTexts(t) {
		name, n := query.FindStringSubmatch(text)[1], 0
		for _, m := range parameter.FindAllStringSubmatch(text, -1) {
			i, _ := strconv.Atoi(m[1])
			n = max(n, i)
		}
		execute := "execute of_" + name
		if n > 0 {
			execute += "(" + strings.TrimSuffix(strings.Repeat("null,", n), ",") + ")"
		}
		if _, err := conn.Exec(t.Context(), fmt.Sprintf("prepare of_%s as %s", name, text), pgx.QueryExecModeSimpleProtocol); err != nil {
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
			if m := part.FindString(line); m != "" && (name == "RecordAttempts" || name == "FanOut") && !narrowed.MatchString(lines[i+1]) {
				got = append(got, m)
			}
		}
		if !slices.Equal(got, whole[name]) {
			t.Errorf("%s reads all of %v, want %v:\n%s", name, got, whole[name], strings.Join(lines, "\n"))
		}
	}
}
