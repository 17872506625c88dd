// Package abuse attacks the real server, in its own process, while a healthy client, lock, and webhook endpoint are in
// use. It measures the peak memory of the server, failed healthy requests, and the delay of the others. The attackers
// run in another process at the lowest priority, so that the measurements do not depend on processor time that the
// attackers take.
package abuse

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// MaxMemory is the server's memory limit in any attack, in MiB.
const MaxMemory = 256

// Options configures Run.
type Options struct {
	// Program is the server's binary.
	Program string
	// DSN is the URL of an empty database.
	DSN string
	// Neighbor is the DSN of another server, which receives each attack first; empty disables this.
	Neighbor string
	// Dir is for files.
	Dir string
	// Window is the minimum duration of an attack.
	Window time.Duration
	// Compare measures the calm before each attack.
	Compare bool
	// Endpoints is the number of misbehaving endpoints.
	Endpoints int
	// Only has parts of scenario names with commas between them; empty means all.
	Only string
	// Log receives the server's log.
	Log io.Writer
	// Out receives progress; nil discards it.
	Out io.Writer
}

// Row is the result of one scenario.
type Row struct {
	Name string
	Note string
	Reach
	Peak        float64 // MiB
	Processor   float64 // processor seconds of the server per second
	Calm, Under Figures
	// Elsewhere is measured while another server on the machine is attacked.
	Elsewhere Figures
	Stored    Stored
	// Worked counts codes that were set on the healthy lock and reported during the attack.
	Worked int
}

// Stored is what visitors with a publishable key have stored by the end of an attack.
type Stored struct {
	Webviews int // the most of one client session
	Bytes    int // of the largest metadata of a webview
	Keys     int // stored answers to requests with an Idempotency-Key
	Answer   int // bytes of the largest of them
	Entries  int // of the audit log
}

// Figures are the measurements of the healthy client.
type Figures struct {
	OK, Failed int
	Failures   []string // the first failures
	P50, P99   time.Duration
	// Code is the median from the creation of a code until its event arrives.
	Code time.Duration
}

// scenario is a set of attacks that start together.
type scenario struct {
	name    string
	attacks []string
}

// lasts returns the duration of the scenario, if others last for window.
func (s scenario) lasts(window time.Duration) time.Duration {
	if slices.Equal(s.attacks, []string{"slow-headers"}) {
		return max(window, slowWindow)
	}
	return window
}

// scenarios are all scenarios in their order.
var scenarios = []scenario{
	{"headers, a byte a second", []string{"slow-headers"}},
	{"bodies, a byte a second", []string{"slow-bodies"}},
	{"connections that say nothing", []string{"silent"}},
	{"idle connections", []string{"idle"}},
	{"gigabytes of body", []string{"endless-bodies"}},
	{"megabytes of headers", []string{"header-flood", "http2"}},
	{"deep, wide and huge JSON", []string{"json"}},
	{"large bodies, never ended", []string{"held-bodies"}},
	{"large headers, never ended", []string{"held-headers"}},
	{"pipelining", []string{"pipelining"}},
	{"lists that are never read", []string{"never-read"}},
	{"waits that are abandoned", []string{"waits"}},
	{"waits for one key", []string{"keys"}},
	{"pages to log in on", []string{"logins"}},
	{"bad credentials", []string{"guesses"}},
	{"device clouds", []string{"device-clouds"}},
	{"gateways", []string{"gateways"}},
	{"clouds of access systems", []string{"access-clouds"}},
	{"pushes and the simulated cloud", []string{"pushes"}},
	{"pushes that know the secret", []string{"known-pushes"}},
	{"webhook endpoints", []string{"endpoints"}},
	{"workspaces made without end", []string{"workspaces"}},
	{"visitors with a publishable key", []string{"visitors"}},
	{"webhooks of many workspaces", []string{"houses"}},
	{
		"all at once",
		[]string{
			"device-clouds",
			"gateways",
			"access-clouds",
			"endpoints",
			"slow-headers",
			"slow-bodies",
			"silent",
			"idle",
			"endless-bodies",
			"header-flood",
			"json",
			"held-bodies",
			"held-headers",
			"pipelining",
			"never-read",
			"waits",
			"keys",
			"logins",
			"workspaces",
			"visitors",
			"houses",
			"guesses",
			"pushes",
			"known-pushes",
		},
	},
}

// Run runs one scenario after another. It returns an error if a scenario cannot run. See Row.Faults for the results.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	b, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	for _, s := range scenarios {
		if !wanted(o.Only, s.name) {
			continue
		}
		row, err := b.measure(ctx, s)
		// the machine may have been busy, so the second result counts
		if err == nil && row.delays() != nil {
			fmt.Fprintf(o.Out, "%s\n    once more, for that is too slow\n", row)
			row, err = b.measure(ctx, s)
		}
		if err != nil {
			return rows, fmt.Errorf("%s: %w", s.name, err)
		}
		rows = append(rows, row)
		fmt.Fprintln(o.Out, row)
	}
	return rows, nil
}

func wanted(only, name string) bool {
	for part := range strings.SplitSeq(only, ",") {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// Header contains the column names of Row.String.
const Header = "attack                          conns  peak MiB  CPU/s   healthy ok failed     p50      p99   " +
	"ratio of p50 and p99   codes, ratio   attacked elsewhere, p50 and p99   ratio to that"

// Ratios returns how much longer the healthy requests took, for p50 and p99.
func (r Row) Ratios() (p50, p99 float64) {
	return ratio(r.Under.P50, r.Calm.P50), ratio(r.Under.P99, r.Calm.P99)
}

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// String returns the row as text, aligned with Header.
func (r Row) String() string {
	p50, p99 := r.Ratios()
	text := fmt.Sprintf(
		"%-31s %5d  %8.0f  %5.2f   %10d %6d %6.1fms %6.1fms         %5.2f  %5.2f   %4d, %.2f",
		r.Name,
		r.Connections,
		r.Peak,
		r.Processor,
		r.Under.OK,
		r.Under.Failed,
		ms(r.Under.P50),
		ms(r.Under.P99),
		p50,
		p99,
		r.Worked,
		ratio(r.Under.Code, r.Calm.Code),
	)
	if e := r.Elsewhere; e.OK > 0 {
		text += fmt.Sprintf(
			"   %22.1fms %6.1fms   %6.2f  %5.2f",
			ms(e.P50),
			ms(e.P99),
			ratio(r.Under.P50, e.P50),
			ratio(r.Under.P99, e.P99),
		)
	}
	if r.Note != "" {
		text += "\n    " + r.Note
	}
	for _, f := range r.Under.Failures {
		text += "\n    failed: " + f
	}
	return text
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
