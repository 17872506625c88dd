// Command deviceaccess-server is the Device Access API: the server, and the commands of those who run it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// version is set when a release is built.
var version = "dev"

// versionOf is the version that was set, or else that of the module as go install has built it.
func versionOf(set string, info *debug.BuildInfo) string {
	if set != "dev" || info == nil || !strings.HasPrefix(info.Main.Version, "v") {
		return set
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

func main() {
	info, _ := debug.ReadBuildInfo()
	version = versionOf(version, info)
	app.Tune()
	ends := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as in the background of a script, and with nohup
			ends = append(ends, s)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	told := make(chan os.Signal, 1)
	signal.Notify(told, ends...)
	go func() {
		<-told
		signal.Ignore(syscall.SIGHUP) // of which the end of a session may send two
		signal.Stop(told)             // a second one does not wait for what the first has left to do
		stop()
	}()
	if err := command().Run(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "deviceaccess-server:", lines(ofVariable(err.Error())))
		os.Exit(1)
	}
}

func command() *cli.Command {
	return strict(&cli.Command{
		Name:    "deviceaccess-server",
		Usage:   "door codes and webhooks over an HTTP API",
		Version: version,
		Description: "Without a database URL the server keeps a private PostgreSQL in its data directory.\n" +
			"Every flag can be given as the environment variable shown beside it.",
		Commands:                  []*cli.Command{serveCommand(), accountsCommand(), keysCommand(), auditCommand(), webhooksCommand(), workspacesCommand(), sandboxCommand(), migrateCommand(), backupCommand(), restoreCommand()},
		ExitErrHandler:            func(context.Context, *cli.Command, error) {}, // main prints it once
		DisableSliceFlagSeparator: true,
	})
}

// strict refuses words and flags on the command line that mean nothing, for a command and those below it: a command takes one
// argument if its ArgsUsage names it, else none.
func strict(c *cli.Command) *cli.Command {
	for _, below := range c.Commands {
		strict(below)
	}
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error { return usageError(c, err) }
	if c.Action == nil {
		c.Action = func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return fmt.Errorf("there is no command %q; %s --help shows them", c.Args().First(), c.FullName())
			}
			return cli.ShowSubcommandHelp(c)
		}
		return c
	}
	known, act := 0, c.Action
	if c.ArgsUsage != "" {
		known = 1
	}
	c.Action = func(ctx context.Context, c *cli.Command) error {
		if c.Args().Len() > known {
			return fmt.Errorf("%q is too much; %s --help shows what it takes", c.Args().Get(known), c.FullName())
		}
		if dir, wanted := c.Value("data-dir").(string); wanted && dir == "" && keepsData(c) {
			return errors.New("there is no home directory to keep the data below: name a directory with --data-dir")
		}
		_, words, _ := strings.Cut(c.FullName(), " ")
		return act(access.ActingByCommand(ctx, username(), words), c)
	}
	return c
}

// keepsData says whether a command has something below its data directory: the database, its key, or what is simulated, which can be
// asked for at any time.
func keepsData(c *cli.Command) bool {
	given := func(flag string) bool { value, _ := c.Value(flag).(string); return value != "" }
	simulates := strings.HasSuffix(c.FullName(), " serve") && !given("sandbox-url")
	return !given("database-url") || !given("master-key") || simulates || strings.Contains(c.FullName(), " sandbox")
}

// username is who has given the command, for the audit log.
func username() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprint(os.Getuid())
	}
	return u.Username
}

// env names the environment variable of a flag. One that is empty counts as one that is not set.
func env(name string) cli.ValueSourceChain {
	return cli.ValueSourceChain{Chain: []cli.ValueSource{variable{cli.EnvVar(name)}}}
}

// given is how a flag's value was given, for people: by the flag itself, or by its variable.
func given(c *cli.Command, flag, variable string) string {
	if value := os.Getenv(variable); value != "" && value == c.String(flag) {
		return variable
	}
	return "--" + flag
}

type variable struct{ cli.ValueSource }

func (v variable) Lookup() (string, bool) {
	value, _ := v.ValueSource.Lookup()
	return value, value != ""
}

func (v variable) IsFromEnv() bool { return true }

func (v variable) Key() string { return v.ValueSource.(cli.EnvValueSource).Key() }

// databaseFlags say where the data is; every command has them.
func databaseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "database-url", Sources: env("DEVICEACCESS_DATABASE_URL"), Category: "Data",
			Usage: "PostgreSQL 14 or newer, as `URL` or libpq string; without it a private one is run in the data directory"},
		&cli.StringFlag{Name: "data-dir", Sources: env("DEVICEACCESS_DATA_DIR"), Value: app.DefaultDataDir(), Category: "Data", Validator: notEmpty,
			Usage: "`DIR` for the private PostgreSQL, the master key and the simulated locks"},
		&cli.StringFlag{Name: "master-key", Sources: env("DEVICEACCESS_MASTER_KEY"), Category: "Data", HideDefault: true,
			Usage: "`KEY` of 32 bytes in base64 that encrypts PINs and secrets; without it the file master.key in the data directory, made at the first start. Prefer the variable: other users can see a process's flags"},
		&cli.StringFlag{Name: "log-format", Sources: env("DEVICEACCESS_LOG_FORMAT"), Value: "text", Category: "Log", Usage: "`text` or json",
			Validator: oneOf("text", "json")},
		&cli.StringFlag{Name: "log-level", Sources: env("DEVICEACCESS_LOG_LEVEL"), Value: "info", Category: "Log", Usage: "debug, `info`, warn or error",
			Validator: oneOf("debug", "info", "warn", "error")},
	}
}

func notEmpty(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	return nil
}

func oneOf(values ...string) func(string) error {
	return func(v string) error {
		for _, known := range values {
			if v == known {
				return nil
			}
		}
		return fmt.Errorf("%q is none of %v", v, values)
	}
}

func database(c *cli.Command) app.Database {
	return app.Database{DatabaseURL: c.String("database-url"), URLGiven: given(c, "database-url", "DEVICEACCESS_DATABASE_URL"), DataDir: c.String("data-dir"), MasterKey: c.String("master-key"), Progress: os.Stderr}
}

// logger writes to standard error: standard output is for results.
func logger(c *cli.Command) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.String("log-level"))) // checked with the flags
	opt := &slog.HandlerOptions{Level: level}
	if c.String("log-format") == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opt))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opt))
}

// withAdmin runs f on the data that there is, whether the server runs or not.
func withAdmin(ctx context.Context, c *cli.Command, f func(*app.Admin) error) error {
	return opened(ctx, c, app.OpenAdmin, f)
}

// withNew is withAdmin for a command that one can begin with: it makes the data where there is none.
func withNew(ctx context.Context, c *cli.Command, f func(*app.Admin) error) error {
	return opened(ctx, c, app.BeginAdmin, f)
}

func opened(ctx context.Context, c *cli.Command, open func(context.Context, app.Database, *slog.Logger) (*app.Admin, error), f func(*app.Admin) error) (err error) {
	admin, err := open(ctx, database(c), logger(c))
	if err != nil {
		return err
	}
	defer func() {
		if closing := admin.Close(ctx); err == nil {
			err = closing
		}
	}()
	return f(admin)
}

func migrateCommand() *cli.Command {
	return &cli.Command{
		Name: "migrate", Usage: "bring the database up to this version, and end", Flags: databaseFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := app.Migrate(ctx, database(c), logger(c)); err != nil {
				return err
			}
			fmt.Println("The database is up to date.")
			return nil
		},
	}
}
