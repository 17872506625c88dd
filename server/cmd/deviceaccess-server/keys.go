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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func keysCommand() *cli.Command {
	return &cli.Command{
		Name:  "keys",
		Usage: "issue, list and revoke credentials, and rotate the encryption; the server may run meanwhile",
		Commands: []*cli.Command{
			rotateCommand(),
			{
				Name: "create", Usage: "issue a credential and print it, this once",
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "kind", Value: "api_key", Usage: "`api_key`, pat (a personal access token), console_session (at most a day) or publishable_key (for pages, which make client sessions with it)",
						Validator: oneOf("api_key", "pat", "console_session", "publishable_key")},
					&cli.StringSliceFlag{Name: "workspace", Usage: "`ID` of a workspace it may enter; repeat it for a pat. Without it the only one there is"},
					&cli.StringFlag{Name: "name", Usage: "`TEXT` to know it by"},
					&spanFlag{Name: "lifetime", Usage: "`TIME` after which it ends; without it when it is revoked", Validator: toCome},
				}, databaseFlags()...),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error { return createKey(ctx, c, a) })
				},
			},
			{
				Name: "list", Usage: "list the credentials, without their secret parts", Flags: databaseFlags(),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error { return listKeys(ctx, a) })
				},
			},
			{
				Name: "revoke", Usage: "end a credential at once", ArgsUsage: "ID", Flags: databaseFlags(),
				Action: func(ctx context.Context, c *cli.Command) error {
					id, err := uuid.Parse(c.Args().First())
					if err != nil {
						return fmt.Errorf("name the credential by its id, as `deviceaccess-server keys list` shows it")
					}
					return withAdmin(ctx, c, func(a *app.Admin) error {
						if err := a.Access.RevokeCredential(ctx, id); err != nil {
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

func toCome(lifetime time.Duration) error {
	if lifetime <= 0 {
		return fmt.Errorf("%v is not a time to come", lifetime)
	}
	return nil
}

func createKey(ctx context.Context, c *cli.Command, a *app.Admin) error {
	n := access.NewCredential{Kind: access.CredentialKind(c.String("kind")), Name: c.String("name"), Lifetime: c.Duration("lifetime")}
	all, err := a.Access.ListAllWorkspaces(ctx)
	if err != nil {
		return err
	}
	for _, text := range c.StringSlice("workspace") {
		id, err := uuid.Parse(text)
		if err != nil {
			return fmt.Errorf("%q is no workspace id; `deviceaccess-server workspaces list` shows them", text)
		}
		n.WorkspaceIDs = append(n.WorkspaceIDs, id)
	}
	switch {
	case len(n.WorkspaceIDs) > 0:
	case len(all) == 1:
		n.WorkspaceIDs = []uuid.UUID{all[0].ID}
	case len(all) == 0:
		return fmt.Errorf("there is no workspace yet; `deviceaccess-server workspaces create` makes one")
	default:
		return fmt.Errorf("there are %d workspaces: name one with --workspace; `deviceaccess-server workspaces list` shows them", len(all))
	}
	for _, w := range all {
		n.Sandbox = n.Sandbox || (w.IsSandbox && w.ID == n.WorkspaceIDs[0])
	}
	token, made, err := a.Access.IssueCredential(ctx, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "Credential %s, shown this once:\n", made.ID)
	return showOnce(token, "revoke it (`keys revoke "+made.ID.String()+"`) and create another")
}

// showOnce writes a secret that nobody can ask for again. Where it cannot be written, as to a disk that is full, the error says what to do instead.
func showOnce(secret, instead string) error {
	if _, err := fmt.Println(secret); err != nil {
		return fmt.Errorf("what was made could not be written: %w; %s", err, instead)
	}
	return nil
}

func listKeys(ctx context.Context, a *app.Admin) error {
	credentials, err := a.Access.ListCredentials(ctx)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tKIND\tNAME\tTOKEN\tWORKSPACES\tCREATED\tSTATE")
	for _, c := range credentials {
		var ids []string
		for _, id := range c.WorkspaceIDs {
			ids = append(ids, id.String())
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Kind, cell(c.Name), c.Hint, strings.Join(ids, ","), c.CreatedAt.Format(time.DateTime), state(c))
	}
	return t.Flush()
}

func state(c access.Credential) string {
	switch {
	case c.RevokedAt != nil:
		return "revoked " + c.RevokedAt.Format(time.DateTime)
	case c.ExpiresAt != nil && c.ExpiresAt.Before(time.Now()):
		return "expired " + c.ExpiresAt.Format(time.DateTime)
	case c.ExpiresAt != nil:
		return "until " + c.ExpiresAt.Format(time.DateTime)
	}
	return "good"
}

func workspacesCommand() *cli.Command {
	return &cli.Command{
		Name: "workspaces", Usage: "create and list workspaces",
		Commands: []*cli.Command{
			{
				Name: "create", Usage: "make a workspace for real devices", ArgsUsage: "NAME",
				Flags: append([]cli.Flag{&cli.StringFlag{Name: "company", Usage: "`NAME` of the company it belongs to"}}, databaseFlags()...),
				Action: func(ctx context.Context, c *cli.Command) error {
					name := c.Args().First()
					if name == "" {
						return fmt.Errorf("give the workspace a name")
					}
					return withNew(ctx, c, func(a *app.Admin) error {
						w, err := a.Access.CreateWorkspace(ctx, name, c.String("company"), false)
						if err != nil {
							return err
						}
						fmt.Fprintf(os.Stderr, "Made the workspace. A key for it is issued by: deviceaccess-server keys create --workspace %s\n", w.ID)
						fmt.Println(w.ID)
						return nil
					})
				},
			},
			{
				Name: "list", Usage: "list the workspaces", Flags: databaseFlags(),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error {
						all, err := a.Access.ListAllWorkspaces(ctx)
						if err != nil {
							return err
						}
						t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
						fmt.Fprintln(t, "ID\tNAME\tCOMPANY\tSANDBOX")
						for _, w := range all {
							fmt.Fprintf(t, "%s\t%s\t%s\t%v\n", w.ID, cell(w.Name), cell(w.CompanyName), w.IsSandbox)
						}
						return t.Flush()
					})
				},
			},
		},
	}
}
