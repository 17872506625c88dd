package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func workspacesCommand() *cli.Command {
	return &cli.Command{
		Name: "workspaces", Usage: "create and list workspaces",
		Commands: []*cli.Command{
			{
				Name:      "create",
				Usage:     "create a workspace for real devices and print its id",
				ArgsUsage: "NAME",
				Flags: append(
					[]cli.Flag{&cli.StringFlag{Name: "company", Usage: "set the company name to `NAME`"}},
					databaseFlags()...),
				Action: func(ctx context.Context, c *cli.Command) error {
					name := c.Args().First()
					if name == "" {
						return usagef("missing argument: the NAME of the workspace")
					}
					return withNewAdmin(ctx, c, func(a *app.Admin) error {
						w, err := a.Access.Accounts.CreateWorkspace(ctx, name, c.String("company"), false)
						if err != nil {
							return err
						}
						fmt.Fprintf(
							os.Stderr,
							"Created the workspace. To issue a key for it: deviceaccess-server keys create --workspace %s\n",
							w.ID,
						)
						fmt.Println(w.ID)
						return nil
					})
				},
			},
			{
				Name:  "list",
				Usage: "list the workspaces",
				Flags: databaseFlags(),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error {
						all, err := a.Access.Accounts.ListAllWorkspaces(ctx)
						if err != nil {
							return err
						}
						printIfEmpty(len(all), "There are no workspaces yet. Create one with `deviceaccess-server workspaces "+
							"create NAME`.")
						t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
						fmt.Fprintln(t, "ID\tNAME\tCOMPANY\tSANDBOX")
						for _, w := range all {
							fmt.Fprintf(
								t,
								"%s\t%s\t%s\t%v\n",
								w.ID,
								printable(w.Name),
								printable(w.CompanyName),
								w.IsSandbox,
							)
						}
						return t.Flush()
					})
				},
			},
		},
	}
}
