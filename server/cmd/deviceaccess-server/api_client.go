package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// defaultServer is where a server listens by default.
const defaultServer = "http://127.0.0.1:8500"

// keyVariable is the environment variable of a key. There is no such flag, because other users can see flags.
const keyVariable = "DEVICEACCESS_KEY"

// apiFlags returns the flags of commands that call the API of a server: where it is, and which key to use.
func apiFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name:     "server",
			Sources:  env("DEVICEACCESS_SERVER"),
			Category: "Server",
			Usage:    "ask the server at `URL` (default: that of the profile, or " + defaultServer + ")",
		},
		&cli.StringFlag{
			Name:     "key-file",
			Sources:  env("DEVICEACCESS_KEY_FILE"),
			Category: "Server",
			Usage: "read the API key from `FILE`, or from standard input if it is - (default: the variable " +
				keyVariable + ", or the key of the profile)",
		},
		&cli.StringFlag{
			Name:     "profile",
			Sources:  env("DEVICEACCESS_PROFILE"),
			Category: "Server",
			Usage: "use the server and the key of the profile `NAME` in ~/.config/deviceaccess/profiles.yaml (default: the " +
				"default of that file)",
		},
		&cli.StringFlag{
			Name:     "workspace",
			Sources:  env("DEVICEACCESS_WORKSPACE"),
			Category: "Server",
			Usage:    "act in the workspace `ID`; only for personal access tokens and console sessions",
		},
	}
}

// apiCommandFlags returns own flags with those of the API and of the output.
func apiCommandFlags(own ...cli.Flag) []cli.Flag {
	return append(append(own, outputFlags()...), apiFlags()...)
}

// connection is how a command reaches a server.
type connection struct {
	server, workspace string
	key, keySource    string
}

// connectionOf reads the connection from flags, variables, and the profile.
func connectionOf(ctx context.Context, c *cli.Command) (connection, error) {
	p, err := readProfile(c.String("profile"))
	if err != nil {
		return connection{}, err
	}
	out := connection{
		server:    strings.TrimRight(cmp.Or(c.String("server"), p.Server, defaultServer), "/"),
		workspace: cmp.Or(c.String("workspace"), p.Workspace),
	}
	if err := api.CheckEndpoint(out.server); err != nil {
		return out, usagef("--server: %w", err)
	}
	if out.key, out.keySource, err = keyOf(ctx, c); err != nil {
		return out, err
	}
	if out.key == "" && p.KeyFile != "" {
		if of := strings.TrimRight(cmp.Or(p.Server, defaultServer), "/"); !strings.EqualFold(out.server, of) {
			return out, usagef(
				"the key of the profile is for %s, not for %s: set --key-file or %s",
				of,
				out.server,
				keyVariable,
			)
		}
		if out.key, err = readKey(ctx, p.KeyFile); err != nil {
			return out, usagef("key-file in %s: %w", profilesPath(), err)
		}
		out.keySource = p.KeyFile
	}
	return out, out.check()
}

// keyOf reads the key of the flag or of a variable. It returns an empty key if none is set.
func keyOf(ctx context.Context, c *cli.Command) (key, source string, err error) {
	key = strings.TrimSpace(os.Getenv(keyVariable))
	file := c.String("key-file")
	switch {
	case file == "":
		return key, keyVariable, nil
	case key != "" && flagSource(c, "key-file") != "--key-file":
		return "", "", usagef("both %s and DEVICEACCESS_KEY_FILE are set: remove one of them", keyVariable)
	}
	if key, err = readKey(ctx, file); err != nil {
		return "", "", usagef("%s: %w", flagSource(c, "key-file"), err)
	}
	return key, file, nil
}

// readKey reads a key from a file, or from standard input.
func readKey(ctx context.Context, file string) (string, error) {
	if file == "-" {
		text, err := answer(ctx)
		if text = strings.TrimSpace(text); text == "" {
			return "", errors.Join(errors.New("standard input has no key"), err)
		}
		return text, nil
	}
	key, mode, err := readSecret(file)
	if err == nil && mode&0o004 != 0 {
		fmt.Fprintf(os.Stderr, "Every user of this machine can read the key in %s: run chmod 600 on it.\n", file)
	}
	return key, err
}

// check returns an error if the key cannot be used, and warns if it travels unencrypted.
func (o connection) check() error {
	switch {
	case o.key == "":
		return usagef(
			"there is no API key: set --key-file, %s, or a profile; `deviceaccess-server keys create` on the "+
				"server's machine creates a key",
			keyVariable,
		)
	case strings.ContainsFunc(o.key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return usagef("%s does not contain an API key", o.keySource)
	case api.IsPublishable(o.key):
		return usagef("%s contains a publishable key, which only creates client sessions: use an API key", o.keySource)
	case api.NeedsWorkspace(o.key) && o.workspace == "":
		return usagef("%s contains a personal access token or a console session: choose a workspace with --workspace",
			o.keySource)
	}
	if u, err := url.Parse(o.server); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		fmt.Fprintf(
			os.Stderr,
			"The key and the PINs are not encrypted on the way to %s. Use https.\n",
			printable(o.server),
		)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// client is a client of the API of one server.
type client struct {
	*api.Client

	connection
}

// withClient runs f with a client of the server that the flags select.
func withClient(f func(context.Context, *cli.Command, *client) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		to, err := newClient(ctx, c)
		if err != nil {
			return err
		}
		return to.explain(f(ctx, c, to))
	}
}

// asksServer reports whether a command that also works on the database is told to ask a server.
func asksServer(c *cli.Command) bool {
	return hasFlag(c, "server") && (c.String("server") != "" || c.String("profile") != "")
}

// onServerOr runs a command over the API if --server or --profile is set, and otherwise on the database.
func onServerOr(
	remote func(context.Context, *cli.Command, *client) error,
	local func(context.Context, *cli.Command, *app.Admin) error,
) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		if asksServer(c) {
			return withClient(remote)(ctx, c)
		}
		return withAdmin(ctx, c, func(a *app.Admin) error { return local(ctx, c, a) })
	}
}

func newClient(ctx context.Context, c *cli.Command) (*client, error) {
	to, err := connectionOf(ctx, c)
	if err != nil {
		return nil, err
	}
	made, err := api.New(api.Config{
		Endpoint:       to.server,
		Credential:     to.key,
		CredentialFrom: to.keySource,
		WorkspaceID:    to.workspace,
		UserAgent:      "deviceaccess-server/" + version,
	})
	if err != nil {
		return nil, usagef("--server: %w", err)
	}
	return &client{made, to}, nil
}

// explain adds to an error of the API what to do about it.
func (o *client) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case api.IsUntrusted(err):
		return fmt.Errorf(
			"the certificate of %s is not trusted: %w; to trust its authority, set SSL_CERT_FILE",
			o.server,
			unwrapURL(err),
		)
	case api.IsNotConnected(err):
		return fmt.Errorf("the server at %s cannot be reached: %w; check --server, and that the server runs", o.server,
			unwrapURL(err))
	case api.StatusOf(err) == 401:
		return fmt.Errorf("%w; the key is that of %s", err, o.keySource)
	case api.IsNoRoute(err):
		return fmt.Errorf(
			"%w; check that --server %s is the address of a Device Access server, and that it is not older "+
				"than this program",
			err,
			o.server,
		)
	}
	return err
}

// unwrapURL returns the reason of an error of net/http, without the method and the URL.
func unwrapURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// exitCodeOfResponse returns the exit code for a rejection by a server.
func exitCodeOfResponse(err error) int {
	switch status := api.StatusOf(err); {
	case api.IsNotFound(err):
		return exitNotFound
	case api.IsNoRoute(err), status == 429, status >= 500:
		return exitFailed
	case status == 400, status == 422:
		return exitUsage
	case status >= 400:
		return exitRefused
	}
	return exitFailed
}
