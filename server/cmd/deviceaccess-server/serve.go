package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "run the server until it is told to stop",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "listen", Sources: env("DEVICEACCESS_LISTEN"), Value: "127.0.0.1:8500", Category: "Server",
				Usage: "`HOST:PORT` to listen on; port 0 takes a free one"},
			&cli.StringFlag{Name: "public-url", Sources: env("DEVICEACCESS_PUBLIC_URL"), Category: "Server",
				Usage: "`URL` by which clients reach the server, for the links it hands out; without it the one they have called"},
			&cli.BoolFlag{Name: "trust-proxy", Sources: env("DEVICEACCESS_TRUST_PROXY"), Category: "Server",
				Usage: "believe X-Forwarded-Proto and X-Forwarded-Host, which a proxy in front of the server has to set"},
			&cli.StringFlag{Name: "ready-file", Sources: env("DEVICEACCESS_READY_FILE"), Category: "Server",
				Usage: "once requests are answered, write {\"url\",\"api_key\",\"workspace_id\"} to `FILE`, readable by its owner only"},
			&cli.DurationFlag{Name: "attempt-timeout", Sources: env("DEVICEACCESS_ATTEMPT_TIMEOUT"), Value: 10 * time.Minute, Category: "Server",
				Usage: "`TIME` after which an action attempt that its device has not confirmed ends in an error"},
			&cli.DurationFlag{Name: "shutdown-timeout", Sources: env("DEVICEACCESS_SHUTDOWN_TIMEOUT"), Value: 20 * time.Second, Category: "Server",
				Usage: "`TIME` that requests and work in hand have to end when the server stops"},
			&cli.IntFlag{Name: "max-connections", Sources: env("DEVICEACCESS_MAX_CONNECTIONS"), Value: 16, Category: "Data",
				Usage: "`NUMBER` of database connections this server uses at most"},
			&cli.BoolFlag{Name: "sandbox", Sources: env("DEVICEACCESS_SANDBOX"), Category: "Sandbox",
				Usage: "make a sandbox workspace with simulated locks of every profile, unless there is one, and print its API key once"},
			&cli.IntFlag{Name: "sandbox-locks", Sources: env("DEVICEACCESS_SANDBOX_LOCKS"), Value: 1, Category: "Sandbox",
				Usage: "`NUMBER` of locks of each profile in a new sandbox workspace"},
			&cli.FloatFlag{Name: "sandbox-speed", Sources: env("DEVICEACCESS_SANDBOX_SPEED"), Value: 1, Category: "Sandbox",
				Usage: "`FACTOR` by which simulated locks are quicker than they would be"},
		}, databaseFlags()...),
		Action: serve,
	}
}

func serve(ctx context.Context, c *cli.Command) error {
	log := logger(c)
	begin := time.Now()
	a, err := app.Start(ctx, app.Config{
		Database: withConnections(database(c), c.Int("max-connections")), Listen: c.String("listen"), PublicURL: c.String("public-url"), TrustProxy: c.Bool("trust-proxy"),
		Sandbox: c.Bool("sandbox"), Sandboxing: app.Sandboxing{LocksPerProfile: c.Int("sandbox-locks"), Speed: c.Float("sandbox-speed")},
		Access: access.Options{AttemptPatience: c.Duration("attempt-timeout")}, Log: log,
	})
	if err != nil {
		return err
	}
	log.Info("ready", "url", a.URL, "after", time.Since(begin).Round(time.Millisecond))
	err = announce(ctx, a, c.String("ready-file"))
	if err == nil {
		select {
		case <-ctx.Done():
			log.Info("stopping")
		case err = <-a.Failed():
			log.Error("cannot go on", "error", err)
		}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Duration("shutdown-timeout"))
	defer cancel()
	err = errors.Join(err, a.Stop(stopping))
	log.Info("stopped")
	return err
}

func withConnections(d app.Database, n int) app.Database {
	d.MaxConns = int32(n)
	return d
}

// announce tells people, and the ready file tells programs, how to reach the server.
func announce(ctx context.Context, a *app.App, file string) error {
	key := a.Sandbox.APIKey
	if key != "" {
		fmt.Printf("The sandbox workspace is %s. Its API key, shown this once:\n%s\n", a.Sandbox.WorkspaceID, key)
	}
	if file == "" {
		return nil
	}
	ready := map[string]string{"url": a.URL, "api_key": key, "workspace_id": ""}
	if a.Sandbox.HasWorkspace() {
		ready["workspace_id"] = a.Sandbox.WorkspaceID.String()
		if key == "" {
			var err error
			if ready["api_key"], err = a.Sandbox.RenewKey(ctx, "ready-file"); err != nil {
				return err
			}
		}
	}
	b, err := json.Marshal(ready)
	if err != nil {
		return err
	}
	if err := writeWhole(file, append(b, '\n')); err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	return nil
}

// writeWhole replaces a file such that nobody reads half of it, or anybody but its owner at all.
func writeWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".ready-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // the first error counts
	}
	return err
}
