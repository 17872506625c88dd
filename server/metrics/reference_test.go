package metrics_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/metrics"
)

var update = flag.Bool("update", false, "write the table of metrics into the runbook")

// The table of metrics in the runbook is that of the code.
func TestReference_IsFresh(t *testing.T) {
	t.Parallel()
	const runbook = "../docs/runbook.md"
	const begin, end = "<!-- table of metrics: go test ./server/metrics -update -->\n", "<!-- end of the table -->"
	data, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table of metrics between %q and %q", runbook, begin, end)
	}
	fresh := before + begin + "\n" + metrics.Reference() + "\n" + end + after
	if fresh == string(data) {
		return
	}
	if !*update {
		t.Fatalf("%s has an old table of metrics: run go test ./server/metrics -update", runbook)
	}
	if err := os.WriteFile(runbook, []byte(fresh), 0o644); err != nil { //nolint:gosec // documentation
		t.Fatal(err)
	}
}
