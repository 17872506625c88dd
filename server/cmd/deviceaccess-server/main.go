// Command deviceaccess-server runs the Device Access API and has the commands for its operators.
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
	_ "time/tzdata" // for containers, which have no time zones

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
)

// version is the version of the program. Release builds set it with -ldflags.
var version = "dev"

// commit is the commit of the source. Release builds set it with -ldflags. If empty, it is the one that Go recorded.
var commit string

// versionOf returns the version set at build time, or else the module version of a go install build.
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
		if !signal.Ignored(s) { // for background jobs of scripts and nohup
			ends = append(ends, s)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, ends...)
	go func() {
		<-signals
		signal.Ignore(syscall.SIGHUP) // the end of a session may send two
		signal.Stop(signals)          // a second signal ends the process immediately
		stop()
	}()
	if err := command().Run(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "deviceaccess-server:", printableLines(variableError(err.Error())))
		os.Exit(exitCode(err))
	}
}

func command() *cli.Command {
	return strict(&cli.Command{
		Name:    "deviceaccess-server",
		Usage:   "manage door codes and webhooks through an HTTP API",
		Version: version,
		Description: "Without --database-url, the server runs a private PostgreSQL in its data directory.\n" +
			"Flags can also be set with the environment variables shown next to them, and with a file: see --config.\n\n" +
			exitCodesHelp,
		Commands: []*cli.Command{
			serveCommand(),
			statusCommand(),
			devicesCommand(),
			codesCommand(),
			usersCommand(),
			eventsCommand(),
			accountsCommand(),
			keysCommand(),
			operatorsCommand(),
			auditCommand(),
			webhooksCommand(),
			workspacesCommand(),
			sandboxCommand(),
			migrateCommand(),
			doctorCommand(),
			backupCommand(),
			restoreCommand(),
			versionCommand(),
		},
		EnableShellCompletion:           true,
		ConfigureShellCompletionCommand: completionCommand,
		ExitErrHandler:                  func(context.Context, *cli.Command, error) {}, // main prints the error
		DisableSliceFlagSeparator:       true,
	})
}

// strict makes c and its subcommands reject unknown flags and surplus arguments. A command takes one argument if its
// ArgsUsage names one, else none.
func strict(c *cli.Command) *cli.Command {
	for _, below := range c.Commands {
		strict(below)
	}
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error { return usageError(c, err) }
	if c.Action == nil {
		c.Action = func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return usagef("unknown command %q; run %s --help for the commands", c.Args().First(), c.FullName())
			}
			if err := cli.ShowSubcommandHelp(c); err != nil || c.Root() == c {
				return err
			}
			return usagef("missing command; run %s --help for the commands", c.FullName())
		}
		return c
	}
	known, act := 0, c.Action
	if c.ArgsUsage != "" {
		known = 1
	}
	c.Action = func(ctx context.Context, c *cli.Command) error {
		if c.Args().Len() > known {
			return usagef("unexpected argument %q; run %s --help for the usage", c.Args().Get(known), c.FullName())
		}
		if !asksServer(c) {
			if err := applySettings(c); err != nil {
				return err
			}
		}
		if dir, wanted := c.Value("data-dir").(string); wanted && dir == "" && !asksServer(c) && keepsData(c) {
			return usagef("there is no home directory for the data: set a directory with --data-dir")
		}
		_, words, _ := strings.Cut(c.FullName(), " ")
		return act(audit.ActingByCommand(ctx, username(), words), c)
	}
	return c
}

// keepsData reports whether a command uses the data directory: for the database, its key, or simulated devices.
func keepsData(c *cli.Command) bool {
	given := func(flag string) bool { value, _ := c.Value(flag).(string); return value != "" }
	simulates := strings.HasSuffix(c.FullName(), " serve") && !given("sandbox-url")
	return !given("database-url") || !given("master-key") || simulates || strings.Contains(c.FullName(), " sandbox")
}

// username returns the user of the process, for the audit log.
func username() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprint(os.Getuid())
	}
	return u.Username
}

// env returns the environment variable of a flag. An empty variable counts as unset.
func env(name string) cli.ValueSourceChain {
	return cli.ValueSourceChain{Chain: []cli.ValueSource{variable{cli.EnvVar(name)}}}
}

// variable is an environment variable that counts as unset if it is empty.
type variable struct{ cli.ValueSource }

func (v variable) Lookup() (string, bool) {
	value, _ := v.ValueSource.Lookup()
	return value, value != ""
}

func (v variable) IsFromEnv() bool { return true }

func (v variable) Key() string { return v.ValueSource.(cli.EnvValueSource).Key() }

// databaseFlags returns the flags of every command: where the data is and how to log.
func databaseFlags() []cli.Flag {
	return []cli.Flag{
		configFlag(),
		&cli.StringFlag{
			Name:     "database-url",
			Sources:  env("DEVICEACCESS_DATABASE_URL"),
			Category: "Data",
			Usage: "use PostgreSQL 14 or newer at `URL`, or a libpq connection string (default: a private PostgreSQL in " +
				"the data directory)",
		},
		secretFileFlag("database-url", "read --database-url from `FILE`, such as a mounted secret"),
		&cli.StringFlag{
			Name:      "data-dir",
			Sources:   env("DEVICEACCESS_DATA_DIR"),
			Value:     app.DefaultDataDir(),
			Category:  "Data",
			Validator: notEmpty,
			Usage:     "keep the private PostgreSQL, the master key, and the simulated locks in `DIR`",
		},
		&cli.StringFlag{
			Name:        "master-key",
			Sources:     env("DEVICEACCESS_MASTER_KEY"),
			Category:    "Data",
			HideDefault: true,
			Usage: "encrypt PINs and secrets with `KEY`, 32 bytes in base64 (default: the file master.key in the data " +
				"directory, created at the first start). Prefer --master-key-file: other users can see a process's flags",
		},
		secretFileFlag(
			"master-key",
			"read --master-key from `FILE`; of several keys, each on its own line, the first encrypts",
		),
		&cli.StringFlag{
			Name:      "log-format",
			Sources:   env("DEVICEACCESS_LOG_FORMAT"),
			Value:     "text",
			Category:  "Log",
			Usage:     "log as `FORMAT`: text or json",
			Validator: validateOneOf("text", "json"),
		},
		&cli.StringFlag{
			Name:      "log-level",
			Sources:   env("DEVICEACCESS_LOG_LEVEL"),
			Value:     "info",
			Category:  "Log",
			Usage:     "log from `LEVEL` on: debug, info, warn, or error",
			Validator: validateOneOf("debug", "info", "warn", "error"),
		},
		&cli.BoolFlag{
			Name:     "quiet",
			Aliases:  []string{"q"},
			Category: "Log",
			Usage:    "log only warnings and errors, and show no progress",
		},
	}
}

func notEmpty(text string) error {
	if text == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func validateOneOf(values ...string) func(string) error {
	return func(v string) error {
		for _, known := range values {
			if v == known {
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s", v, strings.Join(values, ", "))
	}
}

func database(c *cli.Command) app.Database {
	d := app.Database{
		DatabaseURL: c.String("database-url"),
		URLSource:   flagSource(c, "database-url"),
		DataDir:     c.String("data-dir"),
		MasterKey:   c.String("master-key"),
	}
	if !c.Bool("quiet") {
		d.Progress = os.Stderr
	}
	return d
}

// logger returns a logger to standard error. Standard output is for results.
func logger(c *cli.Command) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.String("log-level"))) // the flag's Validator has checked it
	if c.Bool("quiet") {
		level = max(level, slog.LevelWarn)
	}
	opt := &slog.HandlerOptions{Level: level}
	if c.String("log-format") == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opt))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opt))
}

// withAdmin runs f on the existing data, whether a server runs or not.
func withAdmin(ctx context.Context, c *cli.Command, f func(*app.Admin) error) error {
	return opened(ctx, c, app.OpenAdmin, f)
}

// withNewAdmin is withAdmin for commands that may come first: it creates the data if there is none.
func withNewAdmin(ctx context.Context, c *cli.Command, f func(*app.Admin) error) error {
	return opened(ctx, c, app.OpenOrCreateAdmin, f)
}

func opened(
	ctx context.Context,
	c *cli.Command,
	open func(context.Context, app.Database, *slog.Logger) (*app.Admin, error),
	f func(*app.Admin) error,
) (err error) {
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
