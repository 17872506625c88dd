package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// connectTimeout limits the connection check of accounts connect and accounts update.
const connectTimeout = 30 * time.Second

func accountsCommand() *cli.Command {
	connect := &cli.Command{
		Name:  "connect",
		Usage: "connect a gateway or a vendor's cloud; the server then discovers its locks",
	}
	change := &cli.Command{
		Name:      "update",
		Usage:     "change the address, name, or credential of an account; its devices keep their ids",
		ArgsUsage: "ID",
		Description: "Settings without a flag stay unchanged.\n\n" +
			"The server dials an address from a connect page only in networks that serve allows. An address that\n" +
			"you set here has no such limit.",
		Flags: append(
			[]cli.Flag{&cli.StringFlag{Name: "name", Usage: "set the display name to `TEXT`"}, allowGatewayFlag()},
			append(vendorClientFlags(), databaseFlags()...)...),
		Action: onAccount(changeAccount),
	}
	for _, vendor := range connectable() {
		connect.Commands = append(connect.Commands, &cli.Command{
			Name:  vendor.Adapter,
			Usage: usageOf(vendor),
			Flags: slices.Concat(flagsOf(vendor, true), []cli.Flag{
				&cli.StringFlag{Name: "name", Usage: "set the display name to `TEXT`"},
				&cli.StringFlag{
					Name:  "workspace",
					Usage: "add the locks to the workspace `ID` (default: the only workspace that is not a sandbox)",
				},
				&cli.BoolFlag{
					Name:  "allow-writes",
					Usage: "manage the devices also if the adapter follows the vendor's documentation only",
				},
			}, vendorClientFlags(), databaseFlags()),
			Action: func(ctx context.Context, c *cli.Command) error {
				return withAdmin(ctx, c, func(a *app.Admin) error { return connectAccount(ctx, c, a, vendor) })
			},
		})
		for _, f := range flagsOf(vendor, false) {
			if !slices.ContainsFunc(
				change.Flags,
				func(known cli.Flag) bool { return known.Names()[0] == f.Names()[0] },
			) {
				change.Flags = append(change.Flags, f)
			}
		}
	}
	return &cli.Command{
		Name:  "accounts",
		Usage: "connect, list, change, and disconnect gateways and vendors, also while the server runs",
		Commands: []*cli.Command{
			connect,
			{
				Name: "list",
				Usage: "list the accounts of all workspaces without their credentials; with --server or --profile, those of " +
					"one workspace over the API",
				Flags:  append(apiCommandFlags(), databaseFlags()...),
				Action: onServerOr(listAccountsOfServer, listAccounts),
			},
			checkCommand(),
			allowWritesCommand(),
			change,
			pushURLCommand(),
			{
				Name:      "disconnect",
				Usage:     "disconnect an account: delete its credential and stop managing its devices and codes",
				ArgsUsage: "ID",
				Description: "The locks keep their codes, and these still open doors. To remove codes from the locks, delete " +
					"the\n" +
					"codes first.\n\n" +
					"If you connect the account again, its locks get new ids and their codes are unmanaged. You can adopt\n" +
					"them.",
				Flags: append(
					[]cli.Flag{&cli.BoolFlag{Name: "yes", Usage: "skip the confirmation"}},
					databaseFlags()...),
				Action: onAccount(disconnectAccount),
			},
		},
	}
}

// onAccount opens the database and runs act on the account that the argument names.
func onAccount(act func(context.Context, *cli.Command, *app.Admin, app.ConnectedAccount) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		id, err := uuid.Parse(c.Args().First())
		if err != nil {
			return usagef("the argument must be an account id; `deviceaccess-server accounts list` shows the ids")
		}
		return withAdmin(ctx, c, func(a *app.Admin) error {
			all, err := a.Accounts(ctx)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(one app.ConnectedAccount) bool { return one.ID == id })
			if i < 0 {
				return notFoundf(
					"account %s does not exist; `deviceaccess-server accounts list` shows the accounts",
					id,
				)
			}
			return act(ctx, c, a, all[i])
		})
	}
}

func connectAccount(ctx context.Context, c *cli.Command, a *app.Admin, vendor adapter.Vendor) error {
	all, err := a.Access.Accounts.ListAllWorkspaces(ctx)
	if err != nil {
		return err
	}
	workspace, err := workspaceForLocks(c.String("workspace"), all)
	if err != nil {
		return err
	}
	set, err := readSettings(ctx, c, vendor, true)
	if err != nil {
		return err
	}
	to := vendor.New()
	if err := to.Apply(set); err != nil {
		return err
	}
	if a.Connecting.Clients, err = vendorClients(c); err != nil {
		return err
	}
	if vendor.NeedsClient && a.Connecting.Clients[vendor.Adapter].ID == "" {
		return usagef(
			"%s needs your registration at the vendor: set --vendor-client and --vendor-client-secret-file",
			vendor.DisplayName,
		)
	}
	a.AllowWrites = c.Bool("allow-writes")
	checking, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	id, err := a.Connect(checking, workspace, c.String("name"), to)
	if err != nil {
		return notConnected(err)
	}
	fmt.Fprintf(
		os.Stderr,
		"Connected %s. A running server discovers its locks; `deviceaccess-server accounts list` counts them.\n",
		printable(to.Address()),
	)
	fmt.Fprintf(os.Stderr, "This adapter was tested %s.\n", vendor.Verification)
	if vendor.Verification.IsReadOnly() && !a.AllowWrites {
		fmt.Fprintln(
			os.Stderr,
			"Its devices start out unmanaged: the server only reads them. `accounts allow-writes` manages them.",
		)
	}
	fmt.Println(id)
	return nil
}

// workspaceForLocks returns the workspace id if it can have real locks. Without id, it returns the only such workspace.
func workspaceForLocks(id string, all []account.Workspace) (uuid.UUID, error) {
	if id != "" {
		i := slices.IndexFunc(all, func(w account.Workspace) bool { return w.ID.String() == strings.ToLower(id) })
		switch {
		case i < 0:
			return uuid.Nil, notFoundf(
				"workspace %q does not exist; `deviceaccess-server workspaces list` shows the workspaces",
				id,
			)
		case all[i].IsSandbox:
			return uuid.Nil, refusedf(
				"workspace %s is a sandbox for simulated locks; create a workspace for real locks with `deviceaccess-server "+
					"workspaces create NAME`",
				id,
			)
		}
		return all[i].ID, nil
	}
	all = slices.DeleteFunc(slices.Clone(all), func(w account.Workspace) bool { return w.IsSandbox })
	switch len(all) {
	case 0:
		return uuid.Nil, refusedf(
			"no workspace for real locks exists; create one with `deviceaccess-server workspaces create NAME`",
		)
	case 1:
		return all[0].ID, nil
	}
	return uuid.Nil, refusedf(
		"there are %d workspaces for real devices: choose one with --workspace; `deviceaccess-server workspaces list` "+
			"shows them",
		len(all),
	)
}

// notConnected turns an error of an adapter into one for the operator.
func notConnected(err error) error {
	if e := adapter.AsError(err); e != nil {
		return exitError{fmt.Errorf("nothing was changed: %s", printable(e.Message)), exitCode(err)}
	}
	return err
}

// accountRecord is what JSON and YAML show of an account.
type accountRecord struct {
	ID        string      `json:"connected_account_id"`
	Adapter   string      `json:"adapter"`
	Name      string      `json:"name"`
	Workspace namedObject `json:"workspace"`
	Address   string      `json:"address,omitempty"` // not over the API
	Devices   int64       `json:"devices"`
	CallsLeft string      `json:"calls_left,omitempty"` // not over the API
	Connected bool        `json:"connected"`
	Problem   string      `json:"problem,omitempty"`
}

func listAccounts(ctx context.Context, c *cli.Command, a *app.Admin) error {
	all, err := a.Accounts(ctx)
	if err != nil {
		return err
	}
	workspaces, err := workspaceNames(ctx, a)
	if err != nil {
		return err
	}
	records := make([]accountRecord, len(all))
	for i, one := range all {
		records[i] = accountRecord{
			ID:        one.ID.String(),
			Adapter:   one.Adapter,
			Name:      one.DisplayName,
			Workspace: namedObject{one.WorkspaceID.String(), workspaces[one.WorkspaceID]},
			Devices:   int64(one.Devices),
			CallsLeft: one.CallsLeft,
			Connected: one.Problem == "",
			Problem:   one.Problem,
		}
		if one.Connection != nil {
			records[i].Address = one.Connection.Address()
		}
	}
	return accountListing.print(c, records)
}

// listAccountsOfServer lists the accounts of the workspace of a key, over the API.
func listAccountsOfServer(ctx context.Context, c *cli.Command, to *client) error {
	workspace, err := api.Call[api.WorkspaceResponse](ctx, to.GetWorkspace, api.EmptyRequest{})
	if err != nil {
		return err
	}
	accounts, err := api.Collect(to.ConnectedAccounts(ctx, api.ListConnectedAccountsRequest{}))
	if err != nil {
		return err
	}
	devices := map[string]int64{}
	for d, err := range to.Devices(ctx, api.ListDevicesRequest{}) {
		if err != nil {
			return err
		}
		devices[d.ConnectedAccountID]++
	}
	records := make([]accountRecord, len(accounts))
	for i, one := range accounts {
		records[i] = accountRecord{
			ID:        one.ConnectedAccountID,
			Adapter:   one.AccountType,
			Name:      one.DisplayName,
			Workspace: namedObject{workspace.Workspace.WorkspaceID, workspace.Workspace.Name},
			Devices:   devices[one.ConnectedAccountID],
			Connected: len(one.Errors) == 0,
		}
		if len(one.Errors) > 0 {
			records[i].Problem = one.Errors[0].Message
		}
	}
	return accountListing.print(c, records)
}

var accountListing = listing[accountRecord]{
	columns: []column[accountRecord]{
		{"ID", func(a accountRecord) string { return a.ID }},
		{"ADAPTER", func(a accountRecord) string { return a.Adapter }},
		{"NAME", func(a accountRecord) string { return printable(a.Name) }},
		{"WORKSPACE", func(a accountRecord) string { return named(a.Workspace.Name, a.Workspace.ID) }},
		{"ADDRESS", func(a accountRecord) string { return printable(a.Address) }},
		{"DEVICES", func(a accountRecord) string { return fmt.Sprint(a.Devices) }},
		{"CALLS", func(a accountRecord) string { return a.CallsLeft }},
		{"STATE", func(a accountRecord) string {
			if a.Connected {
				return "connected"
			}
			return "failing"
		}},
		{"PROBLEM", func(a accountRecord) string { return printable(a.Problem) }},
	},
	id:    func(a accountRecord) string { return a.ID },
	empty: "There are no accounts yet. `deviceaccess-server accounts connect --help` shows what you can connect.",
}

func changeAccount(ctx context.Context, c *cli.Command, a *app.Admin, account app.ConnectedAccount) error {
	vendors := connectable()
	i := slices.IndexFunc(vendors, func(v adapter.Vendor) bool { return v.Adapter == account.Adapter })
	if i < 0 {
		return refusedf("account %s is simulated and cannot be changed", account.ID)
	}
	if err := foreignFlags(c, vendors, vendors[i]); err != nil {
		return err
	}
	if c.IsSet("name") && !hasSetting(c, vendors[i]) {
		if err := a.Access.Accounts.RenameAccount(ctx, account.ID, c.String("name")); err != nil {
			return err
		}
		fmt.Println("Changed", account.ID)
		return nil
	}
	var err error
	if a.Connecting.Clients, err = vendorClients(c); err != nil {
		return err
	}
	a.Connecting.AllowPrefixes = prefixes(c, "allow-gateway-prefix")
	set, err := readSettings(ctx, c, vendors[i], false)
	if err != nil {
		return err
	}
	if err := account.Connection.Apply(set); err != nil {
		return err
	}
	name := account.DisplayName
	if c.IsSet("name") {
		name = c.String("name")
	}
	checking, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := a.Reconnect(checking, account.ID, name, account.Connection); err != nil {
		return notConnected(err)
	}
	fmt.Println("Changed", account.ID)
	return nil
}

// foreignFlags returns an error if a flag is set that only accounts of other vendors have.
func foreignFlags(c *cli.Command, vendors []adapter.Vendor, own adapter.Vendor) error {
	known := map[string]bool{}
	for _, s := range own.Settings {
		known[flagOf(s)] = true
	}
	for _, v := range vendors {
		for _, s := range v.Settings {
			if name := flagOf(s); !known[name] && c.IsSet(name) {
				return usagef("--%s does not apply to a %s account", name, own.Adapter)
			}
		}
	}
	return nil
}

func disconnectAccount(ctx context.Context, c *cli.Command, a *app.Admin, account app.ConnectedAccount) error {
	if account.Connection == nil {
		return refusedf("account %s is simulated and cannot be disconnected from its sandbox workspace", account.ID)
	}
	if !c.Bool("yes") {
		fmt.Fprintf(
			os.Stderr,
			"Disconnecting account %s (%s) deletes its credential. The server stops managing its %d devices and\n"+
				"their codes. The locks keep their codes, and these still open doors. Type yes to continue: ",
			account.ID,
			printable(account.DisplayName),
			account.Devices,
		)
		if said, _ := answer(ctx); strings.TrimSpace(said) != "yes" {
			return refusedf("nothing was changed; --yes skips the confirmation")
		}
	}
	if err := a.Access.Accounts.DisconnectAccount(ctx, account.ID); err != nil {
		return err
	}
	fmt.Println("Disconnected", account.ID)
	return nil
}
