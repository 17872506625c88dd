package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// side is a folder with a configuration: ours or the floor.
type side struct {
	bed  *bed
	dir  string
	peak int // KiB of memory that a process of the provider has taken at most; 0 where that cannot be read
}

const floorConfig = `resource "terraform_data" "floor" {
  count = %d
  input = "https://hooks.example.com/${count.index}"
}
`

const ourConfig = `terraform {
  required_providers {
    deviceaccess = {
      source = "deviceaccess/deviceaccess"
    }
  }
}

provider "deviceaccess" {
  endpoint = %q
  api_key  = %q
}

resource "deviceaccess_webhook" "ours" {
  count = %d
  url   = "https://hooks.example.com/${count.index}"
}
`

func (b *bed) side(ctx context.Context, name, config string) (*side, error) {
	s := &side{bed: b, dir: filepath.Join(b.dir, name)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "main.tf"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	_, err := s.command(ctx, "init", "-plugin-dir="+b.mirror())
	return s, err
}

// steps are measured one after the other: what is planned is there already, so it is refreshed and has no changes.
var steps = []struct {
	name string
	args []string
	most float64 // times the floor
}{
	{"apply", []string{"apply", "-auto-approve"}, 1.5},
	{"plan", []string{"plan"}, 1.5},
	{"destroy", []string{"destroy", "-auto-approve"}, 1.3},
}

func (b *bed) measure(ctx context.Context, n, rounds int) error {
	floor, err := b.side(ctx, fmt.Sprint("floor-", n), fmt.Sprintf(floorConfig, n))
	if err != nil {
		return err
	}
	ours, err := b.side(ctx, fmt.Sprint("ours-", n), fmt.Sprintf(ourConfig, b.app.URL, b.app.Sandbox.APIKey, n))
	if err != nil {
		return err
	}
	measured := make([]comparison, len(steps))
	for range rounds {
		for i, step := range steps {
			f, err := floor.command(ctx, step.args...)
			if err != nil {
				return err
			}
			o, err := ours.command(ctx, step.args...)
			if err != nil {
				return err
			}
			measured[i].add(f, o)
		}
	}
	fmt.Printf("\n%d webhooks against as many terraform_data\n", n)
	for i, step := range steps {
		fmt.Printf("%-8s %s, to be at most %.1f\n", step.name, measured[i], step.most)
	}
	if ours.peak > 0 {
		fmt.Printf("memory   %d MiB at the peak of the provider, to be at most 120\n", (ours.peak+1023)/1024)
	}
	return nil
}

// cost is how long a command took, and how much of the processors it and the provider took meanwhile. The latter says
// more on a machine that has other work.
type cost struct{ wall, cpu time.Duration }

// comparison is what each side took, round by round.
type comparison struct{ floor, ours, ratio, floorCPU, ourCPU []float64 }

func (c *comparison) add(floor, ours cost) {
	c.floor, c.ours = append(c.floor, floor.wall.Seconds()), append(c.ours, ours.wall.Seconds())
	c.ratio = append(c.ratio, ours.wall.Seconds()/floor.wall.Seconds())
	c.floorCPU, c.ourCPU = append(c.floorCPU, floor.cpu.Seconds()), append(c.ourCPU, ours.cpu.Seconds())
}

func (c comparison) String() string {
	return fmt.Sprintf("floor %6.2f s (%.2f s of CPU)   ours %6.2f s (%.2f s of CPU)   ratio %.2f (%.2f to %.2f)",
		median(c.floor), median(c.floorCPU), median(c.ours), median(c.ourCPU), median(c.ratio), slices.Min(c.ratio), slices.Max(c.ratio))
}

// command runs terraform and says what it took.
func (s *side) command(ctx context.Context, args ...string) (cost, error) {
	if args[0] != "init" {
		args = append(slices.Clone(args), fmt.Sprint("-parallelism=", parallelism))
	}
	cmd := exec.CommandContext(ctx, s.bed.terraform, append(args, "-input=false", "-no-color")...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &out, &out
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	ended := make(chan struct{})
	watched := make(chan int)
	go func() { watched <- watch(ended) }()
	err := cmd.Wait()
	took := time.Since(begin)
	close(ended)
	s.peak = max(s.peak, <-watched)
	if err != nil {
		return cost{}, fmt.Errorf("terraform %q: %w\n%s", args, err, out.String())
	}
	return cost{took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
