package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func keysCommand() *cli.Command {
	return &cli.Command{
		Name:  "keys",
		Usage: "issue, list, and revoke credentials, and rotate the encryption, also while the server runs",
		Commands: []*cli.Command{
			rotateCommand(),
			{
				Name:  "create",
				Usage: "issue a credential and print it once",
				Flags: append([]cli.Flag{
					&cli.StringFlag{
						Name:  "kind",
						Value: "api_key",
						Usage: "issue an `api_key`, a pat (personal access token), a console_session (at most one day), or a " +
							"publishable_key (to create client sessions from a web page)",
						Validator: validateOneOf("api_key", "pat", "console_session", "publishable_key"),
					},
					&cli.StringSliceFlag{
						Name:  "workspace",
						Usage: "give access to the workspace `ID`; repeatable for a pat (default: the only workspace)",
					},
					&cli.StringFlag{Name: "name", Usage: "set the name to `TEXT`"},
					&durationFlag{
						Name:      "lifetime",
						Usage:     "expire after `DURATION`, such as 12h or 90d (default: never; a console_session after one day)",
						Validator: positive[time.Duration],
					},
				}, databaseFlags()...),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error { return createKey(ctx, c, a) })
				},
			},
			{
				Name:  "list",
				Usage: "list the credentials without their secrets",
				Flags: databaseFlags(),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error { return listKeys(ctx, a) })
				},
			},
			{
				Name:      "revoke",
				Usage:     "revoke a credential immediately",
				ArgsUsage: "ID",
				Flags:     databaseFlags(),
				Action: func(ctx context.Context, c *cli.Command) error {
					id, err := uuid.Parse(c.Args().First())
					if err != nil {
						return usagef(
							"the argument must be a credential id; `deviceaccess-server keys list` shows the ids",
						)
					}
					return withAdmin(ctx, c, func(a *app.Admin) error {
						if err := a.Access.Auth.RevokeCredential(ctx, id); err != nil {
							return err
						}
						fmt.Println("Revoked", id)
						return nil
					})
				},
			},
		},
	}
}

func createKey(ctx context.Context, c *cli.Command, a *app.Admin) error {
	n := auth.NewCredential{
		Kind:     domain.CredentialKind(c.String("kind")),
		Name:     c.String("name"),
		Lifetime: c.Duration("lifetime"),
	}
	all, err := a.Access.Accounts.ListAllWorkspaces(ctx)
	if err != nil {
		return err
	}
	for _, text := range c.StringSlice("workspace") {
		id, err := uuid.Parse(text)
		if err != nil {
			return usagef("%q is not a workspace id; `deviceaccess-server workspaces list` shows the ids", text)
		}
		n.WorkspaceIDs = append(n.WorkspaceIDs, id)
	}
	switch {
	case len(n.WorkspaceIDs) > 0:
	case len(all) == 1:
		n.WorkspaceIDs = []uuid.UUID{all[0].ID}
	case len(all) == 0:
		return refusedf("no workspace exists; create one with `deviceaccess-server workspaces create NAME`")
	default:
		return refusedf(
			"there are %d workspaces: choose one with --workspace; `deviceaccess-server workspaces list` shows them",
			len(all),
		)
	}
	for _, w := range all {
		n.Sandbox = n.Sandbox || (w.IsSandbox && w.ID == n.WorkspaceIDs[0])
	}
	token, made, err := a.Access.Auth.IssueCredential(ctx, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Credential %s, shown only once:\n", made.ID)
	return printSecret(token, "revoke it (`keys revoke "+made.ID.String()+"`) and create another")
}

// printSecret prints a secret that cannot be shown again. If printing fails, the error says what to do instead.
func printSecret(secret, instead string) error {
	if _, err := fmt.Println(secret); err != nil {
		return fmt.Errorf("print the secret: %w; %s", err, instead)
	}
	return nil
}

func listKeys(ctx context.Context, a *app.Admin) error {
	credentials, err := a.Access.Auth.ListCredentials(ctx)
	if err != nil {
		return err
	}
	printIfEmpty(len(credentials), "There are no credentials yet. Create one with `deviceaccess-server keys create`.")
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tKIND\tNAME\tTOKEN\tWORKSPACES\tCREATED\tSTATE")
	for _, c := range credentials {
		var ids []string
		for _, id := range c.WorkspaceIDs {
			ids = append(ids, id.String())
		}
		fmt.Fprintf(
			t,
			"%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			c.ID,
			c.Kind,
			printable(c.Name),
			c.Hint,
			strings.Join(ids, ","),
			c.CreatedAt.Format(time.DateTime),
			state(c),
		)
	}
	return t.Flush()
}

func state(c auth.Credential) string {
	switch {
	case c.RevokedAt != nil:
		return "revoked " + c.RevokedAt.Format(time.DateTime)
	case c.ExpiresAt != nil && c.ExpiresAt.Before(time.Now()):
		return "expired " + c.ExpiresAt.Format(time.DateTime)
	case c.ExpiresAt != nil:
		return "active until " + c.ExpiresAt.Format(time.DateTime)
	}
	return "active"
}
