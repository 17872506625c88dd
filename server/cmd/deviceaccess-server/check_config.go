package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// checkConfig prints the result of each check of a configuration. It returns an error if a check fails.
func checkConfig(ctx context.Context, c *cli.Command, config app.Config) error {
	results := append(checkSettings(ctx, c, config), app.Check(ctx, config)...)
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	failed := 0
	for _, r := range results {
		state, text := "ok", r.Detail
		if r.Err != nil {
			state, text = "FAILED", r.Err.Error()
			failed++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", state, r.Name, printable(text))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed; nothing was changed", failed, len(results))
	}
	return nil
}

// checkSettings describes where the settings come from, and checks that the server can read the files that this command
// has read for it.
func checkSettings(ctx context.Context, c *cli.Command, config app.Config) []app.CheckResult {
	settings := app.CheckResult{Name: "settings", Detail: "flags and variables"}
	path := cmp.Or(c.String("config"), defaultConfig)
	if _, err := os.Stat(path); err == nil {
		settings.Detail = "flags, variables, and " + path
		settings.Err = config.CheckReadable(ctx, path)
	}
	results := []app.CheckResult{settings}
	if len(c.StringSlice("vendor-client-secret-file")) > 0 {
		results = append(results, checkVendorSecrets(ctx, c, config))
	}
	return results
}
