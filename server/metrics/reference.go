package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// definition describes a metric to Prometheus and to the reference in the documentation.
type definition struct {
	name   string // with the prefix of all metrics
	help   string
	labels []string
}

// definitions are all metrics of this package, in the order of their declarations.
var definitions []definition

func define(name, help string, labels ...string) definition {
	d := definition{"deviceaccess_" + name, help, labels}
	definitions = append(definitions, d)
	return d
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := define(name, help, labels...)
	return prometheus.NewDesc(d.name, d.help, d.labels, nil)
}

func (d definition) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.name, Help: d.help}, d.labels)
}

func (d definition) gauge(value func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: d.name, Help: d.help}, value)
}

func (d definition) histogram(buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.name, Help: d.help, Buckets: buckets}, d.labels)
}

// Reference returns the table of all metrics in Markdown, sorted by name.
func Reference() string {
	sorted := slices.SortedFunc(
		slices.Values(definitions),
		func(a, b definition) int { return cmp.Compare(a.name, b.name) },
	)
	var table strings.Builder
	table.WriteString("| metric | meaning |\n|---|---|\n")
	for _, d := range sorted {
		name := d.name
		if len(d.labels) > 0 {
			name += "{" + strings.Join(d.labels, ",") + "}"
		}
		fmt.Fprintf(&table, "| `%s` | %s |\n", name, d.help)
	}
	return table.String()
}
