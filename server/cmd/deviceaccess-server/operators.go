package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

func operatorsCommand() *cli.Command {
	return &cli.Command{
		Name:  "operators",
		Usage: "create, list, reset, and delete the people who sign in to the console, also while the server runs",
		Commands: []*cli.Command{
			{
				Name:      "create",
				Usage:     "create an operator, and print a one-time link with which the person sets a password",
				ArgsUsage: "EMAIL",
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "name", Usage: "set the name to `TEXT`"},
					&cli.StringFlag{
						Name:  "role",
						Value: string(domain.RoleAdmin),
						Usage: "allow what the `ROLE` includes: admin (everything), operator (daily work with codes, doors, and " +
							"people), or viewer (reads)",
						Validator: validateOneOf(
							string(domain.RoleAdmin),
							string(domain.RoleOperator),
							string(domain.RoleViewer),
						),
					},
					&cli.StringSliceFlag{
						Name:  "workspace",
						Usage: "give the role in the workspace `ID`; repeatable (default: in every workspace)",
					},
					&cli.StringFlag{
						Name:  "password-file",
						Usage: "read the password from `FILE`, or from standard input if it is -, and print no link",
					},
					linkURLFlag(),
				}, databaseFlags()...),
				Action: withEmail(createOperator),
			},
			{
				Name: "reset",
				Usage: "remove the password, the one-time codes, and the passkeys of an operator, end its sessions, and print a " +
					"one-time link for a new password",
				ArgsUsage: "EMAIL",
				Flags:     append([]cli.Flag{linkURLFlag()}, databaseFlags()...),
				Action:    withEmail(resetOperator),
			},
			{
				Name:  "list",
				Usage: "list the operators",
				Flags: append(outputFlags(), databaseFlags()...),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error { return listOperators(ctx, c, a) })
				},
			},
			{
				Name:      "delete",
				Usage:     "delete an operator, and end its sessions immediately",
				ArgsUsage: "EMAIL",
				Flags:     databaseFlags(),
				Action:    withEmail(deleteOperator),
			},
		},
	}
}

// linkURLFlag returns the flag of the URL in one-time links. It is the setting of serve.
func linkURLFlag() cli.Flag {
	return &cli.StringFlag{
		Name:      "public-url",
		Sources:   env("DEVICEACCESS_PUBLIC_URL"),
		Validator: webAddress,
		Usage:     "build the link with `URL`, the address of the server (default: " + defaultServer + ")",
	}
}

// withEmail returns the action of a command about the operator of its argument.
func withEmail(f func(context.Context, *cli.Command, *app.Admin, string) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		email := c.Args().First()
		if email == "" {
			return usagef("the argument must be an email address; `deviceaccess-server operators list` shows them")
		}
		return withAdmin(ctx, c, func(a *app.Admin) error { return f(ctx, c, a, email) })
	}
}

func createOperator(ctx context.Context, c *cli.Command, a *app.Admin, email string) error {
	n := operator.NewOperator{Email: email, Name: c.String("name"), Roles: map[uuid.UUID]domain.Role{}}
	names, err := workspaceNames(ctx, a)
	if err != nil {
		return err
	}
	for _, text := range c.StringSlice("workspace") {
		id, err := uuid.Parse(text)
		if _, known := names[id]; err != nil || !known {
			return usagef("%q is not a workspace id; `deviceaccess-server workspaces list` shows the ids", text)
		}
		n.Roles[id] = domain.Role(c.String("role"))
	}
	if len(n.Roles) == 0 {
		n.Roles[uuid.Nil] = domain.Role(c.String("role"))
	}
	if file := c.String("password-file"); file != "" {
		if n.Password, err = readPassword(ctx, file); err != nil {
			return err
		}
	}
	o, link, err := a.Access.Operators.CreateOperator(ctx, n)
	if err != nil {
		return err
	}
	if link == "" {
		fmt.Println("Created", o.Email)
		return nil
	}
	fmt.Fprintf(os.Stderr, "Created %s. The person sets a password within 72 h with this link, shown only once:\n",
		printable(o.Email))
	return printSecret(consoleLink(c.String("public-url"), defaultServer, operator.Invitation, link),
		"make another link with `operators reset`")
}

// readPassword reads a password from a file, or from standard input if that is -.
func readPassword(ctx context.Context, file string) (string, error) {
	if file != "-" {
		password, _, err := readSecret(file)
		if err != nil {
			return "", usagef("--password-file: %w", app.ExplainPermission(err))
		}
		return password, nil
	}
	text, err := io.ReadAll(io.LimitReader(stdin(ctx), maxSettingsFile))
	if err != nil {
		return "", fmt.Errorf("read the password from standard input: %w", err)
	}
	password := strings.TrimSpace(string(text))
	if password == "" {
		return "", usagef("--password-file: standard input is empty: write the password to it")
	}
	return password, nil
}

func resetOperator(ctx context.Context, c *cli.Command, a *app.Admin, email string) error {
	o, err := a.Access.Operators.FindOperator(ctx, email)
	if err != nil {
		return err
	}
	link, err := a.Access.Operators.ResetOperator(ctx, o.ID)
	if err != nil {
		return err
	}
	if o.DisabledAt != nil {
		fmt.Fprintln(os.Stderr, "The operator is disabled: the link works once an administrator enables it.")
	}
	fmt.Fprintf(os.Stderr, "Reset %s. The person sets a password within 72 h with this link, shown only once:\n",
		printable(o.Email))
	return printSecret(
		consoleLink(c.String("public-url"), defaultServer, operator.Reset, link),
		"run the command again",
	)
}

func deleteOperator(ctx context.Context, _ *cli.Command, a *app.Admin, email string) error {
	o, err := a.Access.Operators.FindOperator(ctx, email)
	if err != nil {
		return err
	}
	if err := a.Access.Operators.DeleteOperator(ctx, o.ID); err != nil {
		return err
	}
	fmt.Println("Deleted", printable(o.Email))
	return nil
}

// operatorRecord is what JSON and YAML show of an operator.
type operatorRecord struct {
	ID           string         `json:"operator_id"`
	Email        string         `json:"email"`
	Name         string         `json:"name"`
	Roles        []operatorRole `json:"roles"`
	State        string         `json:"state"` // active, invited, or disabled
	HasPassword  bool           `json:"has_password"`
	HasTOTP      bool           `json:"has_one_time_codes"`
	Passkeys     int            `json:"passkeys"`
	Issuer       string         `json:"issuer,omitempty"`
	CreatedAt    time.Time      `json:"created_at"`
	LastSignInAt *time.Time     `json:"last_sign_in_at,omitempty"`
}

// operatorRole is a role of an operator.
type operatorRole struct {
	Role      string       `json:"role"`
	Workspace *namedObject `json:"workspace,omitempty"` // missing: every workspace
}

func listOperators(ctx context.Context, c *cli.Command, a *app.Admin) error {
	operators, err := a.Access.Operators.ListOperators(ctx)
	if err != nil {
		return err
	}
	workspaces, err := workspaceNames(ctx, a)
	if err != nil {
		return err
	}
	records := make([]operatorRecord, len(operators))
	for i, o := range operators {
		records[i] = toOperatorRecord(o, workspaces)
	}
	return listing[operatorRecord]{
		columns: []column[operatorRecord]{
			{"ID", func(o operatorRecord) string { return o.ID }},
			{"EMAIL", func(o operatorRecord) string { return printable(o.Email) }},
			{"NAME", func(o operatorRecord) string { return printable(o.Name) }},
			{"ROLES", func(o operatorRecord) string { return formatRoles(o.Roles) }},
			{"SIGN-IN", formatSignIn},
			{"STATE", func(o operatorRecord) string { return o.State }},
			{"LAST SIGN-IN", func(o operatorRecord) string {
				if o.LastSignInAt == nil {
					return "never"
				}
				return formatAge(time.Since(*o.LastSignInAt)) + " ago"
			}},
		},
		id:    func(o operatorRecord) string { return o.ID },
		empty: "There are no operators yet. Create one with `deviceaccess-server operators create EMAIL`.",
	}.print(c, records)
}

func toOperatorRecord(o operator.Operator, workspaces map[uuid.UUID]string) operatorRecord {
	r := operatorRecord{
		ID:           o.ID.String(),
		Email:        o.Email,
		Name:         o.Name,
		Roles:        []operatorRole{},
		State:        operatorState(o),
		HasPassword:  o.HasPassword,
		HasTOTP:      o.HasTOTP,
		Passkeys:     o.Passkeys,
		Issuer:       o.Issuer,
		CreatedAt:    o.CreatedAt,
		LastSignInAt: o.LastSignInAt,
	}
	for _, id := range slices.SortedFunc(maps.Keys(o.Roles), func(a, b uuid.UUID) int {
		return strings.Compare(a.String(), b.String())
	}) {
		role := operatorRole{Role: string(o.Roles[id])}
		if id != uuid.Nil {
			role.Workspace = &namedObject{id.String(), workspaces[id]}
		}
		r.Roles = append(r.Roles, role)
	}
	return r
}

func operatorState(o operator.Operator) string {
	switch {
	case o.DisabledAt != nil:
		return "disabled"
	case !o.CanSignIn():
		return "invited"
	}
	return "active"
}

func formatRoles(roles []operatorRole) string {
	texts := make([]string, len(roles))
	for i, r := range roles {
		texts[i] = r.Role
		if r.Workspace != nil {
			texts[i] += " in " + named(r.Workspace.Name, r.Workspace.ID)
		}
	}
	return strings.Join(texts, ", ")
}

func formatSignIn(o operatorRecord) string {
	var ways []string
	if o.HasPassword {
		ways = append(ways, "password")
	}
	if o.HasTOTP {
		ways = append(ways, "one-time codes")
	}
	if o.Passkeys > 0 {
		ways = append(ways, fmt.Sprintf("%d passkeys", o.Passkeys))
	}
	if o.Issuer != "" {
		ways = append(ways, "OIDC")
	}
	return strings.Join(ways, ", ")
}
