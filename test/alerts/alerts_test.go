package alerts

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// added are labels and metrics of Prometheus itself.
var added = []string{"instance", "job", "up"}

// Each alert fires in its cases, and in no others.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	for _, a := range alerts(t) {
		for _, fires := range []bool{true, false} {
			tried := false
			for _, c := range cases {
				tried = tried || c.about == a.Alert && c.fires == fires
			}
			if !tried {
				t.Errorf("no case for %s with fires=%t", a.Alert, fires)
			}
		}
	}
	for _, c := range cases {
		t.Run(c.about+"/"+c.what, func(t *testing.T) {
			t.Parallel()
			var want []string
			if c.fires {
				want = []string{c.about}
			}
			if got := fired(t, scraped(c.series)); !slices.Equal(got, want) {
				t.Errorf("%v fire, want %v", got, want)
			}
		})
	}
}

// scraped adds a reachable server to a case without one.
func scraped(series string) string {
	if !strings.Contains(series, "up{job=") {
		series = "up{job=\"deviceaccess\", instance=\"a\"} 1x120\n" + strings.TrimSpace(series)
	}
	return series
}

// The metrics and labels of the alerts, of the dashboard, and of the cases are those of a real server. A healthy server raises no alert.
// A server whose database is read-only raises the one for that.
func TestAlertsUseMetricsOfServer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	code := fmt.Sprintf(`{"device_id":%q}`, s.device())
	s.is(http.StatusOK, http.MethodPost, s.Key, "/access_codes/create", code)
	s.until("a client that hangs up is counted", func() bool {
		s.hangUp("/access_codes/create", strings.Replace(code, "}", `,"sync":true}`, 1))
		return s.scrape().
			of("deviceaccess_http_requests_total", "operation", "/access_codes/create", "status", "499") >
			0
	})
	s.is(http.StatusOK, http.MethodGet, s.Key, "/health", "")
	s.is(http.StatusUnauthorized, http.MethodPost, "seam_wrong", "/devices/list", "{}")
	s.is(http.StatusTooManyRequests, http.MethodPost, "seam_wrong", "/devices/list", "{}")
	well := s.scrape()
	s.takesNoWrites()
	s.is(http.StatusServiceUnavailable, http.MethodGet, s.Key, "/health", "")
	s.is(http.StatusServiceUnavailable, http.MethodPost, s.Key, "/access_codes/create", code)
	var broken scrape
	s.until("all of its connections are new", func() bool {
		broken = s.scrape()
		return broken.of("deviceaccess_database_up") == 1 && broken.of("deviceaccess_inventory_up") == 1 &&
			broken.of("deviceaccess_health", "part", "devices") == 0 &&
			broken.of("deviceaccess_health", "part", "database") == 2
	})

	exposed := maps.Clone(well)
	maps.Copy(exposed, broken)
	for _, a := range alerts(t) {
		exposed.supports(t, a.Alert, a.expr)
	}
	for title, expr := range panels(t) {
		exposed.supports(t, title, expr)
	}
	for _, c := range cases {
		for line := range strings.Lines(strings.TrimSpace(c.series)) {
			series, _, err := language.ParseSeriesDesc(strings.TrimSpace(line))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			its := labels.NewBuilder(series).Del(added...).Labels()
			if _, is := exposed[its.String()]; !is && series.Get(model.MetricNameLabel) != "up" {
				t.Errorf("%s/%s: no server exposes %s", c.about, c.what, its)
			}
		}
	}
	if got := fired(t, scraped(replayed(well, well))); len(got) > 0 {
		t.Errorf("%v fire for a healthy server", got)
	}
	if got := fired(t, scraped(replayed(well, broken))); !slices.Equal(got, []string{"DeviceAccessDown"}) {
		t.Errorf("%v fire for a server with a read-only database", got)
	}
}

// is repeats a request until its response has a status.
func (s *instance) is(status int, method, key, path, body string) {
	s.Helper()
	s.until(fmt.Sprintf("%s has status %d", path, status), func() bool {
		got, _ := s.ask(method, s.URL+path, key, body)
		return got == status
	})
}

// of returns the value of a series.
func (r scrape) of(name string, pairs ...string) float64 {
	return r[labels.FromStrings(append(pairs, model.MetricNameLabel, name)...).String()].value
}

// supports checks that the metrics and labels of an expression exist.
func (r scrape) supports(t *testing.T, rule string, expr parser.Expr) {
	t.Helper()
	of := map[string]bool{}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			r.has(t, rule, v, of)
		}
		return nil
	})
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if g, ok := n.(*parser.AggregateExpr); ok {
			for _, label := range g.Grouping {
				if !of[label] && !slices.Contains(added, label) {
					t.Errorf("%s: its metrics have no label %s", rule, label)
				}
			}
		}
		return nil
	})
}

// has checks that the series of a rule exist, and adds their labels to of.
func (r scrape) has(t *testing.T, rule string, v *parser.VectorSelector, of map[string]bool) {
	t.Helper()
	if slices.Contains(added, v.Name) {
		return
	}
	found := false
	for _, s := range r {
		matches := s.of.Get(model.MetricNameLabel) == v.Name
		for _, m := range v.LabelMatchers {
			matches = matches && s.of.Has(m.Name) && m.Matches(s.of.Get(m.Name))
		}
		if found = found || matches; matches {
			s.of.Range(func(l labels.Label) { of[l.Name] = true })
		}
	}
	if !found {
		t.Errorf("%s: no server exposes %s", rule, v)
	}
}

// replayed returns the series of a server that reports before for half an hour, and then after.
func replayed(before, after scrape) string {
	var lines strings.Builder
	both := maps.Clone(before)
	maps.Copy(both, after)
	for series, s := range both {
		name := s.of.Get(model.MetricNameLabel)
		if !strings.HasPrefix(name, "deviceaccess_") {
			continue
		}
		values := func(r scrape, n int) string {
			one, is := r[series]
			switch {
			case is && (math.IsInf(one.value, 0) || math.IsNaN(one.value)): // the notation cannot repeat them
				return strings.Repeat(fmt.Sprintf("%g ", one.value), n+1)
			case is:
				return fmt.Sprintf("%gx%d", one.value, n)
			}
			return "stale _x" + fmt.Sprint(n)
		}
		fmt.Fprintf(
			&lines,
			"%s%s %s %s\n",
			name,
			labels.NewBuilder(s.of).Del(model.MetricNameLabel).Set("instance", "a").Labels(),
			values(before, 29),
			values(after, 60),
		)
	}
	return lines.String()
}
