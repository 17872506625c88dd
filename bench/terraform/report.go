package main

import (
	"fmt"
	"slices"
)

// report prints a line for each step and side. The first side is the floor.
func report(n int, sides []*side) {
	fmt.Printf("\n%-16s %8s %22s   %s\n", fmt.Sprint(n, " resources"), "wall", "times the floor", "CPU of terraform, of its provider, of the server")
	for i, step := range steps {
		fmt.Printf("%s, to be at most %.1f times the floor\n", step.name, step.most)
		for _, s := range sides {
			wall := ratios(s.costs[i], sides[0].costs[i])
			fmt.Printf("  %-14s %6.2f s %22s %10.2f s %10.2f s %10.2f s\n", s.name,
				median(s.costs[i], func(c cost) float64 { return c.wall.Seconds() }),
				fmt.Sprintf("%.2f (%.2f to %.2f)", middle(wall), slices.Min(wall), slices.Max(wall)),
				median(s.costs[i], func(c cost) float64 { return (c.all - c.provider.cpu).Seconds() }),
				median(s.costs[i], func(c cost) float64 { return c.provider.cpu.Seconds() }),
				median(s.costs[i], func(c cost) float64 { return c.server.Seconds() }))
		}
	}
	fmt.Printf("memory of a provider at its peak, to be at most %d MiB\n", mostMemory)
	for _, s := range sides[1:] {
		kib, processes := 0, 0
		for _, took := range slices.Concat(s.costs...) {
			kib, processes = max(kib, took.provider.peak), max(processes, took.provider.processes)
		}
		fmt.Printf("  %-14s %6d MiB; a command starts at most %d of its processes\n", s.name, (kib+1023)/1024, processes)
	}
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
