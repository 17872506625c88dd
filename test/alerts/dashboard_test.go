package alerts

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// panels returns the expressions of the dashboard, by the title of their panel.
func panels(t *testing.T) map[string]parser.Expr {
	t.Helper()
	var d struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr string }
			GridPos struct{ H, W, X, Y int }
		}
	}
	if err := json.Unmarshal(read(t, dashboard), &d); err != nil {
		t.Fatal(err)
	}
	out, ids := map[string]parser.Expr{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("the panel %d %q has a used identifier, does not fit, or has no expression", p.ID, p.Title)
		}
		ids[p.ID] = true
		for i, target := range p.Targets {
			expr, err := language.ParseExpr(target.Expr)
			if err != nil {
				t.Fatalf("%s: %v", p.Title, err)
			}
			out[fmt.Sprintf("%s/%d", p.Title, i)] = expr
		}
	}
	if len(out) < 10 {
		t.Fatalf("the dashboard has only %d expressions", len(out))
	}
	return out
}

func TestDashboardIsValid(t *testing.T) {
	t.Parallel()
	panels(t)
}
