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
	results := append([]app.CheckResult{{Name: "settings", Detail: settingsSource(c)}}, app.Check(ctx, config)...)
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

// settingsSource describes where the settings come from.
func settingsSource(c *cli.Command) string {
	path := cmp.Or(c.String("config"), defaultConfig)
	if _, err := os.Stat(path); err != nil {
		return "flags and variables"
	}
	return "flags, variables, and " + path
}
