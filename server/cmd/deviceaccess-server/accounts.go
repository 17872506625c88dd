package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// checkWithin is how long a gateway may take to answer when it is connected.
const checkWithin = 30 * time.Second

func accountsCommand() *cli.Command {
	connect := &cli.Command{Name: "connect", Usage: "connect a gateway or a vendor's cloud; its locks appear by themselves"}
	change := &cli.Command{Name: "update", Usage: "give an account another address, name or credential; its devices stay what they are", ArgsUsage: "ID",
		Description: "What is not given stays as it is. An account that somebody has entered on a connect page is dialled where serve allows it, until an\n" +
			"address is given here.",
		Flags: append([]cli.Flag{&cli.StringFlag{Name: "name", Usage: "`TEXT` to know it by"}, allowGatewayFlag()}, databaseFlags()...), Action: onAccount(changeAccount)}
	for _, kind := range accountKinds() {
		connect.Commands = append(connect.Commands, &cli.Command{
			Name: kind.adapter, Usage: kind.usage,
			Flags: slices.Concat(kind.flags(true), []cli.Flag{
				&cli.StringFlag{Name: "name", Usage: "`TEXT` to know it by"},
				&cli.StringFlag{Name: "workspace", Usage: "`ID` of the workspace its locks belong to; without it the only one that is no sandbox"},
			}, databaseFlags()),
			Action: func(ctx context.Context, c *cli.Command) error {
				return withAdmin(ctx, c, func(a *app.Admin) error { return connectAccount(ctx, c, a, kind) })
			},
		})
		for _, f := range kind.flags(false) {
			if !slices.ContainsFunc(change.Flags, func(known cli.Flag) bool { return known.Names()[0] == f.Names()[0] }) {
				change.Flags = append(change.Flags, f)
			}
		}
	}
	return &cli.Command{
		Name: "accounts", Usage: "connect gateways and vendors, list, change and disconnect them; the server may run meanwhile",
		Commands: []*cli.Command{
			connect,
			{Name: "list", Usage: "list the accounts, without their credentials", Flags: databaseFlags(),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error { return listAccounts(ctx, a) })
				}},
			change,
			{Name: "disconnect", Usage: "end an account: its credential is deleted, its devices and their codes are no longer looked after", ArgsUsage: "ID",
				Description: "Nothing on the locks is touched: codes that are on them go on opening doors. To take codes off, delete them first.\n" +
					"Connected again, the locks are new devices, and the codes on them are unmanaged ones that can be adopted.",
				Flags:  append([]cli.Flag{&cli.BoolFlag{Name: "yes", Usage: "do not ask"}}, databaseFlags()...),
				Action: onAccount(disconnectAccount)},
		},
	}
}

// onAccount opens the data and finds the account that the command names.
func onAccount(act func(context.Context, *cli.Command, *app.Admin, app.ConnectedAccount) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		id, err := uuid.Parse(c.Args().First())
		if err != nil {
			return fmt.Errorf("name the account by its id, as `deviceaccess-server accounts list` shows it")
		}
		return withAdmin(ctx, c, func(a *app.Admin) error {
			all, err := a.Accounts(ctx)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(one app.ConnectedAccount) bool { return one.ID == id })
			if i < 0 {
				return fmt.Errorf("there is no account %s; `deviceaccess-server accounts list` shows them", id)
			}
			return act(ctx, c, a, all[i])
		})
	}
}

func connectAccount(ctx context.Context, c *cli.Command, a *app.Admin, kind accountKind) error {
	all, err := a.Access.ListAllWorkspaces(ctx)
	if err != nil {
		return err
	}
	workspace, err := workspaceForLocks(c.String("workspace"), all)
	if err != nil {
		return err
	}
	to := kind.blank()
	if err := kind.read(ctx, c, to); err != nil {
		return err
	}
	name := c.String("name")
	if name == "" {
		name = to.Adapter() + " at " + to.Address()
	}
	checking, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	id, err := a.Connect(checking, workspace, name, to)
	if err != nil {
		return notConnected(err)
	}
	fmt.Fprintf(os.Stderr, "Connected %s. Its locks appear while the server runs; `deviceaccess-server accounts list` counts them.\n", cell(to.Address()))
	fmt.Println(id)
	return nil
}

// workspaceForLocks is the workspace of that id, or the only one that real locks can belong to.
func workspaceForLocks(id string, all []access.Workspace) (uuid.UUID, error) {
	if id != "" {
		i := slices.IndexFunc(all, func(w access.Workspace) bool { return w.ID.String() == strings.ToLower(id) })
		switch {
		case i < 0:
			return uuid.Nil, fmt.Errorf("there is no workspace %q; `deviceaccess-server workspaces list` shows them", id)
		case all[i].IsSandbox:
			return uuid.Nil, fmt.Errorf("workspace %s is a sandbox, for simulated locks; `deviceaccess-server workspaces create` makes one for real locks", id)
		}
		return all[i].ID, nil
	}
	all = slices.DeleteFunc(slices.Clone(all), func(w access.Workspace) bool { return w.IsSandbox })
	switch len(all) {
	case 0:
		return uuid.Nil, fmt.Errorf("there is no workspace for real locks yet; `deviceaccess-server workspaces create NAME` makes one")
	case 1:
		return all[0].ID, nil
	}
	return uuid.Nil, fmt.Errorf("there are %d workspaces for real devices: name one with --workspace; `deviceaccess-server workspaces list` shows them", len(all))
}

// notConnected says why, in words for people.
func notConnected(err error) error {
	if e := adapter.AsError(err); e != nil {
		return fmt.Errorf("nothing was changed: %s", cell(e.Message))
	}
	return err
}

func listAccounts(ctx context.Context, a *app.Admin) error {
	all, err := a.Accounts(ctx)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tADAPTER\tNAME\tWORKSPACE\tADDRESS\tDEVICES\tSTATE")
	for _, one := range all {
		address, state := "", "good"
		if one.Connection != nil {
			address = one.Connection.Address()
		}
		if one.Problem != "" {
			state = one.Problem
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", one.ID, one.Adapter, cell(one.DisplayName), one.WorkspaceID, cell(address), one.Devices, cell(state))
	}
	return t.Flush()
}

func changeAccount(ctx context.Context, c *cli.Command, a *app.Admin, account app.ConnectedAccount) error {
	kinds := accountKinds()
	i := slices.IndexFunc(kinds, func(k accountKind) bool { return k.adapter == account.Adapter })
	if i < 0 {
		return fmt.Errorf("account %s is simulated: there is nothing to change", account.ID)
	}
	if err := foreignFlags(c, kinds, kinds[i]); err != nil {
		return err
	}
	if c.IsSet("name") && !kinds[i].given(c) {
		if err := a.Access.RenameAccount(ctx, account.ID, c.String("name")); err != nil {
			return err
		}
		fmt.Println("Changed", account.ID)
		return nil
	}
	var err error
	if a.Entered.AllowPrefixes, err = prefixes("allow-gateway-prefix", c.StringSlice("allow-gateway-prefix")); err != nil {
		return err
	}
	if err := kinds[i].read(ctx, c, account.Connection); err != nil {
		return err
	}
	name := account.DisplayName
	if c.IsSet("name") {
		name = c.String("name")
	}
	checking, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	if err := a.Reconnect(checking, account.ID, name, account.Connection); err != nil {
		return notConnected(err)
	}
	fmt.Println("Changed", account.ID)
	return nil
}

// foreignFlags refuses what is a setting of accounts of other kinds only.
func foreignFlags(c *cli.Command, kinds []accountKind, own accountKind) error {
	known := map[string]bool{}
	for _, f := range own.flags(false) {
		known[f.Names()[0]] = true
	}
	for _, k := range kinds {
		for _, f := range k.flags(false) {
			if name := f.Names()[0]; !known[name] && c.IsSet(name) {
				return fmt.Errorf("--%s is no setting of a %s account", name, own.adapter)
			}
		}
	}
	return nil
}

func disconnectAccount(ctx context.Context, c *cli.Command, a *app.Admin, account app.ConnectedAccount) error {
	if account.Connection == nil {
		return fmt.Errorf("account %s is simulated, and belongs to its sandbox workspace", account.ID)
	}
	if !c.Bool("yes") {
		fmt.Fprintf(os.Stderr, "Account %s, %s: its credential is deleted, its %d devices and their codes are no longer looked after.\n"+
			"Nothing on the locks is touched: codes that are on them go on opening doors.\nType yes to go on: ", account.ID, cell(account.DisplayName), account.Devices)
		if said, _ := answer(ctx); strings.TrimSpace(said) != "yes" {
			return fmt.Errorf("nothing was changed; --yes goes on without asking")
		}
	}
	if err := a.Access.DisconnectAccount(ctx, account.ID); err != nil {
		return err
	}
	fmt.Println("Disconnected", account.ID)
	return nil
}
