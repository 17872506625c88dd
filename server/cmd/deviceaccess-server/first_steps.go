package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// logFirstSteps logs the commands that lead to the first real device, until each was used.
func logFirstSteps(ctx context.Context, c *cli.Command, accounts *account.Service, log *slog.Logger) error {
	done, err := accounts.FirstSteps(ctx)
	if err != nil {
		return err
	}
	data := ""
	if dir := c.String("data-dir"); dir != app.DefaultDataDir() && keepsData(c) {
		data = fmt.Sprintf(" --data-dir %q", dir)
	}
	for _, step := range []struct {
		done          bool
		text, command string
	}{
		{done.Workspace, "next step: create a workspace for real devices", "workspaces create" + data + " NAME"},
		{done.Key, "next step: create an API key for clients such as Terraform", "keys create" + data + " --name terraform"},
		{done.Account, "next step: connect a gateway or a vendor's cloud", "accounts connect --help"},
	} {
		if !step.done {
			log.Info(step.text, "command", "deviceaccess-server "+step.command)
		}
	}
	return nil
}

// printIfEmpty says on standard error what would fill an empty list.
func printIfEmpty(rows int, hint string) {
	if rows == 0 {
		fmt.Fprintln(os.Stderr, hint)
	}
}
