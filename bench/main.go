// Command bench measures the server and the provider against floors on the same machine in the same run, in turns, and
// prints one table of ratios: absolute figures say more about the machine than about the program.
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

// options are those of all parts.
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

// part is what can be measured by itself.
type part struct {
	name    string
	usual   bool // measured unless others are asked for
	measure func(context.Context, options) ([]figure, error)
}

var parts = []part{
	{"api", true, measureAPI},
	{"webhooks", true, func(ctx context.Context, o options) ([]figure, error) {
		return measureWebhooks(ctx, o.rounds, o.length)
	}},
	{"terraform", true, measureTerraform},
	{"imports", true, measureImports},
	{"guesses", true, measureGuesses},
	{"lists", false, func(ctx context.Context, o options) ([]figure, error) {
		return measureLists(ctx, o.rounds, o.rows, o.only)
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
	names := flag.String("part", strings.Join(usual, ","), "what is measured: "+strings.Join(all, ", "))
	flag.IntVar(&o.rounds, "rounds", 7, "how often each side is measured; Terraform at most 3 times")
	flag.DurationVar(&o.length, "length", 2*time.Second, "of one measurement")
	flag.IntVar(&o.clients, "clients", 32, "connections that ask at once")
	flag.IntVar(&o.rows, "rows", 1_000_000, "of each table whose list is measured")
	flag.StringVar(&o.only, "only", "", "measure only the operations of parts api and lists whose path contains this")
	flag.BoolVar(&o.costs, "costs", false, "say what each request of part api takes of the processors and of PostgreSQL's log")
	flag.StringVar(&o.sizes, "sizes", "200,1000", "how many resources a configuration of Terraform has")
	flag.StringVar(&o.terraform, "terraform", "terraform", "the command to measure")
	profile := flag.String("cpuprofile", "", "write a CPU profile of everything to this file")
	flag.Parse()
	app.Tune() // as the server does; the floor has it, too
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := profiled(*profile, func() error { return run(ctx, strings.Split(*names, ","), o) })
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
			return fmt.Errorf("there is no part %q", name)
		}
		measured, err := parts[i].measure(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		figures = append(figures, measured...)
	}
	if len(figures) == 0 { // what was measured has a table of its own
		return nil
	}
	fmt.Println()
	return errors.Join(printTable(os.Stdout, figures), judge(figures))
}

// profiled runs f, with a profile of the processors in a file unless its name is empty.
func profiled(file string, f func() error) error {
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

// progress tells who waits what was found.
func progress(f figure) {
	fmt.Fprintf(os.Stderr, "  %s: %s to %s, ratio %.2f\n", f.what, f.floor, f.ours, median(f.ratios))
}
