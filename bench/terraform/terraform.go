// Package terraform measures what a configuration of many webhooks costs Terraform, as ratios to the floor: the same
// number of terraform_data, which Terraform keeps without any provider. In between is the peer, a provider that does
// nothing, with the schemas of ours: what it costs more than the floor is the price of being a provider. All are
// measured in turns, on a tmpfs where there is one.
package terraform

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Figure is what one step of Terraform took with so many resources, by the clock.
type Figure struct {
	What               string
	Floor, Peer, Ours  string    // medians
	PeerRatios, Ratios []float64 // to the floor, round by round
	AtMost             float64   // what the ratio was to be
	Known              float64   // what it is known to be
}

// Measure runs apply, plan and destroy with configurations of the sizes, which are numbers with commas between them.
// The details go to standard error.
func Measure(ctx context.Context, terraform, sizes string, rounds int) (figures []Figure, err error) {
	b, err := newBed(ctx, terraform)
	if err != nil {
		return nil, err
	}
	defer b.close()
	fmt.Fprintf(os.Stderr, "%d rounds in turns, -parallelism=%d, in %s\n", rounds, parallelism, b.dir)
	for _, size := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number of resources", size)
		}
		sides, err := b.measure(ctx, n, rounds)
		if err != nil {
			return nil, err
		}
		report(n, sides)
		figures = append(figures, summary(n, sides)...)
	}
	return figures, nil
}
