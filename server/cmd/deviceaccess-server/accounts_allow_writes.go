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
		Usage:     "manage the devices of an account whose adapter never met the vendor",
		ArgsUsage: "ID",
		Description: "Accounts of such vendors start out read-only: their devices are unmanaged. The command manages all\n" +
			"devices of the account, also new ones. Codes that are on them stay, and are unmanaged. `accounts check`\n" +
			"shows what works before.",
		Flags:  databaseFlags(),
		Action: onAccount(allowWrites),
	}
}

func allowWrites(ctx context.Context, _ *cli.Command, a *app.Admin, account app.ConnectedAccount) error {
	n, err := a.ManageDevices(ctx, account.Account)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The server manages %d more devices of the account, and new ones.\n", n)
	fmt.Println("Changed", account.ID)
	return nil
}
