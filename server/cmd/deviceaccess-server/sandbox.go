package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func sandboxCommand() *cli.Command {
	return &cli.Command{
		Name: "sandbox", Usage: "inspect simulated locks, add simulated access systems, and run the simulated cloud",
		Commands: []*cli.Command{serveCloudCommand(), {
			Name:  "connect-access-systems",
			Usage: "connect simulated access systems to the sandbox workspace, also while the server runs",
			Flags: append([]cli.Flag{
				&cli.IntFlag{Name: "systems", Value: 1, Usage: "simulate `NUMBER` access systems, 1 to 100"},
				&cli.StringFlag{
					Name:  "name",
					Value: "Simulated access systems",
					Usage: "set the display name to `TEXT`",
				},
			}, databaseFlags()...),
			Action: func(ctx context.Context, c *cli.Command) error {
				if n := c.Int("systems"); n < 1 || n > 100 {
					return usagef("--systems: must be a number from 1 to 100")
				}
				return withAdmin(ctx, c, func(a *app.Admin) error {
					id, err := a.ConnectSandboxAccess(ctx, c.String("name"), c.Int("systems"))
					if err != nil {
						return err
					}
					fmt.Println(id)
					return nil
				})
			},
		}, {
			Name:      "codes",
			Usage:     "print the PINs and names of the codes on a simulated lock, as its simulated cloud reports them",
			ArgsUsage: "DEVICE_ID",
			Flags: append([]cli.Flag{
				&cli.StringFlag{
					Name:    "endpoint",
					Sources: env("DEVICEACCESS_ENDPOINT"),
					Value:   "http://127.0.0.1:8500",
					Usage:   "ask the server at `URL`",
				},
			}, databaseFlags()...),
			Action: func(ctx context.Context, c *cli.Command) error {
				if !c.Args().Present() {
					return usagef("missing argument: the device_id of the lock, from POST /devices/list")
				}
				return withAdmin(ctx, c, func(a *app.Admin) error {
					codes, err := a.LockMemory(ctx, c.String("endpoint"), c.Args().First())
					if err != nil {
						return err
					}
					printIfEmpty(
						len(codes),
						"The lock has no codes yet. Clients create them with POST /access_codes/create.",
					)
					t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
					for _, code := range codes {
						fmt.Fprintf(t, "%s\t%s\n", printable(code.PIN), printable(code.Name))
					}
					return t.Flush()
				})
			},
		}},
	}
}

func serveCloudCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "run the simulated cloud as its own process, for servers that share a database and set --sandbox-url",
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name:      "listen",
				Sources:   env("DEVICEACCESS_SANDBOX_LISTEN"),
				Value:     "127.0.0.1:8501",
				Validator: notEmpty,
				Usage:     "listen on `HOST:PORT`; port 0 selects a free port",
			},
			sandboxSpeedFlag(),
		}, databaseFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			log := logger(c)
			cloud, err := app.StartCloud(ctx, app.CloudConfig{
				Database:   database(c),
				Listen:     c.String("listen"),
				Sandboxing: app.Sandboxing{Speed: c.Float("sandbox-speed")},
				Log:        log,
			})
			if err != nil {
				return err
			}
			log.Info("ready", "url", cloud.URL)
			select {
			case <-ctx.Done():
			case err = <-cloud.Failed():
			}
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
			defer cancel()
			return errors.Join(err, cloud.Stop(stopping))
		},
	}
}
