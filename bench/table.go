package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// figure is a line of the table: two sides that were measured in turns, and the ratio of ours to the other in each round.
type figure struct {
	what        string
	floor, ours string // with their units
	ratios      []float64
	aim         aim
}

// aim is what a ratio is to be at least, and at most; zero is nothing in particular.
type aim struct{ atLeast, atMost float64 }

func (a aim) String() string {
	switch {
	case a.atLeast > 0 && a.atMost > 0:
		return fmt.Sprintf("%g to %g", a.atLeast, a.atMost)
	case a.atLeast > 0:
		return fmt.Sprintf("≥ %.1f", a.atLeast)
	case a.atMost > 0:
		return fmt.Sprintf("≤ %.1f", a.atMost)
	}
	return ""
}

// verdict says whether the median keeps to the aim.
func (f figure) verdict() string {
	if f.aim == (aim{}) {
		return ""
	}
	m := median(f.ratios)
	if f.aim.atLeast > 0 && m < f.aim.atLeast || f.aim.atMost > 0 && m > f.aim.atMost {
		return "SHORT"
	}
	return "kept"
}

// printTable prints all that was measured in one table.
func printTable(w io.Writer, figures []figure) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "\tfloor\tours\tratio\t(least to most)\taim\t")
	for _, f := range figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t(%.2f to %.2f)\t%s\t%s\n", f.what, f.floor, f.ours,
			median(f.ratios), slices.Min(f.ratios), slices.Max(f.ratios), f.aim, f.verdict())
	}
	return t.Flush()
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
