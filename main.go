// Command terraform-provider-deviceaccess is the provider as Terraform starts it.
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

// What the provider needs at once is little, and what it throws away is much: with the runtime's own setting the
// collector runs all the time. It runs rarely until there is much to collect.
const (
	collectAt   = 800      // percent of what is needed
	memoryLimit = 72 << 20 // bytes, from where on the collector runs as often as it must; the program itself comes on top
)

func main() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(collectAt)
		debug.SetMemoryLimit(memoryLimit)
	}
	logAsAsked()
	debugged := flag.Bool("debug", false, "wait for a debugger, and print how Terraform attaches to this process")
	flag.Parse()
	var options []tf6server.ServeOpt
	if *debugged { // by somebody who ends it as any program
		options = append(options, tf6server.WithManagedDebug())
	} else {
		stayWithTerraform()
	}
	if err := tf6server.Serve("registry.terraform.io/deviceaccess/deviceaccess", provider.NewServer(version), options...); err != nil {
		log.Fatal(err)
	}
}

// stayWithTerraform has the provider end with Terraform, and not before. Who ends a job sends SIGTERM to all of its
// processes: Terraform then stops gracefully, and what was being created is in the state if the provider still answers.
// A Terraform that was killed ends nobody, and does not show but in that somebody else is our parent.
func stayWithTerraform() {
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

// logAsAsked has the loggers write what Terraform will show. By themselves they write each step of each call, for
// Terraform to read and throw away: a third of what a plan costs both of them.
func logAsAsked() {
	level := cmp.Or(os.Getenv("TF_LOG_PROVIDER"), os.Getenv("TF_LOG"), "OFF") // as Terraform decides
	libraries := cmp.Or(os.Getenv("TF_LOG_SDK"), level)
	for name, level := range map[string]string{
		"TF_LOG_PROVIDER_DEVICEACCESS": level, "TF_LOG_SDK": libraries, "TF_LOG_SDK_PROTO": libraries, "TF_LOG_SDK_FRAMEWORK": libraries,
	} {
		if os.Getenv(name) == "" {
			os.Setenv(name, level) //nolint:errcheck // the name is well-formed
		}
	}
}
