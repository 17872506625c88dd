package main

import (
	"context"
	"fmt"
	"os"
	"strings"
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
					&cli.StringFlag{
						Name:  "role",
						Value: string(domain.RoleAdmin),
						Usage: "allow what the `ROLE` includes: admin (everything), operator (daily work with codes, doors, and " +
							"people), or viewer (reads, except PINs)",
						Validator: validateOneOf(
							string(domain.RoleAdmin),
							string(domain.RoleOperator),
							string(domain.RoleViewer),
						),
					},
					&cli.StringFlag{Name: "name", Usage: "set the name to `TEXT`"},
					&cli.StringFlag{Name: "owner", Usage: "note the person or program that uses it as `TEXT`"},
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
				Flags: append(outputFlags(), databaseFlags()...),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error { return listKeys(ctx, c, a) })
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
		Role:     domain.Role(c.String("role")),
		Name:     c.String("name"),
		Owner:    c.String("owner"),
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

// keyRecord is what JSON and YAML show of a credential.
type keyRecord struct {
	ID         string        `json:"credential_id"`
	Kind       string        `json:"kind"`
	Role       string        `json:"role"`
	Name       string        `json:"name"`
	Owner      string        `json:"owner"`
	Hint       string        `json:"token_hint"`
	Workspaces []namedObject `json:"workspaces"`
	State      string        `json:"state"` // active, revoked, or expired
	CreatedAt  time.Time     `json:"created_at"`
	ExpiresAt  *time.Time    `json:"expires_at,omitempty"`
	RevokedAt  *time.Time    `json:"revoked_at,omitempty"`
	LastUsedAt *time.Time    `json:"last_used_at,omitempty"`
}

func listKeys(ctx context.Context, c *cli.Command, a *app.Admin) error {
	credentials, err := a.Access.Auth.ListCredentials(ctx)
	if err != nil {
		return err
	}
	workspaces, err := workspaceNames(ctx, a)
	if err != nil {
		return err
	}
	records := make([]keyRecord, len(credentials))
	for i, k := range credentials {
		records[i] = toKeyRecord(k, workspaces)
	}
	return listing[keyRecord]{
		columns: []column[keyRecord]{
			{"ID", func(k keyRecord) string { return k.ID }},
			{"KIND", func(k keyRecord) string { return k.Kind }},
			{"ROLE", func(k keyRecord) string { return k.Role }},
			{"NAME", func(k keyRecord) string { return printable(k.Name) }},
			{"OWNER", func(k keyRecord) string { return printable(k.Owner) }},
			{"TOKEN", func(k keyRecord) string { return k.Hint }},
			{"WORKSPACES", func(k keyRecord) string {
				names := make([]string, len(k.Workspaces))
				for i, w := range k.Workspaces {
					names[i] = named(w.Name, w.ID)
				}
				return strings.Join(names, ", ")
			}},
			{"CREATED", func(k keyRecord) string { return formatTime(k.CreatedAt) }},
			{"EXPIRES", func(k keyRecord) string { return formatOptionalTime(k.ExpiresAt) }},
			{"LAST USED", func(k keyRecord) string {
				if k.LastUsedAt == nil {
					return "never"
				}
				return formatAge(time.Since(*k.LastUsedAt)) + " ago"
			}},
			{"STATE", func(k keyRecord) string { return k.State }},
		},
		id:    func(k keyRecord) string { return k.ID },
		empty: "There are no credentials yet. Create one with `deviceaccess-server keys create`.",
	}.print(c, records)
}

func toKeyRecord(k auth.Credential, workspaces map[uuid.UUID]string) keyRecord {
	r := keyRecord{
		ID:         k.ID.String(),
		Kind:       string(k.Kind),
		Role:       string(k.Role),
		Name:       k.Name,
		Owner:      k.Owner,
		Hint:       k.Hint,
		Workspaces: []namedObject{},
		State:      keyState(k),
		CreatedAt:  k.CreatedAt,
		ExpiresAt:  k.ExpiresAt,
		RevokedAt:  k.RevokedAt,
		LastUsedAt: k.LastUsedAt,
	}
	if k.Kind == domain.PublishableKey {
		r.Role = ""
	}
	for _, id := range k.WorkspaceIDs {
		r.Workspaces = append(r.Workspaces, namedObject{id.String(), workspaces[id]})
	}
	return r
}

func keyState(k auth.Credential) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt != nil && k.ExpiresAt.Before(time.Now()):
		return "expired"
	}
	return "active"
}
