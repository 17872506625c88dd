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
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "run the server until it is told to stop",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "listen", Sources: env("DEVICEACCESS_LISTEN"), Value: "127.0.0.1:8500", Category: "Server", Validator: notEmpty,
				Usage: "`HOST:PORT` to listen on; port 0 takes a free one"},
			&cli.StringFlag{Name: "public-url", Sources: env("DEVICEACCESS_PUBLIC_URL"), Category: "Server", Validator: webAddress,
				Usage: "`URL` by which clients reach the server, for the links it hands out; without it the one they have called"},
			&cli.BoolFlag{Name: "trust-proxy", Sources: env("DEVICEACCESS_TRUST_PROXY"), Category: "Server",
				Usage: "believe X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-For, which a proxy in front of the server has to set"},
			&cli.IntFlag{Name: "auth-failures-per-minute", Sources: env("DEVICEACCESS_AUTH_FAILURES_PER_MINUTE"), Value: 30, Category: "Server", Validator: notNegative[int],
				Usage: "`NUMBER` of requests with bad credentials, and of logins on connect pages that fail, from one address that are looked into, twice as many at once; 0: all"},
			&cli.IntFlag{Name: "requests-per-second", Sources: env("DEVICEACCESS_REQUESTS_PER_SECOND"), Category: "Server", Validator: notNegative[int],
				Usage: "`NUMBER` of requests of one credential that are answered, twice as many at once; 0: all"},
			&cli.IntFlag{Name: "connect-pages-per-second", Sources: env("DEVICEACCESS_CONNECT_PAGES_PER_SECOND"), Value: 5, Category: "Server", Validator: notNegative[int],
				Usage: "`NUMBER` of requests from one address for pages to log in on that are answered, ten times as many at once; 0: all"},
			&cli.IntFlag{Name: "workspaces-per-minute", Sources: env("DEVICEACCESS_WORKSPACES_PER_MINUTE"), Value: rest.WorkspacesPerMinute, Category: "Server", Validator: notNegative[int],
				Usage: "`NUMBER` of workspaces that one credential makes or resets in a minute, as many at once; 0: any"},
			&cli.IntFlag{Name: "client-connections", Sources: env("DEVICEACCESS_CLIENT_CONNECTIONS"), Value: admission.Connections, Category: "Server", Validator: atLeast(16),
				Usage: "`NUMBER` of connections that clients hold at once, half of the limit of open files at most; whoever has most gives way to others, those first that have been idle longest"},
			&cli.StringFlag{Name: "ready-file", Sources: env("DEVICEACCESS_READY_FILE"), Category: "Server", Validator: inADirectory,
				Usage: "once requests are answered, write {\"url\",\"api_key\",\"workspace_id\"} to `FILE`, readable by its owner only"},
			&spanFlag{Name: "attempt-timeout", Sources: env("DEVICEACCESS_ATTEMPT_TIMEOUT"), Value: 10 * time.Minute, Category: "Server", Validator: positive[time.Duration],
				Usage: "`TIME` after which an action attempt that its device has not confirmed ends in an error"},
			&spanFlag{Name: "offline-debounce", Sources: env("DEVICEACCESS_OFFLINE_DEBOUNCE"), Value: 30 * time.Second, Category: "Server", Validator: notNegative[time.Duration],
				Usage: "`TIME` that a device has to be offline until device.disconnected tells of it; one that comes back before was never gone"},
			&spanFlag{Name: "shutdown-timeout", Sources: env("DEVICEACCESS_SHUTDOWN_TIMEOUT"), Value: 20 * time.Second, Category: "Server", Validator: notNegative[time.Duration],
				Usage: "`TIME` that requests and work in hand have to end when the server stops"},
			&spanFlag{Name: "shutdown-delay", Sources: env("DEVICEACCESS_SHUTDOWN_DELAY"), Category: "Server", Validator: notNegative[time.Duration],
				Usage: "`TIME` for which a server that stops still takes requests, while /health says 503: what a balancer needs to notice"},
			allowFlag(),
			&cli.BoolFlag{Name: "connect-gateways", Sources: env("DEVICEACCESS_CONNECT_GATEWAYS"), Category: "Server",
				Usage: "let whoever is sent a connect webview of a workspace with real locks connect a gateway of theirs; without it only accounts connect does"},
			allowGatewayFlag(),
			&spanFlag{Name: "delivery-retention", Sources: env("DEVICEACCESS_DELIVERY_RETENTION"), Value: 30 * day, Category: "Server", Validator: notNegative[time.Duration],
				Usage: "`TIME` for which events are kept, and deliveries that ended or are held; what is still to be sent stays. 0 keeps all for ever"},
			&spanFlag{Name: "audit-retention", Sources: env("DEVICEACCESS_AUDIT_RETENTION"), Value: 400 * day, Category: "Server", Validator: notNegative[time.Duration],
				Usage: "`TIME` for which entries of the audit log are kept. 0 keeps all for ever"},
			&cli.StringFlag{Name: "metrics-listen", Sources: env("DEVICEACCESS_METRICS_LISTEN"), Category: "Server",
				Usage: "`HOST:PORT` to serve metrics for Prometheus on, at /metrics and for whoever can reach it; without it there are none"},
			&cli.StringFlag{Name: "traces-endpoint", Sources: env("OTEL_EXPORTER_OTLP_ENDPOINT"), Category: "Server",
				Usage: "`URL` such as http://collector:4318 to send traces to, as OTLP over HTTP; without it there are none. The other variables of OpenTelemetry are read, too: see the guide \"Traces\""},
			&cli.IntFlag{Name: "max-connections", Sources: env("DEVICEACCESS_MAX_CONNECTIONS"), Value: 16 + app.BesidePool, Category: "Data",
				Usage: "`NUMBER` of database connections this server uses at most", Validator: atLeast(4 + app.BesidePool)},
			&cli.BoolFlag{Name: "sandbox", Sources: env("DEVICEACCESS_SANDBOX"), Category: "Sandbox",
				Usage: "make a sandbox workspace with simulated locks of every profile, unless there is one, and print its API key once"},
			&cli.IntFlag{Name: "sandbox-locks", Sources: env("DEVICEACCESS_SANDBOX_LOCKS"), Value: 1, Category: "Sandbox",
				Usage: "`NUMBER` of locks of each profile in a new sandbox workspace", Validator: atLeast(1)},
			sandboxSpeedFlag(),
			&cli.StringFlag{Name: "sandbox-url", Sources: env("DEVICEACCESS_SANDBOX_URL"), Category: "Sandbox", Validator: webAddress,
				Usage: "`URL` of the simulated cloud that several servers on one database share, as sandbox serve runs it; without it the locks are simulated in this process"},
		}, databaseFlags()...),
		Action: serve,
	}
}

func allowGatewayFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-gateway-prefix", Sources: env("DEVICEACCESS_ALLOW_GATEWAY_PREFIX"), Category: "Server",
		Usage: "`NETWORK` such as 10.0.0.0/8 in which gateways may be that are connected on connect pages, besides public addresses; can be given several times"}
}

func sandboxSpeedFlag() cli.Flag {
	return &cli.FloatFlag{Name: "sandbox-speed", Sources: env("DEVICEACCESS_SANDBOX_SPEED"), Value: 1, Category: "Sandbox",
		Usage: "`FACTOR` by which simulated locks are quicker than they would be", Validator: finite}
}

func webAddress(text string) error {
	if u, err := url.Parse(text); text != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("%q is no URL that begins with http:// or https://", text)
	}
	return nil
}

// inADirectory refuses a file that cannot be made, as there is no directory for it.
func inADirectory(file string) error {
	dir := filepath.Dir(file)
	if st, err := os.Stat(dir); file != "" && (errors.Is(err, fs.ErrNotExist) || err == nil && !st.IsDir()) {
		return fmt.Errorf("there is no directory %s: make it first", dir)
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
	if n > 0 { // NaN is not
		return nil
	}
	return fmt.Errorf("%v is not more than 0", n)
}

func finite(f float64) error {
	if math.IsInf(f, 1) {
		return fmt.Errorf("%v is too much", f)
	}
	return positive(f)
}

func serve(ctx context.Context, c *cli.Command) error {
	log := logger(c)
	begin := time.Now()
	allow, err := prefixes("allow-webhook-prefix", c.StringSlice("allow-webhook-prefix"))
	if err != nil {
		return err
	}
	gateways, err := prefixes("allow-gateway-prefix", c.StringSlice("allow-gateway-prefix"))
	if err != nil {
		return err
	}
	spans, err := tracing(c)
	if err != nil {
		return err
	}
	a, err := app.Start(ctx, app.Config{
		Database: withConnections(database(c), c.Int("max-connections")), Listen: c.String("listen"), PublicURL: c.String("public-url"), TrustProxy: c.Bool("trust-proxy"),
		Sandbox: c.Bool("sandbox"), Sandboxing: app.Sandboxing{LocksPerProfile: c.Int("sandbox-locks"), Speed: c.Float("sandbox-speed"), URL: c.String("sandbox-url")},
		Access:      access.Options{AttemptPatience: c.Duration("attempt-timeout"), OfflineDebounce: max(c.Duration("offline-debounce"), 1)},
		Webhooks:    webhook.Options{AllowPrefixes: allow},
		Retention:   retention.Options{Events: c.Duration("delivery-retention"), Audit: c.Duration("audit-retention")},
		Connecting:  app.Connecting{Gateways: c.Bool("connect-gateways"), AllowPrefixes: gateways},
		Connections: c.Int("client-connections"),
		Limits: rest.Limits{FailuresPerMinute: c.Int("auth-failures-per-minute"), RequestsPerSecond: c.Int("requests-per-second"), PagesPerSecond: c.Int("connect-pages-per-second"),
			WorkspacesPerMinute: c.Int("workspaces-per-minute")},
		MetricsListen: c.String("metrics-listen"), Traces: spans, StopAfter: c.Duration("shutdown-delay"), Log: log,
	})
	if err != nil {
		return err
	}
	if spans.Endpoint != "" {
		log.Info("traces are sent to a collector")
	}
	if a.MetricsURL != "" {
		log.Info("metrics", "url", a.MetricsURL)
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
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Duration("shutdown-delay")+c.Duration("shutdown-timeout"))
	defer cancel()
	err = errors.Join(err, a.Stop(stopping))
	log.Info("stopped")
	return err
}

// tracing reads where traces go from the environment, in which the flag counts as its variable, and goes before the traces' own. What
// is wrong with it is told of the one that was given.
func tracing(c *cli.Command) (traces.Options, error) {
	const endpoint, own, flag = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "traces-endpoint"
	by := given(c, flag, endpoint)
	o, err := traces.FromEnvironment(func(name string) string {
		switch {
		case name == endpoint:
			return c.String(flag)
		case name == own && c.String(flag) != "" && by != endpoint:
			return ""
		}
		return os.Getenv(name)
	})
	if e, ok := errors.AsType[*traces.EndpointError](err); ok && e.Given == endpoint {
		e.Given = by
	}
	o.Version = version
	return o, err
}

// prefixes reads networks; the environment variable has several of them with commas or spaces between.
func prefixes(flag string, texts []string) (out []netip.Prefix, _ error) {
	for t := range strings.FieldsFuncSeq(strings.Join(texts, ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		p, err := netip.ParsePrefix(t)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w; a prefix is written like 10.0.0.0/8", flag, err)
		}
		out = append(out, p)
	}
	return out, nil
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
