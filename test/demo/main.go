// Command demo runs the main use case once, from an empty machine to an empty lock, and describes each step. It starts
// the server with simulated locks, and lets the real terraform adopt, create, change, and destroy codes. It checks each
// result through the API and in the lock's own memory. It exits with 1 at the first unexpected result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func main() {
	server := flag.String("server", "bin/deviceaccess-server", "the server's binary")
	plugin := flag.String("provider", "bin/terraform-provider-deviceaccess", "the provider's binary")
	source := flag.String("source", "examples/demo", "the Terraform files")
	terraform := flag.String("terraform", "terraform", "the Terraform CLI, 1.11 or newer")
	flag.Parse()
	testenv.Unset()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{
		server:    *server,
		plugin:    *plugin,
		source:    *source,
		terraform: *terraform,
	}
	err := d.run(ctx)
	err = errors.Join(err, d.clean())
	if err != nil {
		fmt.Fprintf(os.Stderr, "\n✗ %v\n", err)
		os.Exit(1)
	}
	fmt.Println("\n✓ All results were as expected. No process is left running.")
}
