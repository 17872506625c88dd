// Command bench measures the server and the provider against floors, which do the same work without them, on the same
// machine in the same run. It alternates between both, and prints one table of ratios: absolute figures depend more on
// the machine than on the program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// options are the options of all parts.
type options struct {
	rounds    int
	length    time.Duration
	clients   int
	rows      int
	only      string
	costs     bool
	sizes     string
	terraform string
}

// part is a separate measurement.
type part struct {
	name    string
	usual   bool // measured by default
	measure func(context.Context, options) ([]figure, error)
}

var parts = []part{
	{"api", true, measureAPI},
	{"webhooks", true, func(ctx context.Context, o options) ([]figure, error) {
		return measureWebhooks(ctx, o.rounds, o.length)
	}},
	{"codes", true, measureCodes},
	{"terraform", true, measureTerraform},
	{"imports", true, measureImports},
	{"guesses", true, measureGuesses},
	{"lists", false, func(ctx context.Context, o options) ([]figure, error) {
		return measureLists(ctx, o.rounds, o.rows, o.only)
	}},
	{"console", false, func(ctx context.Context, o options) ([]figure, error) {
		return measureConsole(ctx, o.rounds, o.rows, o.only)
	}},
	{"hostile", false, measureHostile},
}

func main() {
	var usual, all []string
	for _, p := range parts {
		if all = append(all, p.name); p.usual {
			usual = append(usual, p.name)
		}
	}
	var o options
	names := flag.String("part", strings.Join(usual, ","), "parts to measure: "+strings.Join(all, ", "))
	flag.IntVar(&o.rounds, "rounds", 7, "number of measurements of each side; at most 3 for Terraform")
	flag.DurationVar(&o.length, "length", 2*time.Second, "duration of one measurement")
	flag.IntVar(&o.clients, "clients", 32, "concurrent connections")
	flag.IntVar(&o.rows, "rows", 1_000_000, "rows of each table in part lists")
	flag.StringVar(&o.only, "only", "", "in parts api and lists, measure only operations whose path contains this")
	flag.BoolVar(&o.costs, "costs", false, "in part api, print the processor time and the PostgreSQL log of each "+
		"request")
	flag.StringVar(&o.sizes, "sizes", "200,1000", "numbers of resources in the Terraform configurations")
	flag.StringVar(&o.terraform, "terraform", "terraform", "the Terraform command to measure")
	profile := flag.String("cpuprofile", "", "write a CPU profile of everything to this file")
	flag.Parse()
	// like the server; the floor gets the same setting
	app.Tune()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := withProfile(*profile, func() error { return run(ctx, strings.Split(*names, ","), o) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string, o options) error {
	var figures []figure
	for _, name := range names {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return fmt.Errorf("unknown part %q", name)
		}
		measured, err := parts[i].measure(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		figures = append(figures, measured...)
	}
	if len(figures) == 0 { // the part has printed its own table
		return nil
	}
	fmt.Println()
	return errors.Join(printTable(os.Stdout, figures), checkAims(figures))
}

// withProfile runs f, and writes a CPU profile to file unless its name is empty.
func withProfile(file string, f func() error) error {
	if file == "" {
		return f()
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return errors.Join(err, out.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, out.Close())
}

// printFigure prints a figure while others are still being measured.
func printFigure(f figure) {
	fmt.Fprintf(os.Stderr, "  %s: %s to %s, ratio %.2f\n", f.what, f.floor, f.ours, median(f.ratios))
}
