// Command terraform-provider-deviceaccess is the plugin that Terraform starts.
package main

import (
	"cmp"
	"flag"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider"
)

// version is set by the build.
var version = "dev"

// The provider has a small live heap and much garbage, so the runtime's default runs the garbage collector all the
// time.
const (
	// collectAt is the GC percentage.
	collectAt = 800

	// memoryLimit is the size of the heap, in bytes, above which the collector runs as often as necessary.
	memoryLimit = 72 << 20
)

func main() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(collectAt)
		debug.SetMemoryLimit(memoryLimit)
	}
	setLogLevels()
	debug := flag.Bool("debug", false, "wait for a debugger, and print how Terraform attaches to this process")
	flag.Parse()
	var options []tf6server.ServeOpt
	if *debug { // the developer ends the process
		options = append(options, tf6server.WithManagedDebug())
	} else {
		endWithTerraform()
	}
	if err := tf6server.Serve(
		"registry.terraform.io/deviceaccess/deviceaccess",
		provider.NewServer(version),
		options...); err != nil {
		log.Fatal(err)
	}
}

// endWithTerraform ends the provider with Terraform and not earlier. A CI system ends a job with SIGTERM to all of
// its processes: Terraform then stops gracefully, and stores created objects if the provider still answers. A killed
// Terraform does not end its providers, so the provider ends when its parent process changes.
func endWithTerraform() {
	signal.Ignore(syscall.SIGTERM)
	terraform := os.Getppid()
	go func() {
		for range time.Tick(time.Second) {
			if os.Getppid() != terraform {
				os.Exit(1)
			}
		}
	}()
}

// setLogLevels limits the loggers to the levels that Terraform shows. By default they log each step of each call, which
// Terraform reads and drops: a third of the cost of a plan.
func setLogLevels() {
	level := cmp.Or(os.Getenv("TF_LOG_PROVIDER"), os.Getenv("TF_LOG"), "OFF") // as Terraform decides
	libraries := cmp.Or(os.Getenv("TF_LOG_SDK"), level)
	for name, level := range map[string]string{
		"TF_LOG_PROVIDER_DEVICEACCESS": level,
		"TF_LOG_SDK":                   libraries,
		"TF_LOG_SDK_PROTO":             libraries,
		"TF_LOG_SDK_FRAMEWORK":         libraries,
	} {
		if os.Getenv(name) == "" {
			os.Setenv(name, level) //nolint:errcheck // the name is well-formed
		}
	}
}
