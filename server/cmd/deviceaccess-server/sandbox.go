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
		Name: "sandbox", Usage: "look into simulated locks, add simulated access systems, and run the simulated cloud by itself",
		Commands: []*cli.Command{serveCloudCommand(), {
			Name: "connect-access-systems", Usage: "connect an account at the simulated vendor of access systems to the sandbox workspace; the server may run meanwhile",
			Flags: append([]cli.Flag{
				&cli.IntFlag{Name: "systems", Value: 1, Usage: "`NUMBER` of access systems that it has"},
				&cli.StringFlag{Name: "name", Value: "Simulated access systems", Usage: "`TEXT` to know it by"},
			}, databaseFlags()...),
			Action: func(ctx context.Context, c *cli.Command) error {
				if n := c.Int("systems"); n < 1 || n > 100 {
					return fmt.Errorf("--systems: give a number from 1 to 100")
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
			Name: "memory", Usage: "show what is really on a simulated lock, by asking the simulated cloud and not the API", ArgsUsage: "DEVICE_ID",
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "endpoint", Sources: env("DEVICEACCESS_ENDPOINT"), Value: "http://127.0.0.1:8500", Usage: "`URL` of the running server"},
			}, databaseFlags()...),
			Action: func(ctx context.Context, c *cli.Command) error {
				if !c.Args().Present() {
					return fmt.Errorf("name the lock by its device_id, as POST /devices/list shows it")
				}
				return withAdmin(ctx, c, func(a *app.Admin) error {
					codes, err := a.LockMemory(ctx, c.String("endpoint"), c.Args().First())
					if err != nil {
						return err
					}
					t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
					for _, code := range codes {
						fmt.Fprintf(t, "%s\t%s\n", cell(code.PIN), cell(code.Name))
					}
					return t.Flush()
				})
			},
		}},
	}
}

func serveCloudCommand() *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "run the simulated cloud by itself, for several servers on one database that are given its URL as --sandbox-url",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "listen", Sources: env("DEVICEACCESS_SANDBOX_LISTEN"), Value: "127.0.0.1:8501", Validator: notEmpty, Usage: "`HOST:PORT` to listen on; port 0 takes a free one"},
			sandboxSpeedFlag(),
		}, databaseFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			log := logger(c)
			cloud, err := app.StartCloud(ctx, app.CloudConfig{Database: database(c), Listen: c.String("listen"), Sandboxing: app.Sandboxing{Speed: c.Float("sandbox-speed")}, Log: log})
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
