// Package hostile attacks the real server, as a process of its own, while a healthy client, a healthy lock and a healthy
// webhook endpoint are worked, and counts what that costs: the most memory that the server has held, the healthy
// requests that failed, and how much longer the others took. The attackers are one more process, at the lowest priority:
// what is measured is the server, not who gets the processors.
package abuse

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// MostMemory is what the server may hold in any attack, in MiB.
const MostMemory = 256

// Options of Run.
type Options struct {
	Program   string        // the server's binary
	DSN       string        // of a database of its own
	Neighbor  string        // DSN of one for another server, which has each attack first; empty: there is none
	Dir       string        // for its files
	Window    time.Duration // of an attack, at least
	Compare   bool          // with the calm before it
	Endpoints int           // that misbehave
	Only      string        // parts of names with commas between; empty: all
	Log       io.Writer     // the server's
	Out       io.Writer     // what is going on; nil: nobody is told
}

// Row is what one attack has come to.
type Row struct {
	Name string
	Note string
	Reach
	Peak        float64 // MiB
	Processor   float64 // seconds of it that the server took in a second
	Calm, Under Figures
	Elsewhere   Figures // while another server on the machine is attacked
	Worked      int     // codes that were set on the healthy lock and told of, during the attack
}

// Figures of the healthy client.
type Figures struct {
	OK, Failed int
	Failures   []string // the first of them
	P50, P99   time.Duration
	Code       time.Duration // p50, from the creation of a code until its event arrives
}

// scenario is one attack. Several begin together.
type scenario struct {
	name    string
	attacks []string
}

// lasts is for how long it is tried, where others are tried for window.
func (s scenario) lasts(window time.Duration) time.Duration {
	if slices.Equal(s.attacks, []string{"slow-headers"}) {
		return max(window, slowWindow)
	}
	return window
}

// scenarios are all there are, in the order in which they are tried.
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
	{"lists that nobody reads", []string{"never-read"}},
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
	{"webhooks of many workspaces", []string{"houses"}},
	{"all at once", []string{"device-clouds", "gateways", "access-clouds", "endpoints", "slow-headers", "slow-bodies", "silent", "idle", "endless-bodies", "header-flood",
		"json", "held-bodies", "held-headers", "pipelining", "never-read", "waits", "keys", "logins", "workspaces", "houses", "guesses", "pushes", "known-pushes"}},
}

// Run tries one attack after another. It fails where they could not be tried; what they did is in the rows, see Row.Faults.
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
		row, err := b.try(ctx, s)
		if err == nil && row.delays() != nil { // the machine may have had something else to do: what stays is told
			fmt.Fprintf(o.Out, "%s\n    once more, for that is too slow\n", row)
			row, err = b.try(ctx, s)
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

// Header names the columns of a Row as text.
const Header = "attack                          conns  peak MiB  CPU/s   healthy ok failed     p50      p99   ratio of p50 and p99   codes, ratio   attacked elsewhere, p50 and p99   ratio to that"

// Ratios are how much longer the healthy requests took, of p50 and p99.
func (r Row) Ratios() (p50, p99 float64) {
	return ratio(r.Under.P50, r.Calm.P50), ratio(r.Under.P99, r.Calm.P99)
}

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (r Row) String() string {
	p50, p99 := r.Ratios()
	text := fmt.Sprintf("%-31s %5d  %8.0f  %5.2f   %10d %6d %6.1fms %6.1fms         %5.2f  %5.2f   %4d, %.2f", r.Name, r.Connections, r.Peak, r.Processor, r.Under.OK, r.Under.Failed,
		ms(r.Under.P50), ms(r.Under.P99), p50, p99, r.Worked, ratio(r.Under.Code, r.Calm.Code))
	if e := r.Elsewhere; e.OK > 0 {
		text += fmt.Sprintf("   %22.1fms %6.1fms   %6.2f  %5.2f", ms(e.P50), ms(e.P99), ratio(r.Under.P50, e.P50), ratio(r.Under.P99, e.P99))
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
