package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/registry"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// vendorClientFlags returns the flags of the operator's registrations at vendors.
func vendorClientFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{
			Name:     "vendor-client",
			Sources:  env("DEVICEACCESS_VENDOR_CLIENT"),
			Category: "Server",
			Usage:    "identify this installation at a vendor by `ADAPTER=ID`, the client id of your registration; repeatable",
		},
		&cli.StringSliceFlag{
			Name:     "vendor-client-secret-file",
			Sources:  env("DEVICEACCESS_VENDOR_CLIENT_SECRET_FILE"),
			Category: "Server",
			Usage:    "read the client secret of a registration from `ADAPTER=FILE`; repeatable",
		},
	}
}

// vendorClients returns the operator's registrations at vendors, by adapter. Registrations of public clients have no
// secret.
func vendorClients(c *cli.Command) (map[string]adapter.Client, error) {
	clients := map[string]adapter.Client{}
	for _, text := range c.StringSlice("vendor-client") {
		name, id, found := strings.Cut(text, "=")
		if !found || name == "" || id == "" {
			return nil, usagef("--vendor-client: %q is not of the form ADAPTER=ID", text)
		}
		if err := checkAdapter(name); err != nil {
			return nil, err
		}
		clients[name] = adapter.Client{ID: id}
	}
	for _, text := range c.StringSlice("vendor-client-secret-file") {
		name, file, found := strings.Cut(text, "=")
		one, known := clients[name]
		if !found || !known {
			return nil, usagef(
				"--vendor-client-secret-file: %q is not of the form ADAPTER=FILE with an adapter of --vendor-client",
				text,
			)
		}
		secret, err := os.ReadFile(file) //nolint:gosec // the operator names the file
		if err != nil {
			return nil, usagef("--vendor-client-secret-file: %w", app.ExplainPermission(err))
		}
		if one.Secret = strings.TrimSpace(string(secret)); one.Secret == "" {
			return nil, usagef(
				"--vendor-client-secret-file: %s is empty; put the client secret of %s in it",
				file,
				name,
			)
		}
		clients[name] = one
	}
	return clients, nil
}

// checkVendorSecrets checks that the server can read the client secrets.
func checkVendorSecrets(ctx context.Context, c *cli.Command, config app.Config) app.CheckResult {
	files := c.StringSlice("vendor-client-secret-file")
	result := app.CheckResult{Name: "vendor client secrets", Detail: fmt.Sprintf("%d can be read", len(files))}
	for _, text := range files {
		_, file, _ := strings.Cut(text, "=")
		if result.Err = config.CheckReadable(ctx, file); result.Err != nil {
			break
		}
	}
	return result
}

// checkAdapter fails unless a vendor has the adapter.
func checkAdapter(name string) error {
	var known []string
	for _, v := range registry.All() {
		if v.Adapter == name {
			return nil
		}
		known = append(known, v.Adapter)
	}
	return usagef("--vendor-client: there is no adapter %q; the adapters are %s", name, strings.Join(known, ", "))
}

func pushURLCommand() *cli.Command {
	return &cli.Command{
		Name:      "push-url",
		Usage:     "show the URL to enter at a vendor that sends the events of all accounts to one URL; it is a secret",
		ArgsUsage: "ADAPTER",
		Flags: append([]cli.Flag{&cli.StringFlag{
			Name:    "public-url",
			Sources: env("DEVICEACCESS_PUBLIC_URL"),
			Usage:   "the `URL` at which vendors reach the server, as for serve",
		}}, databaseFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.String("public-url") == "" { // it may be in the configuration file
				return usagef("missing required flag: --public-url; run %s --help for the flags", c.FullName())
			}
			return withAdmin(ctx, c, func(a *app.Admin) error {
				url, err := a.AppPushURL(ctx, c.Args().First(), c.String("public-url"))
				if err == nil {
					fmt.Println(url)
				}
				return err
			})
		},
	}
}
