package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "run the server until SIGINT or SIGTERM",
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name:      "listen",
				Sources:   env("DEVICEACCESS_LISTEN"),
				Value:     "127.0.0.1:8500",
				Category:  "Server",
				Validator: notEmpty,
				Usage:     "listen on `HOST:PORT`; port 0 selects a free port",
			},
			&cli.StringFlag{
				Name:      "public-url",
				Sources:   env("DEVICEACCESS_PUBLIC_URL"),
				Category:  "Server",
				Validator: webAddress,
				Usage: "build links to connect pages and URLs for vendors' events with `URL`, the https address of the server; " +
					"without it, the client that creates a link chooses its host (default: the URL of the request)",
			},
			&cli.StringSliceFlag{
				Name:      "trust-proxy",
				Sources:   env("DEVICEACCESS_TRUST_PROXY"),
				Category:  "Server",
				Validator: networks,
				Usage: "trust X-Forwarded-For, -Proto, and -Host from proxies in the network `CIDR`, such as 10.0.0.0/8, or at " +
					"an address; repeatable. The proxies must set these headers",
			},
			&cli.StringFlag{
				Name:     "tls-cert",
				Sources:  env("DEVICEACCESS_TLS_CERT"),
				Category: "Server",
				Usage: "serve HTTPS with the certificate chain in the PEM `FILE`; changes of the file take effect within seconds " +
					"(default: plain HTTP)",
			},
			&cli.StringFlag{
				Name:     "tls-key",
				Sources:  env("DEVICEACCESS_TLS_KEY"),
				Category: "Server",
				Usage:    "use the private key in the PEM `FILE` with --tls-cert",
			},
			&cli.IntFlag{
				Name:      "auth-failures-per-minute",
				Sources:   env("DEVICEACCESS_AUTH_FAILURES_PER_MINUTE"),
				Value:     30,
				Category:  "Server",
				Validator: notNegative[int],
				Usage: "limit failed authentications and failed logins on pages to `NUMBER` per minute and client address, with " +
					"bursts of twice as many; 0 is unlimited",
			},
			&cli.IntFlag{
				Name:      "requests-per-second",
				Sources:   env("DEVICEACCESS_REQUESTS_PER_SECOND"),
				Category:  "Server",
				Validator: notNegative[int],
				Usage:     "limit requests to `NUMBER` per second and credential, with bursts of twice as many; 0 is unlimited",
			},
			&cli.IntFlag{
				Name:      "session-requests-per-second",
				Sources:   env("DEVICEACCESS_SESSION_REQUESTS_PER_SECOND"),
				Value:     ratelimit.SessionRequestsPerSecond,
				Category:  "Server",
				Validator: notNegative[int],
				Usage: "limit requests with client sessions and publishable keys to `NUMBER` per second and client " +
					"address, with bursts of ten times as many; 0 is unlimited. Without --trust-proxy, all clients behind a " +
					"proxy share its address",
			},
			&cli.IntFlag{
				Name:      "connect-pages-per-second",
				Sources:   env("DEVICEACCESS_CONNECT_PAGES_PER_SECOND"),
				Value:     5,
				Category:  "Server",
				Validator: notNegative[int],
				Usage: "limit requests for connect pages to `NUMBER` per second and client address, with bursts of ten " +
					"times as many; 0 is unlimited",
			},
			&cli.IntFlag{
				Name:      "workspaces-per-minute",
				Sources:   env("DEVICEACCESS_WORKSPACES_PER_MINUTE"),
				Value:     ratelimit.WorkspacesPerMinute,
				Category:  "Server",
				Validator: notNegative[int],
				Usage:     "limit created and reset workspaces to `NUMBER` per minute and credential; 0 is unlimited",
			},
			&cli.IntFlag{
				Name:      "client-connections",
				Sources:   env("DEVICEACCESS_CLIENT_CONNECTIONS"),
				Value:     admission.DefaultConnections,
				Category:  "Server",
				Validator: atLeast(16),
				Usage: "accept at most `NUMBER` client connections, and at most half the limit of open files; when full, " +
					"close the longest idle connections of the address with the most",
			},
			&cli.BoolFlag{
				Name:     "check-config",
				Category: "Server",
				Usage: "check the settings, files, database, and master key, print one line for each, and exit with 0 or 1; " +
					"changes nothing",
			},
			&cli.StringFlag{
				Name:      "ready-file",
				Sources:   env("DEVICEACCESS_READY_FILE"),
				Category:  "Server",
				Validator: inADirectory,
				Usage: "write {\"url\",\"api_key\",\"workspace_id\"} to `FILE` when the server is ready; only its owner " +
					"can read it",
			},
			&durationFlag{
				Name:      "attempt-timeout",
				Sources:   env("DEVICEACCESS_ATTEMPT_TIMEOUT"),
				Value:     10 * time.Minute,
				Category:  "Server",
				Validator: positive[time.Duration],
				Usage:     "fail an action attempt that its device has not confirmed after `DURATION`",
			},
			&durationFlag{
				Name:      "offline-debounce",
				Sources:   env("DEVICEACCESS_OFFLINE_DEBOUNCE"),
				Value:     30 * time.Second,
				Category:  "Server",
				Validator: notNegative[time.Duration],
				Usage:     "send device.disconnected once a device is offline for `DURATION`; ignore shorter outages",
			},
			&durationFlag{
				Name:      "shutdown-timeout",
				Sources:   env("DEVICEACCESS_SHUTDOWN_TIMEOUT"),
				Value:     20 * time.Second,
				Category:  "Server",
				Validator: notNegative[time.Duration],
				Usage:     "wait at most `DURATION` for running requests and work on shutdown",
			},
			&durationFlag{
				Name:      "shutdown-delay",
				Sources:   env("DEVICEACCESS_SHUTDOWN_DELAY"),
				Category:  "Server",
				Validator: notNegative[time.Duration],
				Usage:     "accept requests for `DURATION` on shutdown while /health answers 503, so that a load balancer notices",
			},
			allowFlag(),
			&cli.BoolFlag{
				Name:     "connect-gateways",
				Sources:  env("DEVICEACCESS_CONNECT_GATEWAYS"),
				Category: "Server",
				Usage: "let users connect their own gateways on connect pages of workspaces with real locks, in addition to " +
					"accounts connect",
			},
			allowGatewayFlag(),
			vendorClientFlags()[0],
			vendorClientFlags()[1],
			&durationFlag{
				Name:      "delivery-retention",
				Sources:   env("DEVICEACCESS_DELIVERY_RETENTION"),
				Value:     30 * day,
				Category:  "Server",
				Validator: notNegative[time.Duration],
				Usage: "keep events and their completed or held deliveries for `DURATION`; pending deliveries stay; 0 keeps " +
					"all forever",
			},
			&durationFlag{
				Name:      "audit-retention",
				Sources:   env("DEVICEACCESS_AUDIT_RETENTION"),
				Value:     400 * day,
				Category:  "Server",
				Validator: notNegative[time.Duration],
				Usage:     "keep audit log entries for `DURATION`; 0 keeps all forever",
			},
			&cli.StringFlag{
				Name:     "metrics-listen",
				Sources:  env("DEVICEACCESS_METRICS_LISTEN"),
				Category: "Server",
				Usage:    "serve Prometheus metrics without authentication at /metrics on `HOST:PORT` (default: off)",
			},
			&cli.BoolFlag{
				Name:     "metrics-per-device",
				Sources:  env("DEVICEACCESS_METRICS_PER_DEVICE"),
				Category: "Server",
				Usage: "add metrics of each device (online, battery, unset codes) with its identifier and name as labels, for " +
					"10,000 devices at most",
			},
			&cli.StringFlag{
				Name:     "traces-endpoint",
				Sources:  env("OTEL_EXPORTER_OTLP_ENDPOINT"),
				Category: "Server",
				Usage: "send traces as OTLP over HTTP to `URL`, such as http://collector:4318 (default: off); see the guide " +
					"\"Traces\" for further OpenTelemetry variables",
			},
			&cli.IntFlag{
				Name:      "database-connections",
				Sources:   env("DEVICEACCESS_DATABASE_CONNECTIONS"),
				Value:     16 + app.ConnsOutsidePool,
				Category:  "Data",
				Usage:     "use at most `NUMBER` database connections",
				Validator: atLeast(app.MinConns),
			},
			&cli.BoolFlag{
				Name:     "sandbox",
				Sources:  env("DEVICEACCESS_SANDBOX"),
				Category: "Sandbox",
				Usage: "create a sandbox workspace with a simulated lock of every vendor and a thermostat, if there is none; " +
					"print its API key once, if the output is a terminal",
			},
			&cli.IntFlag{
				Name:      "sandbox-locks",
				Sources:   env("DEVICEACCESS_SANDBOX_LOCKS"),
				Value:     1,
				Category:  "Sandbox",
				Usage:     "create `NUMBER` devices of each vendor in a new sandbox workspace",
				Validator: atLeast(1),
			},
			sandboxSpeedFlag(),
			&cli.StringFlag{
				Name:      "sandbox-url",
				Sources:   env("DEVICEACCESS_SANDBOX_URL"),
				Category:  "Sandbox",
				Validator: webAddress,
				Usage: "use the simulated cloud at `URL`, run by sandbox serve, for servers that share a database " +
					"(default: simulate the locks in this process)",
			},
		}, append(consoleFlags(), databaseFlags()...)...),
		Action: serve,
	}
}

func allowGatewayFlag() cli.Flag {
	return &cli.StringSliceFlag{
		Name:      "allow-gateway-prefix",
		Sources:   env("DEVICEACCESS_ALLOW_GATEWAY_PREFIX"),
		Category:  "Server",
		Validator: networks,
		Usage: "allow connect pages to connect gateways in the network `CIDR`, such as 10.0.0.0/8, in addition to " +
			"public addresses; repeatable",
	}
}

func sandboxSpeedFlag() cli.Flag {
	return &cli.FloatFlag{
		Name:      "sandbox-speed",
		Sources:   env("DEVICEACCESS_SANDBOX_SPEED"),
		Value:     1,
		Category:  "Sandbox",
		Usage:     "divide the latency of simulated locks by `FACTOR`",
		Validator: finite,
	}
}

func webAddress(text string) error {
	if u, err := url.Parse(
		text,
	); text != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("%q is not a URL that starts with http:// or https://", text)
	}
	return nil
}

// inADirectory returns an error if the directory of file does not exist.
func inADirectory(file string) error {
	dir := filepath.Dir(file)
	if st, err := os.Stat(dir); file != "" && (errors.Is(err, fs.ErrNotExist) || err == nil && !st.IsDir()) {
		return fmt.Errorf("directory %s does not exist: create it first", dir)
	}
	return nil
}

func atLeast(least int) func(int) error {
	return func(n int) error {
		if n < least {
			return fmt.Errorf("%d is less than %d", n, least)
		}
		return nil
	}
}

func notNegative[T int | time.Duration](n T) error {
	if n < 0 {
		return fmt.Errorf("%v is less than 0", n)
	}
	return nil
}

func positive[T float64 | time.Duration](n T) error {
	if n > 0 { // false for NaN
		return nil
	}
	return fmt.Errorf("%v is not greater than 0", n)
}

func finite(f float64) error {
	if math.IsInf(f, 1) {
		return fmt.Errorf("%v is too large", f)
	}
	return positive(f)
}

// serverConfig returns the configuration of the server. Its errors are about settings.
func serverConfig(c *cli.Command) (app.Config, error) {
	if (c.String("tls-cert") == "") != (c.String("tls-key") == "") {
		return app.Config{}, usagef("--tls-cert and --tls-key belong together: set both or none")
	}
	clients, err := vendorClients(c)
	if err != nil {
		return app.Config{}, err
	}
	spans, err := tracing(c)
	if err != nil {
		return app.Config{}, exitError{err, exitUsage}
	}
	console, err := consoleOptions(c)
	if err != nil {
		return app.Config{}, err
	}
	return app.Config{
		Database:   withDatabaseConnections(database(c), c.Int("database-connections")),
		Listen:     c.String("listen"),
		PublicURL:  c.String("public-url"),
		TrustProxy: prefixes(c, "trust-proxy"),
		TLS:        app.TLSOptions{CertFile: c.String("tls-cert"), KeyFile: c.String("tls-key")},
		Sandbox:    c.Bool("sandbox"),
		Sandboxing: app.Sandboxing{
			LocksPerProfile: c.Int("sandbox-locks"),
			Speed:           c.Float("sandbox-speed"),
			URL:             c.String("sandbox-url"),
		},
		Access: access.Options{
			AttemptTimeout:  c.Duration("attempt-timeout"),
			OfflineDebounce: max(c.Duration("offline-debounce"), 1),
		},
		Webhooks: webhook.Options{AllowPrefixes: prefixes(c, "allow-webhook-prefix")},
		Retention: retention.Options{
			Events: c.Duration("delivery-retention"),
			Audit:  c.Duration("audit-retention"),
		},
		Connecting: app.Connecting{
			Gateways:      c.Bool("connect-gateways"),
			AllowPrefixes: prefixes(c, "allow-gateway-prefix"),
			Clients:       clients,
		},
		Console:     console,
		Connections: c.Int("client-connections"),
		Limits: ratelimit.Limits{
			FailuresPerMinute:        c.Int("auth-failures-per-minute"),
			RequestsPerSecond:        c.Int("requests-per-second"),
			SessionRequestsPerSecond: c.Int("session-requests-per-second"),
			PagesPerSecond:           c.Int("connect-pages-per-second"),
			WorkspacesPerMinute:      c.Int("workspaces-per-minute"),
		},
		MetricsListen:    c.String("metrics-listen"),
		MetricsPerDevice: c.Bool("metrics-per-device"),
		Version:          version,
		Traces:           spans,
		ShutdownDelay:    c.Duration("shutdown-delay"),
		Log:              logger(c),
	}, nil
}

func serve(ctx context.Context, c *cli.Command) error {
	config, err := serverConfig(c)
	if err != nil {
		return err
	}
	if c.Bool("check-config") {
		return checkConfig(ctx, c, config)
	}
	log, begin := config.Log, time.Now()
	a, err := app.Start(ctx, config)
	if err != nil {
		return err
	}
	if config.Traces.Endpoint != "" {
		log.Info("sending traces to a collector")
	}
	if a.MetricsURL != "" {
		log.Info("serving metrics", "url", a.MetricsURL)
	}
	log.Info("ready", "url", a.URL, "duration", time.Since(begin).Round(time.Millisecond))
	if !config.Sandbox {
		if err := logFirstSteps(ctx, c, a.Access.Accounts, log); err != nil {
			log.Warn("cannot say what to do next", "error", err)
		}
	}
	if !config.Console.Disabled {
		if err := logFirstOperator(ctx, a, config); err != nil {
			log.Warn("cannot make the link for the first operator", "error", err)
		}
	}
	err = announce(ctx, a, c.String("ready-file"))
	notifying, stopNotifying := context.WithCancel(ctx)
	defer stopNotifying()
	var notifier sync.WaitGroup
	if err == nil {
		notifier.Go(func() { notifySystemd(notifying, a, log) })
		select {
		case <-ctx.Done():
			log.Info("stopping")
		case err = <-a.Failed():
			log.Error("stopping after a fatal error", "error", err)
		}
	}
	stopNotifying()
	notifier.Wait()
	notifyStopping(log)
	stopping, cancel := context.WithTimeout(
		context.WithoutCancel(ctx),
		c.Duration("shutdown-delay")+c.Duration("shutdown-timeout"),
	)
	defer cancel()
	err = errors.Join(err, a.Stop(stopping))
	log.Info("stopped")
	return err
}

// tracing reads the trace options from the environment. The flag replaces the general endpoint variable and takes
// precedence over the variable for traces. Errors name the source that was set.
func tracing(c *cli.Command) (traces.Options, error) {
	const endpoint, own, flag = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "traces-endpoint"
	by := flagSource(c, flag)
	o, err := traces.FromEnvironment(func(name string) string {
		switch {
		case name == endpoint:
			return c.String(flag)
		case name == own && c.String(flag) != "" && by == "--"+flag:
			return ""
		}
		return os.Getenv(name)
	})
	if e, ok := errors.AsType[*traces.EndpointError](err); ok && e.Variable == endpoint {
		e.Variable = by
	}
	o.Version = version
	return o, err
}

// networks returns an error unless each text is a list of networks that parsePrefixes can read.
func networks(texts []string) error {
	_, err := parsePrefixes(texts)
	return err
}

// prefixes returns the networks of a flag that networks has validated.
func prefixes(c *cli.Command, flag string) []netip.Prefix {
	out, _ := parsePrefixes(c.StringSlice(flag))
	return out
}

// parsePrefixes parses networks in CIDR notation and addresses, separated by commas or spaces.
func parsePrefixes(texts []string) (out []netip.Prefix, _ error) {
	for t := range strings.FieldsFuncSeq(strings.Join(texts, ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		p, err := netip.ParsePrefix(t)
		if address, invalid := netip.ParseAddr(t); invalid == nil && address.Zone() == "" {
			p, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not a network: write a network such as 10.0.0.0/8", t)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func withDatabaseConnections(d app.Database, n int) app.Database {
	d.MaxConns = int32(n)
	return d
}

// isTerminal reports whether people read a file while it is written.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// announce prints a new sandbox key on a terminal and writes the ready file, which tells programs how to reach the server.
func announce(ctx context.Context, a *app.App, file string) error {
	key := a.Sandbox.APIKey
	switch {
	case key == "":
	case isTerminal(os.Stdout):
		fmt.Printf("The sandbox workspace is %s. Its API key, shown only once:\n%s\n", a.Sandbox.WorkspaceID, key)
	case file == "": // the output may end up in a log
		fmt.Printf("The sandbox workspace is %[1]s. For an API key, run `deviceaccess-server keys create --workspace "+
			"%[1]s`, or start with --ready-file.\n", a.Sandbox.WorkspaceID)
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
	if err := writeFileAtomic(file, append(b, '\n')); err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	return nil
}

// writeFileAtomic atomically replaces a file that only its owner can read.
func writeFileAtomic(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".ready-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // keep the first error
	}
	return err
}
