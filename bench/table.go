package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figure is a line of the table: two sides that were measured alternately, and the ratio of ours to the floor in each
// round.
type figure struct {
	what        string
	floor, ours string // with their units
	ratios      []float64
	aim         aim
}

// aim is the range that a ratio should be in; zero means no bound. Known is the worst known ratio where
// server/docs/performance.md says that it is outside.
type aim struct{ atLeast, atMost, known float64 }

// Tolerated deviations from the aim, or from the known ratio, before the command fails. Machines differ, most in
// background work, and a round may be disturbed.
const (
	ofAim   = 0.8
	ofKnown = 0.5
)

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

const farShort = "FAR SHORT"

// verdict describes whether the median meets the aim.
func (f figure) verdict() string {
	if f.aim == (aim{}) {
		return ""
	}
	m, least, most := median(f.ratios), f.aim.atLeast, f.aim.atMost
	if (least == 0 || m >= least) && (most == 0 || m <= most) {
		return "kept"
	}
	tolerated := ofAim
	if f.aim.known > 0 {
		least, most, tolerated = min(least, f.aim.known), max(most, f.aim.known), ofKnown
	}
	switch {
	case f.aim.atLeast > 0 && m < tolerated*least, f.aim.atMost > 0 && tolerated*m > most:
		return farShort
	case f.aim.known > 0:
		return "short, as known"
	}
	return "SHORT"
}

// checkAims returns an error if a figure is far from its aim.
func checkAims(figures []figure) error {
	var fallen []string
	for _, f := range figures {
		if f.verdict() == farShort {
			fallen = append(fallen, fmt.Sprintf("%s is at %.2f", f.what, median(f.ratios)))
		}
	}
	if fallen == nil {
		return nil
	}
	return fmt.Errorf("far from the aim, or from the known ratio: %s", strings.Join(fallen, "; "))
}

// printTable prints all figures in one table.
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

// ms converts d to milliseconds.
func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
