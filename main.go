// Command terraform-provider-deviceaccess is the provider as Terraform starts it.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider"
)

// version is set by the build.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger, and print how Terraform attaches to this process")
	flag.Parse()
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/deviceaccess/deviceaccess",
		Debug:   *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}
