package main

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func allowWritesCommand() *cli.Command {
	return &cli.Command{
		Name:      "allow-writes",
		Usage:     "let the server write to the devices of an account whose adapter never met the vendor",
		ArgsUsage: "ID",
		Description: "Accounts of such vendors start out read-only: their devices are unmanaged, and no client can manage\n" +
			"them. The command manages all devices of the account, also new ones. Codes that are on them stay, and are\n" +
			"unmanaged. `accounts check` shows what works before.",
		Flags: append([]cli.Flag{&cli.BoolFlag{
			Name:  "keep-unmanaged",
			Usage: "manage no device, but let clients of the API manage single ones",
		}}, databaseFlags()...),
		Action: onAccount(allowWrites),
	}
}

func allowWrites(ctx context.Context, c *cli.Command, a *app.Admin, account app.ConnectedAccount) error {
	if c.Bool("keep-unmanaged") {
		if err := a.Access.Accounts.AllowWrites(ctx, account.ID, false); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "Clients can manage devices of the account with /devices/unmanaged/update.")
		fmt.Println("Changed", account.ID)
		return nil
	}
	n, err := a.ManageDevices(ctx, account.Account)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The server manages %d more devices of the account, and new ones.\n", n)
	fmt.Println("Changed", account.ID)
	return nil
}
