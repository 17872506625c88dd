package main

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// hasFigures looks at the lines of a part that was measured for a moment: whether it measures is what is tested.
func hasFigures(t *testing.T, figures []figure, err error, lines, rounds int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(figures) < lines {
		t.Errorf("%d lines, want at least %d", len(figures), lines)
	}
	for _, f := range figures {
		if n := len(f.ratios); n != rounds && n != 1 || f.floor == "" || f.ours == "" {
			t.Errorf("%s: %q to %q in %d rounds, want %d", f.what, f.floor, f.ours, len(f.ratios), rounds)
		}
	}
}

func TestReplicaIsMeasured(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	figures, err := measureReplicas(t.Context(), options{rounds: 1, length: 20 * time.Millisecond}, 0.0002)
	hasFigures(t, figures, err, 10, 1) // 12, where a system tells of the time of other processes
}

func TestPartitionsAreMeasured(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	figures, err := measurePartitions(t.Context(), options{rounds: 1, asks: 3}, 0.0002)
	hasFigures(t, figures, err, 13, 1)
}

func TestAuditLogIsMeasured(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	figures, err := measureAudit(t.Context(), options{rounds: 1, rows: 2_000})
	hasFigures(t, figures, err, 8, 1)
	if space := figures[len(figures)-1]; space.ratios[0] <= 1 {
		t.Errorf("%s: %s and %s, want more with the index", space.what, space.floor, space.ours)
	}
}
