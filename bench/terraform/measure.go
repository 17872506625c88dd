package terraform

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

// side is a directory with a configuration, and the costs of its commands.
type side struct {
	bed   *bed
	name  string
	dir   string
	costs [][]cost // costs of each step, by round
}

const floorConfig = `resource "terraform_data" "floor" {
  count = %d
  input = "https://hooks.example.com/${count.index}"
}
`

// webhookConfig is the configuration of ours and of the peer, which has our schemas.
const webhookConfig = `terraform {
  required_providers {
    deviceaccess = {
      source = "deviceaccess/%s"
    }
  }
}

provider "deviceaccess" {
  endpoint = %q
  api_key  = %q
}

resource "deviceaccess_webhook" "many" {
  count = %d
  url   = "https://hooks.example.com/${count.index}"
}
`

func (b *bed) side(ctx context.Context, name string, n int) (*side, error) {
	config := fmt.Sprintf(floorConfig, n)
	if name != floor {
		config = fmt.Sprintf(webhookConfig, name, b.app.URL, b.app.Sandbox.APIKey, n)
	}
	s := &side{
		bed:   b,
		name:  name,
		dir:   filepath.Join(b.dir, fmt.Sprint(name, "-", n)),
		costs: make([][]cost, len(steps)),
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "main.tf"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	_, err := s.command(ctx, "init", "-plugin-dir="+b.mirror())
	return s, err
}

// steps are measured one after another. The plan step finds existing resources, so it refreshes them and has no
// changes.
var steps = []struct {
	name  string
	args  []string
	most  float64 // aim, as a ratio to the floor
	known float64 // the known ratio in server/docs/performance.md
}{
	{"apply", []string{"apply", "-auto-approve"}, 1.5, 2.63},
	{"plan", []string{"plan"}, 1.5, 3.67},
	{"destroy", []string{"destroy", "-auto-approve"}, 1.3, 2.6},
}

const maxMemoryMiB = 120 // MiB

func (b *bed) measure(ctx context.Context, n, rounds int) (sides []*side, err error) {
	for _, name := range []string{floor, peer, ours} {
		s, err := b.side(ctx, name, n)
		if err != nil {
			return nil, err
		}
		sides = append(sides, s)
	}
	for range rounds {
		for i, step := range steps {
			for _, s := range sides {
				took, err := s.command(ctx, step.args...)
				if err != nil {
					return nil, err
				}
				s.costs[i] = append(s.costs[i], took)
			}
		}
	}
	return sides, nil
}

// cost is the duration of a command, and the processor time of Terraform, its providers, and the server. Processor time
// is more reliable on a busy machine.
type cost struct {
	wall, server time.Duration
	all          time.Duration // processor time without the server
	provider     use
}

// command runs terraform and returns its cost.
func (s *side) command(ctx context.Context, args ...string) (cost, error) {
	if args[0] != "init" {
		args = append(slices.Clone(args), fmt.Sprint("-parallelism=", parallelism))
	}
	cmd := exec.CommandContext(ctx, s.bed.terraform, append(args, "-input=false", "-no-color")...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &out, &out
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	server, begin := s.bed.serverCPU(), time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	ended, watched := make(chan struct{}), make(chan use)
	go func() { watched <- watch(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	took := time.Since(begin)
	close(ended)
	provider := <-watched
	if err != nil {
		return cost{}, fmt.Errorf("terraform %q: %w\n%s", args, err, out.String())
	}
	all := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return cost{
		wall:     took,
		server:   s.bed.serverCPU() - server,
		all:      all,
		provider: provider,
	}, nil
}
