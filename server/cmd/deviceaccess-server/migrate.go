package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func migrateCommand() *cli.Command {
	return &cli.Command{
		Name:  "migrate",
		Usage: "migrate the database to this version and exit",
		Flags: databaseFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := app.Migrate(ctx, database(c), logger(c)); err != nil {
				return err
			}
			fmt.Println("The database is up to date.")
			return nil
		},
	}
}
