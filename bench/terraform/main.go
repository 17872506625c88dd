// Command terraform measures what a configuration of many webhooks costs Terraform, as ratios to the floor: the same
// number of terraform_data, which Terraform keeps without any provider. In between is the peer, a provider that does
// nothing, with the schemas of ours: what it costs more than the floor is the price of being a provider. All are
// measured in turns, on a tmpfs where there is one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func main() {
	rounds := flag.Int("rounds", 3, "how often everything is measured")
	sizes := flag.String("sizes", "200,1000", "how many resources a configuration has")
	terraform := flag.String("terraform", "terraform", "the command to measure")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the server to this file")
	flag.Parse()
	app.TuneMemory() // as the server does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer f.Close()
		defer pprof.StopCPUProfile()
	}
	if err := run(ctx, *terraform, *sizes, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, terraform, sizes string, rounds int) error {
	b, err := newBed(ctx, terraform)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("%d rounds in turns, -parallelism=%d, in %s\n", rounds, parallelism, b.dir)
	for _, size := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of resources", size)
		}
		if err := b.measure(ctx, n, rounds); err != nil {
			return err
		}
	}
	return nil
}
