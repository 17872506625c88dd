package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
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
				Flags: append(outputFlags(), databaseFlags()...),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error {
						all, err := a.Access.Accounts.ListAllWorkspaces(ctx)
						if err != nil {
							return err
						}
						return workspaceListing.print(c, all)
					})
				},
			},
		},
	}
}

// workspaceRecord is what JSON and YAML show of a workspace.
type workspaceRecord struct {
	ID          string `json:"workspace_id"`
	Name        string `json:"name"`
	CompanyName string `json:"company_name"`
	IsSandbox   bool   `json:"is_sandbox"`
}

var workspaceListing = listing[account.Workspace]{
	columns: []column[account.Workspace]{
		{"ID", func(w account.Workspace) string { return w.ID.String() }},
		{"NAME", func(w account.Workspace) string { return printable(w.Name) }},
		{"COMPANY", func(w account.Workspace) string { return printable(w.CompanyName) }},
		{"SANDBOX", func(w account.Workspace) string { return strconv.FormatBool(w.IsSandbox) }},
	},
	id: func(w account.Workspace) string { return w.ID.String() },
	record: func(w account.Workspace) any {
		return workspaceRecord{w.ID.String(), w.Name, w.CompanyName, w.IsSandbox}
	},
	empty: "There are no workspaces yet. Create one with `deviceaccess-server workspaces create NAME`.",
}

// workspaceNames returns the names of all workspaces by id.
func workspaceNames(ctx context.Context, a *app.Admin) (map[uuid.UUID]string, error) {
	all, err := a.Access.Accounts.ListAllWorkspaces(ctx)
	names := map[uuid.UUID]string{}
	for _, w := range all {
		names[w.ID] = w.Name
	}
	return names, err
}
