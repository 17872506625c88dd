// Package alerts tests the alert rules with the rule engine of Prometheus, and the dashboard, on metrics of a server.
package alerts

import (
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const (
	runbook   = "../../server/docs/runbook.md"
	ruleFile  = "../../server/docs/monitoring/alerts.yaml"
	dashboard = "../../server/docs/monitoring/dashboard.json"
	// every is the default interval of scrapes and evaluations in Prometheus.
	every = time.Minute
)

var language = parser.NewParser(parser.Options{})

// alert is an alert rule.
type alert struct {
	rulefmt.Rule
	expr parser.Expr
}

// alerts returns the rules.
func alerts(t *testing.T) (all []alert) {
	t.Helper()
	groups, problems := rulefmt.Parse(
		read(t, ruleFile),
		false,
		model.UTF8Validation,
		language,
		slog.New(slog.DiscardHandler),
	)
	if len(problems) > 0 || len(groups.Groups) != 1 {
		t.Fatalf("the rules cannot be read: %v", problems)
	}
	for _, r := range groups.Groups[0].Rules {
		expr, err := language.ParseExpr(r.Expr)
		if err != nil || r.Alert == "" {
			t.Fatalf("%q: %v", r.Alert, err)
		}
		all = append(all, alert{r, expr})
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fired returns the alerts that fire at any time on series in promtool's notation, with one value a minute.
func fired(t *testing.T, series string) []string {
	t.Helper()
	const length = 2 * time.Hour
	stored := promqltest.LoadedStorage(t, "load "+model.Duration(every).String()+"\n"+strings.TrimSpace(series))
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, Parser: language})
	t.Cleanup(func() { _ = engine.Close() })
	query := rules.EngineQueryFunc(engine, stored)
	found := map[string]bool{}
	for _, a := range alerts(t) {
		rule := rules.NewAlertingRule(
			a.Alert,
			a.expr,
			time.Duration(a.For),
			time.Duration(a.KeepFiringFor),
			labels.FromMap(a.Labels),
			labels.FromMap(a.Annotations),
			labels.EmptyLabels(),
			"",
			true,
			slog.New(slog.DiscardHandler),
		)
		for at := time.Unix(0, 0); at.Sub(time.Unix(0, 0)) <= length; at = at.Add(every) {
			if _, err := rule.Eval(t.Context(), 0, at, query, nil, 0); err != nil {
				t.Fatalf("%s: %v", a.Alert, err)
			}
			for _, active := range rule.ActiveAlerts() {
				if active.State == rules.StateFiring {
					found[a.Alert] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Each rule has a severity and leads to a section of the runbook.
func TestAlertsLeadToTheRunbook(t *testing.T) {
	t.Parallel()
	all, text := alerts(t), string(read(t, runbook))
	if len(all) < 5 {
		t.Fatalf("only %d alerts are found", len(all))
	}
	for _, a := range all {
		if s := a.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s: severity %q", a.Alert, s)
		}
		if part := a.Annotations["runbook"]; part == "" || !strings.Contains(text, "\n## "+part) {
			t.Errorf("%s refers to %q, which is not a section of the runbook", a.Alert, part)
		}
		if a.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", a.Alert)
		}
	}
}
