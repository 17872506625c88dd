package store_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// The SQL statements of the runbook run.
func TestTheRunbookAsksWhatTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../server/docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, storetest.New(t))
	queries := regexp.MustCompile(`-c "([^"]+)"|`+"`(select [^`]+)`").FindAllSubmatch(text, -1)
	if len(queries) < 3 {
		t.Fatalf("only %d queries are found", len(queries))
	}
	for _, q := range queries {
		if _, err := db.Pool.Exec(t.Context(), string(q[1])+string(q[2])); err != nil {
			t.Errorf("%s%s: %v", q[1], q[2], err)
		}
	}
}
