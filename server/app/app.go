// Package app assembles the server. It creates the other packages' services from a Config, starts them in order, and
// stops them in reverse order. It also has what the administrative commands need: opening the database, backup, and
// restore. It must not know business rules; those are in the domain packages.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	acsreconcile "github.com/deviceaccess/terraform-provider-deviceaccess/server/acs/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/connectpage"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/retention"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// Config configures the server.
type Config struct {
	// Database says where the data is.
	Database
	// Listen is the host:port of the API. Port 0 selects a free port.
	Listen string
	// PublicURL is the URL in links to the server. If empty, links use the URL of the request.
	PublicURL string
	// TrustProxy are the proxies whose X-Forwarded-Proto, X-Forwarded-Host, and X-Forwarded-For the server trusts.
	TrustProxy ratelimit.Proxies
	// TLS makes the server use HTTPS.
	TLS TLSOptions
	// Limits are the rate limits of the API.
	Limits ratelimit.Limits

	// Connections is the maximum number of client connections. The default is admission.Connections.
	Connections int

	// Sandbox creates a sandbox workspace with simulated devices if there is none.
	Sandbox bool
	// Sandboxing configures the simulated devices.
	Sandboxing Sandboxing
	// Connecting says what people can connect on connect pages.
	Connecting Connecting
	// Console configures the pages for operators.
	Console ConsoleOptions
	// Access configures the domain.
	Access access.Options
	// Reconcile configures the reconciliation of devices.
	Reconcile reconcile.Options
	// Drive configures the reconciliation of access systems.
	Drive acsreconcile.Options
	// Webhooks configures the delivery of events.
	Webhooks webhook.Options
	// Retention says how long events and audit entries are kept.
	Retention retention.Options
	// Work configures the job engines.
	Work worker.Options
	// Wrap, if not nil, wraps the handler of all requests.
	Wrap func(http.Handler) http.Handler
	// Log receives log messages. If nil, they are discarded.
	Log *slog.Logger

	// Health configures /health.
	Health HealthOptions
	// ShutdownDelay is how long the server still accepts requests on shutdown while /health reports that it stops.
	ShutdownDelay time.Duration

	// MetricsListen is the host:port of the metrics. If empty, the server has no metrics.
	MetricsListen string
	// MetricsPerDevice adds metrics of each device, with its identifier and name as labels.
	MetricsPerDevice bool
	// Version is the version of the program, which the metrics show.
	Version string

	// Traces configures tracing. The zero value turns it off.
	Traces traces.Options
}

// App is a running server.
type App struct {
	// URL is where the server listens, reachable from this machine.
	URL string
	// ConsoleURL is where the console is, reachable from this machine.
	ConsoleURL string
	// Access is the domain of devices, codes, and webhooks.
	Access *access.Services
	// ACS is the domain of access systems.
	ACS *acs.Service
	// Sandbox is the simulated cloud.
	Sandbox *Sandbox

	// MetricsURL is where the metrics are; empty if the server has none.
	MetricsURL string

	db       *openDatabase
	engine   *worker.Engine
	delivery *delivery
	metrics  *metricsServer
	vendors  *vendors
	adapters *reconcile.Adapters
	driver   *acsreconcile.Reconciler
	http     *http.Server
	console  *consoleServer // nil: on the address of the API, or off
	local    *localServer   // serves the simulated cloud of a server with TLS
	follow   func()         // ends following the files of the certificate
	served   chan error
	health   *monitor
	traces   *traces.Traces
	config   Config
	log      *slog.Logger
}

// Start starts the server, which runs until Stop. Once Start returns, the server answers requests.
func Start(ctx context.Context, c Config) (_ *App, err error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	spans, err := traces.New(context.WithoutCancel(ctx), c.Traces, c.Log)
	if err != nil {
		return nil, err
	}
	c.Log, c.Work.Traces, c.traced = spans.Logger(c.Log), spans, spans != nil
	c.Access.Log, c.Reconcile.Log, c.Webhooks.Log, c.Retention.Log, c.Work.Log = c.Log, c.Log, c.Log, c.Log, c.Log
	c.Access.RefusedAddress = c.Webhooks.Refuses
	c.Access.Operators = c.Console.operators()
	c.Access.Providers, c.Access.Unverified = c.Connecting.providers, c.Connecting.unverified()
	a := &App{
		log:    c.Log,
		config: c,
		traces: spans,
		served: make(chan error, 1),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeWithin(ctx, a.Stop))
		}
	}()
	asked := ctx // for the audit log: what the operator's command causes
	ctx = audit.Unasked(ctx)
	// Listen first: it is the most likely to fail, and vendors receive the address.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --listen", c.Listen, err)
	}
	a.http = newHTTP(c.Log)
	a.URL = "http://" + reachable(listener.Addr())
	local := a.URL
	unused := listener
	defer func() {
		if unused != nil {
			unused.Close() //nolint:errcheck // nothing was served
		}
	}()
	certificate, err := newCertificate(c.TLS, c.Log)
	if err != nil {
		return nil, err
	}
	if certificate != nil {
		a.http.TLSConfig = certificate.config()
		a.URL = "https://" + reachable(listener.Addr())
		a.follow = runInBackground(certificate.follow)
		if a.local, err = listenLocally(ctx, c.Log); err != nil {
			return nil, err
		}
		local = a.local.url
	}
	a.ConsoleURL = a.URL
	if a.console, err = listenForConsole(ctx, c.Console, c.Log); err != nil {
		return nil, err
	}
	if a.console != nil {
		scheme, _, _ := strings.Cut(a.URL, "://")
		a.ConsoleURL = scheme + "://" + reachable(a.console.l.Addr())
	}
	measured, err := listenForMetrics(ctx, c.MetricsListen)
	if err != nil {
		return nil, err
	}
	defer func() {
		if measured != nil && a.metrics == nil {
			measured.Close() //nolint:errcheck // nothing was served
		}
	}()
	if a.db, err = openDB(ctx, c.Database, true, openAndMigrate, c.Log); err != nil {
		return nil, err
	}
	a.Access, a.ACS = a.db.services(c.Access)
	if err := c.Console.createFirst(asked, a.Access.Operators, c.Log); err != nil {
		return nil, err
	}
	if a.Sandbox, err = newSandbox(
		ctx,
		a.Access,
		c.Sandboxing,
		filepath.Join(c.DataDir, sandboxName),
		c.Log,
	); err != nil {
		return nil, err
	}
	a.vendors = newVendors(ctx, a.Access, a.Sandbox, local, cmp.Or(c.PublicURL, a.URL), c.Connecting, c.Log)
	a.vendors.traces = spans
	a.health = newHealth(a.Access, c.Health, c.Log)
	a.metrics = a.newMetering(measured, certificate, c.Log)
	var observeRequest func(string, int, time.Duration)
	if a.metrics != nil {
		c.Webhooks.Observe, observeRequest = a.metrics.Attempt, a.metrics.Request
	}
	a.adapters = reconcile.NewAdapters(a.Access, a.vendors.openers(), c.Log)
	a.vendors.adapters = a.adapters
	c.Drive.Log = c.Log
	a.driver = acsreconcile.New(a.Access, a.ACS, a.vendors.accessOpeners(), c.Drive)
	c.Reconcile.AccessSystems = a.driver
	c.Reconcile.Paces, c.Reconcile.Unverified = c.Connecting.paces(), c.Connecting.unverified()
	r := reconcile.New(a.Access, a.adapters, c.Reconcile)
	if a.engine, err = worker.NewEngine(a.db.waker, c.Work, append(r.Lanes(), a.driver.Lane())...); err != nil {
		return nil, err
	}
	if a.delivery, err = newDelivery(a.db.waker, a.Access, c); err != nil {
		return nil, err
	}
	if _, err := a.Access.ServerKeys.ServerKeys(ctx, keyrotation.PageCursors); err != nil {
		return nil, err
	}
	limiter := ratelimit.New(c.Limits)
	behindProxy := len(c.TrustProxy) > 0
	clientAddress := func(r *http.Request) string { return ratelimit.AddressOf(r, behindProxy) }
	api, err := rest.NewHandler(rest.Options{
		Access:         a.Access,
		ACS:            a.ACS,
		Simulator:      simulator{r, a.Sandbox},
		Tester:         a.delivery.deliverer,
		Vendors:        c.Connecting.Registered(),
		Connectable:    c.Connecting.connectable(),
		CursorKeys:     func() [][]byte { return a.db.keys.ServerKeys(keyrotation.PageCursors) },
		PublicURL:      c.PublicURL,
		TrustForwarded: behindProxy,
		Limiter:        limiter,
		Health:         a.health.now,
		Logger:         c.Log,
		Observe:        observeRequest,
		Traces:         spans,
	})
	if err != nil {
		return nil, err
	}
	connections, files := admission.FitConnections(c.Connections)
	if files > 0 {
		c.Log.Warn(
			"limiting client connections below --client-connections because of the limit of open files; raise it with "+
				"LimitNOFILE= (systemd), --ulimit nofile= (containers), or ulimit -n",
			"limit", files, "connections", connections,
		)
	}
	limits := admission.Limits{
		Connections:   connections,
		IsProxy:       c.TrustProxy.Trusts,
		ClientAddress: clientAddress,
	}
	clients := admission.New(limits)
	mux := http.NewServeMux()
	mux.Handle(vendorsPath, admission.Middleware(a.vendors, http.HandlerFunc(tryLater)))
	mux.Handle(sandboxPath, http.StripPrefix(sandboxPath[:len(sandboxPath)-1], a.Sandbox.Handler()))
	mux.Handle(rest.ConnectPath, connectpage.New(connectpage.Options{
		Access:    a.Access,
		Vendors:   newLogins(a.Sandbox, local, c.Connecting, c.Log),
		PublicURL: c.PublicURL,
		Guess: func(r *http.Request) (time.Duration, func(bool)) {
			return limiter.Guess(clientAddress(r))
		},
		Page:           func(r *http.Request) time.Duration { return limiter.Page(clientAddress(r)) },
		TrustForwarded: behindProxy,
		Log:            c.Log,
		Observe:        observeRequest,
		Traces:         spans,
	}))
	root := api
	if pages := a.newConsole(behindProxy, limiter, observeRequest); a.console != nil {
		a.console.serve(c.TrustProxy.Middleware(pages), limits, a.http.TLSConfig)
	} else if pages != nil {
		mux.Handle(console.Path, pages)
		mux.Handle(console.Path+"/", pages)
		root = leadBrowsers(api)
	}
	mux.Handle("/", root)
	a.http.Handler = a.closeConnections(c.TrustProxy.Middleware(clients.Limit(mux)))
	if a.local != nil {
		cloud := http.NewServeMux()
		cloud.Handle(vendorsPath, a.vendors)
		cloud.Handle(sandboxPath, http.StripPrefix(sandboxPath[:len(sandboxPath)-1], a.Sandbox.Handler()))
		a.local.serve(cloud)
	}
	if c.Wrap != nil {
		a.http.Handler = c.Wrap(a.http.Handler)
	}
	unused = nil
	go func() { a.served <- clients.Serve(a.http, listener) }()
	if err := a.engine.Start(ctx); err != nil {
		a.engine = nil
		return nil, err
	}
	if err := a.delivery.start(ctx); err != nil {
		return nil, err
	}
	a.health.engines.Store(&[]*worker.Engine{a.engine, a.delivery.engine})
	if a.metrics != nil {
		a.metrics.start()
	}
	if c.Sandbox {
		if err := a.Sandbox.ensureWorkspace(asked); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Failed returns a channel that receives the error that prevents the server from continuing.
func (a *App) Failed() <-chan error { return a.db.failed(a.served) }

// Ready reports whether /health answers 200.
func (a *App) Ready(ctx context.Context) bool { return !a.health.now(ctx).Down() }

// Stuck returns an error if this process makes no progress and needs a restart. Unlike /health, it does not depend on the
// database and the devices, which a restart does not repair.
func (a *App) Stuck() error { return a.health.stuck() }

// closeConnections closes client connections after the response during shutdown, so that clients reconnect to other servers.
func (a *App) closeConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.health.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Stop stops the server. For ShutdownDelay, /health reports the shutdown while the server still accepts requests. Then Stop
// waits for running requests and running work, and closes the database last. When ctx is done, Stop aborts what is
// left.
func (a *App) Stop(ctx context.Context) error {
	var errs []error
	if a.health != nil {
		a.health.stopping.Store(true)
	}
	if a.health != nil && a.config.ShutdownDelay > 0 && len(a.served) == 0 {
		select {
		case <-time.After(a.config.ShutdownDelay):
		case <-ctx.Done():
		}
	}
	if a.http != nil && a.http.Handler != nil {
		if err := a.http.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("wait for running requests: %w", err), a.http.Close())
		}
	}
	if a.console != nil {
		errs = append(errs, a.console.close(ctx))
	}
	if a.metrics != nil {
		errs = append(errs, a.metrics.stop(ctx))
	}
	if a.engine != nil {
		errs = append(errs, a.engine.Stop(ctx))
	}
	if a.delivery != nil {
		errs = append(errs, a.delivery.stop(ctx))
	}
	if a.vendors != nil {
		a.vendors.cancel()
	}
	if a.adapters != nil {
		errs = append(errs, a.adapters.Close())
	}
	if a.driver != nil {
		a.driver.Close()
	}
	if a.Sandbox != nil {
		a.Sandbox.close()
	}
	if a.local != nil {
		a.local.close()
	}
	if a.follow != nil {
		a.follow()
	}
	errs = append(errs, a.traces.Stop(ctx))
	if a.db != nil {
		errs = append(errs, a.db.close(ctx))
	}
	return errors.Join(errs...)
}

// reachable returns the host:port at which a client on this machine reaches addr.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
	}
	return addr.String()
}
