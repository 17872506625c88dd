package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

const consoleCategory = "Console"

// consoleFlags returns the flags of serve about the console.
func consoleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{
			Name:     "console",
			Sources:  env("DEVICEACCESS_CONSOLE"),
			Value:    true,
			Category: consoleCategory,
			Usage:    "serve pages for operators at /console; --console=false answers 404 there",
		},
		&cli.StringFlag{
			Name:     "console-listen",
			Sources:  env("DEVICEACCESS_CONSOLE_LISTEN"),
			Category: consoleCategory,
			Usage:    "serve the console on `HOST:PORT` instead of the address of the API",
		},
		&cli.BoolFlag{
			Name:     "console-reveal",
			Sources:  env("DEVICEACCESS_CONSOLE_REVEAL"),
			Value:    true,
			Category: consoleCategory,
			Usage:    "let operators reveal a PIN, which the audit log records; --console-reveal=false hides PINs from everyone",
		},
		&cli.BoolFlag{
			Name:     "console-local-sign-in",
			Sources:  env("DEVICEACCESS_CONSOLE_LOCAL_SIGN_IN"),
			Value:    true,
			Category: consoleCategory,
			Usage: "let operators sign in with passwords and passkeys; --console-local-sign-in=false leaves only " +
				"--oidc-issuer",
		},
		&cli.StringFlag{
			Name:     "admin-email",
			Sources:  env("DEVICEACCESS_ADMIN_EMAIL"),
			Category: consoleCategory,
			Usage: "create an administrator with the address `EMAIL` if there is no operator, for containers (default: the log " +
				"has a link that does)",
		},
		&cli.StringFlag{
			Name:        "admin-password",
			Sources:     env("DEVICEACCESS_ADMIN_PASSWORD"),
			Category:    consoleCategory,
			HideDefault: true,
			Usage: "give the operator of --admin-email the `PASSWORD` of at least 12 characters. Prefer " +
				"--admin-password-file: other users can see a process's flags",
		},
		consoleSecretFileFlag("admin-password", "read --admin-password from `FILE`, such as a mounted secret"),
		&cli.StringFlag{
			Name:      "oidc-issuer",
			Sources:   env("DEVICEACCESS_OIDC_ISSUER"),
			Category:  consoleCategory,
			Validator: webAddress,
			Usage: "let operators sign in at the OpenID Connect provider at `URL`; register /console/oidc/callback below the " +
				"public URL there as the redirect URI",
		},
		&cli.StringFlag{
			Name:     "oidc-client-id",
			Sources:  env("DEVICEACCESS_OIDC_CLIENT_ID"),
			Category: consoleCategory,
			Usage:    "identify this server at the provider by the client `ID`",
		},
		&cli.StringFlag{
			Name:        "oidc-client-secret",
			Sources:     env("DEVICEACCESS_OIDC_CLIENT_SECRET"),
			Category:    consoleCategory,
			HideDefault: true,
			Usage: "authenticate at the provider with `SECRET`; public clients have none. Prefer " +
				"--oidc-client-secret-file: other users can see a process's flags",
		},
		consoleSecretFileFlag("oidc-client-secret", "read --oidc-client-secret from `FILE`, such as a mounted secret"),
		&cli.StringFlag{
			Name:      "oidc-role-claim",
			Sources:   env("DEVICEACCESS_OIDC_ROLE_CLAIM"),
			Category:  consoleCategory,
			Validator: roleClaim,
			Usage: "give roles by a claim at each sign-in: `CLAIM=ROLE:VALUE`, such as groups=admin:ops,viewer:*; * is " +
				"everyone, and operator@WORKSPACE:staff a role in one workspace (default: administrators invite people)",
		},
	}
}

func consoleSecretFileFlag(name, usage string) cli.Flag {
	f := secretFileFlag(name, usage).(*cli.StringFlag)
	f.Category = consoleCategory
	return f
}

func roleClaim(text string) error {
	_, err := operator.ParseRoleClaim(text)
	return err
}

// consoleOptions returns the options of the console. Its errors are about settings.
func consoleOptions(c *cli.Command) (app.ConsoleOptions, error) {
	roles, err := operator.ParseRoleClaim(c.String("oidc-role-claim"))
	if err != nil {
		return app.ConsoleOptions{}, usagef("%s: %w", flagSource(c, "oidc-role-claim"), err)
	}
	o := app.ConsoleOptions{
		Disabled:      !c.Bool("console"),
		Listen:        c.String("console-listen"),
		NoReveal:      !c.Bool("console-reveal"),
		NoLocalSignIn: !c.Bool("console-local-sign-in"),
		OIDC: operator.OIDC{
			Issuer:       c.String("oidc-issuer"),
			ClientID:     c.String("oidc-client-id"),
			ClientSecret: c.String("oidc-client-secret"),
			Roles:        roles,
		},
		AdminEmail:    c.String("admin-email"),
		AdminPassword: c.String("admin-password"),
	}
	switch {
	case (o.OIDC.Issuer == "") != (o.OIDC.ClientID == ""):
		return o, usagef("--oidc-issuer and --oidc-client-id belong together: set both or none")
	case o.OIDC.Issuer == "" && (o.OIDC.ClientSecret != "" || roles.Claim != ""):
		return o, usagef("--oidc-client-secret and --oidc-role-claim need --oidc-issuer")
	case o.NoLocalSignIn && o.OIDC.Issuer == "" && !o.Disabled:
		return o, usagef("--console-local-sign-in=false needs --oidc-issuer, or else no operator could sign in")
	case (o.AdminEmail == "") != (o.AdminPassword == ""):
		return o, usagef("--admin-email and --admin-password belong together: set both or none")
	}
	if o.AdminEmail != "" {
		if err := operator.CheckCredentials(o.AdminEmail, o.AdminPassword); err != nil {
			return o, usagef("--admin-email and --admin-password: %w", err)
		}
	}
	return o, nil
}

// logFirstOperator logs the link that creates the first operator, until there is one.
func logFirstOperator(ctx context.Context, a *app.App, config app.Config) error {
	token, err := a.Access.Operators.FirstRunLink(ctx)
	if err != nil || token == "" {
		return err
	}
	base := config.PublicURL
	if config.Console.Listen != "" { // that is the URL of the API
		base = ""
	}
	config.Log.Info(
		"next step: open the link within 1 h to create the first operator of the console; each start makes a new link",
		"open", consoleLink(base, a.ConsoleURL, operator.Setup, token),
	)
	return nil
}

// consoleLink returns the URL of a one-time link. If the server has no public URL, the link is below another one.
func consoleLink(publicURL, otherwise string, purpose operator.Purpose, token string) string {
	base, page := strings.TrimRight(publicURL, "/"), "invite"
	if base == "" {
		base = otherwise
	}
	if purpose == operator.Setup {
		page = "setup"
	}
	return base + "/console/" + page + "/" + token
}
