package main

import (
	"context"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/bench/terraform"
)

// measureTerraform returns two lines for each step: ours to the floor, and ours to the peer.
func measureTerraform(ctx context.Context, o options) (figures []figure, err error) {
	measured, err := terraform.Measure(ctx, o.terraform, o.sizes, min(o.rounds, 3))
	for _, f := range measured {
		toPeer := slices.Clone(f.Ratios)
		for i := range toPeer {
			toPeer[i] /= f.PeerRatios[i]
		}
		figures = append(figures,
			figure{
				what:   f.What + ", to terraform_data",
				floor:  f.Floor,
				ours:   f.Ours,
				ratios: f.Ratios,
				aim:    aim{atMost: f.AtMost, known: f.Known},
			},
			figure{
				what:   f.What + ", to a provider that does nothing",
				floor:  f.Peer,
				ours:   f.Ours,
				ratios: toPeer,
			})
	}
	return figures, err
}
