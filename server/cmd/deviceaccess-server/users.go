package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func usersCommand() *cli.Command {
	return &cli.Command{
		Name:  "users",
		Usage: "list the people of a workspace (user identities), over the API",
		Commands: []*cli.Command{{
			Name:  "list",
			Usage: "list the user identities",
			Flags: apiCommandFlags(&cli.StringFlag{
				Name:  "search",
				Usage: "list people whose name, email address, phone number, or key contains `TEXT`",
			}),
			Action: withClient(listUsers),
		}},
	}
}

func listUsers(ctx context.Context, c *cli.Command, to *client) error {
	search := strings.ToLower(c.String("search"))
	users, err := filtered(to.UserIdentities(ctx), func(u api.UserIdentity) bool {
		return strings.Contains(strings.ToLower(strings.Join([]string{
			u.DisplayName,
			domain.Value(u.FullName),
			domain.Value(u.EmailAddress),
			domain.Value(u.PhoneNumber),
			domain.Value(u.UserIdentityKey),
		}, "\n")), search)
	})
	if err != nil {
		return err
	}
	return listing[api.UserIdentity]{
		columns: []column[api.UserIdentity]{
			{"USER", func(u api.UserIdentity) string { return u.UserIdentityID }},
			{"NAME", func(u api.UserIdentity) string { return printable(u.DisplayName) }},
			{"EMAIL", func(u api.UserIdentity) string { return printable(domain.Value(u.EmailAddress)) }},
			{"PHONE", func(u api.UserIdentity) string { return printable(domain.Value(u.PhoneNumber)) }},
			{"KEY", func(u api.UserIdentity) string { return printable(domain.Value(u.UserIdentityKey)) }},
			{"ACCESS USERS", func(u api.UserIdentity) string { return fmt.Sprint(len(u.AcsUserIds)) }},
			{"CREATED", func(u api.UserIdentity) string { return formatTime(u.CreatedAt) }},
		},
		id:    func(u api.UserIdentity) string { return u.UserIdentityID },
		empty: "There are no such people. Clients create them with POST /user_identities/create.",
	}.print(c, users)
}
