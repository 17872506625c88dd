package terraform

import (
	"fmt"
	"os"
	"slices"
)

// report prints a line for each step and side to standard error. The first side is the floor.
func report(n int, sides []*side) {
	fmt.Fprintf(
		os.Stderr,
		"\n%-16s %8s %22s   %s\n",
		fmt.Sprint(n, " resources"),
		"wall",
		"times the floor",
		"CPU of terraform, of its provider, of the server",
	)
	for i, step := range steps {
		fmt.Fprintf(os.Stderr, "%s, aim: at most %.1f times the floor\n", step.name, step.most)
		for _, s := range sides {
			wall := ratios(s.costs[i], sides[0].costs[i])
			fmt.Fprintf(os.Stderr, "  %-14s %6.2f s %22s %10.2f s %10.2f s %10.2f s\n", s.name,
				median(s.costs[i], func(c cost) float64 { return c.wall.Seconds() }),
				fmt.Sprintf("%.2f (%.2f to %.2f)", middle(wall), slices.Min(wall), slices.Max(wall)),
				median(s.costs[i], func(c cost) float64 { return (c.all - c.provider.cpu).Seconds() }),
				median(s.costs[i], func(c cost) float64 { return c.provider.cpu.Seconds() }),
				median(s.costs[i], func(c cost) float64 { return c.server.Seconds() }))
		}
	}
	fmt.Fprintf(os.Stderr, "peak memory of a provider, aim: at most %d MiB\n", maxMemoryMiB)
	for _, s := range sides[1:] {
		mib, processes := s.peak()
		fmt.Fprintf(os.Stderr, "  %-14s %6d MiB; at most %d of its processes per command\n", s.name, mib, processes)
	}
}

// summary returns the figures of report. The sides are the floor, the peer, and ours.
func summary(n int, sides []*side) (figures []Figure) {
	at := func(s *side, step int) string {
		return fmt.Sprintf("%.2f s", median(s.costs[step], func(c cost) float64 { return c.wall.Seconds() }))
	}
	for i, step := range steps {
		figures = append(figures, Figure{
			What:       fmt.Sprintf("terraform %s, %d webhooks", step.name, n),
			Floor:      at(sides[0], i),
			Peer:       at(sides[1], i),
			Ours:       at(sides[2], i),
			PeerRatios: ratios(sides[1].costs[i], sides[0].costs[i]),
			Ratios:     ratios(sides[2].costs[i], sides[0].costs[i]),
			AtMost:     step.most,
			Known:      step.known,
		})
	}
	return figures
}

// peak returns the peak memory of a provider process, and the maximum number of them per command.
func (s *side) peak() (mib, processes int) {
	for _, took := range slices.Concat(s.costs...) {
		mib, processes = max(mib, (took.provider.peak+1023)/1024), max(processes, took.provider.processes)
	}
	return mib, processes
}

func ratios(over, under []cost) (ratios []float64) {
	for i := range over {
		ratios = append(ratios, over[i].wall.Seconds()/under[i].wall.Seconds())
	}
	return ratios
}

func median(costs []cost, of func(cost) float64) float64 {
	var values []float64
	for _, c := range costs {
		values = append(values, of(c))
	}
	return middle(values)
}

func middle(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
