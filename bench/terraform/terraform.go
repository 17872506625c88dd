// Package terraform measures the cost of a configuration with many webhooks, as ratios to a floor: the same number of
// terraform_data resources, which need no provider. Between them is the peer, a provider with our schemas that does
// nothing: its cost above the floor is that of any provider. All are measured alternately, on a tmpfs if there is one.
package terraform

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Figure is the duration of one Terraform step with n resources.
type Figure struct {
	// What names the step and the number of resources.
	What               string
	Floor, Peer, Ours  string    // medians
	PeerRatios, Ratios []float64 // ratios to the floor, by round
	AtMost             float64   // the aim of the ratio
	Known              float64   // the known ratio
}

// Measure runs apply, plan, and destroy with configurations of the sizes, which are comma-separated numbers. It prints
// details to standard error.
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
