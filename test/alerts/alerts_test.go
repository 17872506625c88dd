package alerts

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// added are labels and metrics that are Prometheus' own.
var added = []string{"instance", "job", "up"}

// Each alert fires where it is to, and nowhere else.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	all, _ := alerts(t)
	for _, a := range all {
		for _, fires := range []bool{true, false} {
			tried := false
			for _, c := range cases {
				tried = tried || c.about == a.Alert && c.fires == fires
			}
			if !tried {
				t.Errorf("there is no case in which %s fires: %t", a.Alert, fires)
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
				t.Errorf("%v fire, and expected are %v", got, want)
			}
		})
	}
}

// scraped is a case in which Prometheus reaches the servers, unless it says otherwise.
func scraped(series string) string {
	if !strings.Contains(series, "up{job=") {
		series = "up{job=\"deviceaccess\", instance=\"a\"} 1x120\n" + strings.TrimSpace(series)
	}
	return series
}

// The metrics and labels of which alerts are made, and the cases above, are those of a real server. Of one that is well no alert is raised,
// and of one whose database takes no writes the one that says so.
func TestAlertsAreMadeOfWhatAServerTells(t *testing.T) {
	t.Parallel()
	s := serve(t)
	code := fmt.Sprintf(`{"device_id":%q}`, s.device())
	s.is(http.StatusOK, http.MethodPost, s.Key, "/access_codes/create", code)
	s.until("a client that hangs up is counted", func() bool {
		s.hangUp("/access_codes/create", strings.Replace(code, "}", `,"sync":true}`, 1))
		return s.scrape().of("deviceaccess_http_requests_total", "operation", "/access_codes/create", "status", "499") > 0
	})
	s.is(http.StatusOK, http.MethodGet, s.Key, "/health", "")
	s.is(http.StatusUnauthorized, http.MethodPost, "seam_wrong", "/devices/list", "{}")
	s.is(http.StatusTooManyRequests, http.MethodPost, "seam_wrong", "/devices/list", "{}")
	well := s.scrape()
	s.takesNoWrites()
	s.is(http.StatusServiceUnavailable, http.MethodGet, s.Key, "/health", "")
	s.is(http.StatusInternalServerError, http.MethodPost, s.Key, "/access_codes/create", code)
	var broken scrape
	s.until("all of its connections are new", func() bool {
		broken = s.scrape()
		return broken.of("deviceaccess_database_up") == 1 && broken.of("deviceaccess_health", "part", "devices") == 0 && broken.of("deviceaccess_health", "part", "database") == 2
	})

	told := maps.Clone(well)
	maps.Copy(told, broken)
	all, _ := alerts(t)
	for _, a := range all {
		of := map[string]bool{}
		parser.Inspect(a.expr, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				told.has(t, a.Alert, v, of)
			}
			return nil
		})
		parser.Inspect(a.expr, func(n parser.Node, _ []parser.Node) error {
			if g, ok := n.(*parser.AggregateExpr); ok {
				for _, label := range g.Grouping {
					if !of[label] && !slices.Contains(added, label) {
						t.Errorf("%s: what it is made of has no label %s", a.Alert, label)
					}
				}
			}
			return nil
		})
	}
	for _, c := range cases {
		for line := range strings.Lines(strings.TrimSpace(c.series)) {
			series, _, err := language.ParseSeriesDesc(strings.TrimSpace(line))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			its := labels.NewBuilder(series).Del(added...).Labels()
			if _, is := told[its.String()]; !is && series.Get(model.MetricNameLabel) != "up" {
				t.Errorf("%s/%s: no server tells %s", c.about, c.what, its)
			}
		}
	}
	if got := fired(t, scraped(replayed(well, well))); len(got) > 0 {
		t.Errorf("of a server that is well %v fire", got)
	}
	if got := fired(t, scraped(replayed(well, broken))); !slices.Equal(got, []string{"DeviceAccessDown"}) {
		t.Errorf("of a server whose database takes no writes %v fire", got)
	}
}

// is asks until it is answered with a status.
func (s *instance) is(status int, method, key, path, body string) {
	s.Helper()
	s.until(fmt.Sprintf("%s is answered %d", path, status), func() bool {
		got, _ := s.ask(method, s.URL+path, key, body)
		return got == status
	})
}

// of is what a series says.
func (r scrape) of(name string, pairs ...string) float64 {
	return r[labels.FromStrings(append(pairs, model.MetricNameLabel, name)...).String()].value
}

// has says whether there are series which a rule names, and adds the labels that they have.
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
		t.Errorf("%s: no server tells %s", rule, v)
	}
}

// replayed is a server that tells the same for half an hour, and then something else.
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
			if one, is := r[series]; is {
				return fmt.Sprintf("%gx%d", one.value, n)
			}
			return "stale _x" + fmt.Sprint(n)
		}
		fmt.Fprintf(&lines, "%s%s %s %s\n", name, labels.NewBuilder(s.of).Del(model.MetricNameLabel).Set("instance", "a").Labels(), values(before, 29), values(after, 60))
	}
	return lines.String()
}
