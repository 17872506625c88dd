package main

import (
	"strings"
	"testing"
)

func TestTableSaysWhatFallsShort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ratios  []float64
		aim     aim
		verdict string
	}{
		"fast enough":       {[]float64{0.5, 0.6, 0.9}, aim{atLeast: 0.6}, "kept"},
		"too slow":          {[]float64{0.5, 0.59, 0.9}, aim{atLeast: 0.6}, "SHORT"},
		"short enough":      {[]float64{1.1, 1.2}, aim{atMost: 1.2}, "kept"},
		"too long":          {[]float64{1.1, 1.2, 1.3, 1.4}, aim{atMost: 1.2}, "SHORT"},
		"as long as it":     {[]float64{1.0, 0.95}, aim{0.95, 1.05}, "kept"},
		"shorter than it":   {[]float64{0.94, 0.94}, aim{0.95, 1.05}, "SHORT"},
		"longer than it":    {[]float64{1.06, 1.06}, aim{0.95, 1.05}, "SHORT"},
		"nothing aimed at":  {[]float64{4}, aim{}, ""},
		"of an even number": {[]float64{0.5, 0.7}, aim{atLeast: 0.6}, "kept"},
	} {
		var out strings.Builder
		if err := printTable(&out, []figure{{what: name, floor: "1/s", ours: "2/s", ratios: c.ratios, aim: c.aim}}); err != nil {
			t.Fatal(err)
		}
		if line := strings.TrimSpace(out.String()); !strings.HasSuffix(line, strings.TrimSpace(c.aim.String()+"   "+c.verdict)) {
			t.Errorf("%s: %q does not end in %q", name, line, c.verdict)
		}
	}
}
