package main

import (
	"strings"
	"testing"
)

func TestTableShowsVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ratios  []float64
		aim     aim
		verdict string
	}{
		"fast enough":       {[]float64{0.5, 0.6, 0.9}, aim{atLeast: 0.6}, "kept"},
		"too slow":          {[]float64{0.5, 0.59, 0.9}, aim{atLeast: 0.6}, "SHORT"},
		"far too slow":      {[]float64{0.3, 0.47, 0.9}, aim{atLeast: 0.6}, "FAR SHORT"},
		"slow as ever":      {[]float64{0.2, 0.21, 0.9}, aim{atLeast: 0.6, known: 0.25}, "short, as known"},
		"slow as never":     {[]float64{0.1, 0.12, 0.9}, aim{atLeast: 0.6, known: 0.25}, "FAR SHORT"},
		"slow no more":      {[]float64{0.5, 0.6, 0.9}, aim{atLeast: 0.6, known: 0.25}, "kept"},
		"short enough":      {[]float64{1.1, 1.2}, aim{atMost: 1.2}, "kept"},
		"too long":          {[]float64{1.1, 1.2, 1.3, 1.4}, aim{atMost: 1.2}, "SHORT"},
		"far too long":      {[]float64{1.1, 1.51, 1.6}, aim{atMost: 1.2}, "FAR SHORT"},
		"long as ever":      {[]float64{2.6, 2.7}, aim{atMost: 1.5, known: 2.6}, "short, as known"},
		"long as never":     {[]float64{5.3, 5.4}, aim{atMost: 1.5, known: 2.6}, "FAR SHORT"},
		"as long as it":     {[]float64{1.0, 0.95}, aim{atLeast: 0.95, atMost: 1.05}, "kept"},
		"shorter than it":   {[]float64{0.94, 0.94}, aim{atLeast: 0.95, atMost: 1.05}, "SHORT"},
		"longer than it":    {[]float64{1.06, 1.06}, aim{atLeast: 0.95, atMost: 1.05}, "SHORT"},
		"nothing aimed at":  {[]float64{4}, aim{}, ""},
		"of an even number": {[]float64{0.5, 0.7}, aim{atLeast: 0.6}, "kept"},
	} {
		var out strings.Builder
		figures := []figure{{
			what:   name,
			floor:  "1/s",
			ours:   "2/s",
			ratios: c.ratios,
			aim:    c.aim,
		}}
		if err := printTable(&out, figures); err != nil {
			t.Fatal(err)
		}
		if err := checkAims(figures); (err != nil) != (c.verdict == "FAR SHORT") ||
			err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the command ends with %v, which is %q", name, err, c.verdict)
		}
		if line := strings.TrimSpace(out.String()); !strings.HasSuffix(line, strings.TrimSpace(c.aim.String()+"   "+
			c.verdict)) {
			t.Errorf("%s: %q does not end in %q", name, line, c.verdict)
		}
	}
}
