package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/web"
)

// ConsoleOptions configures the console, the pages for operators. The zero value serves it on the address of the API.
type ConsoleOptions struct {
	// Disabled turns the console off.
	Disabled bool
	// Listen is the host:port of the console. If empty, the console is on the address of the API.
	Listen string
	// NoReveal hides PINs from everyone.
	NoReveal bool
	// NoLocalSignIn turns passwords and passkeys off.
	NoLocalSignIn bool
	// OIDC configures sign-in at an OpenID Connect provider.
	OIDC operator.OIDC
	// AdminEmail and AdminPassword create the first operator if there is none. Empty: a link creates it.
	AdminEmail, AdminPassword string
}

// operators returns the options of package operator.
func (o ConsoleOptions) operators() operator.Options {
	if o.OIDC.WithClient == nil {
		client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()} // ends with the context
		o.OIDC.WithClient = func(ctx context.Context) context.Context { return oidc.ClientContext(ctx, client) }
	}
	return operator.Options{OIDC: o.OIDC, NoLocalSignIn: o.NoLocalSignIn}
}

// createFirst creates the first operator if the options have one and there is none.
func (o ConsoleOptions) createFirst(ctx context.Context, s *operator.Service, log *slog.Logger) error {
	if o.Disabled || o.AdminEmail == "" {
		return nil
	}
	created, err := s.CreateFirst(ctx, o.AdminEmail, o.AdminPassword)
	if err != nil {
		return fmt.Errorf("create the operator of --admin-email: %w", err)
	}
	if created {
		log.Info("created the first operator of the console", "email", o.AdminEmail)
	}
	return nil
}

// newConsole returns the handler of the console. It is nil if the console is off.
func (a *App) newConsole(
	behindProxy bool,
	limiter *ratelimit.Limiter,
	observe func(string, int, time.Duration),
) http.Handler {
	c := a.config
	if c.Console.Disabled {
		return nil
	}
	address := func(r *http.Request) string { return ratelimit.AddressOf(r, behindProxy) }
	o := console.Options{
		Access:        a.Access,
		ACS:           a.ACS,
		Operators:     a.Access.Operators,
		Accounts:      a.AccountForms(),
		Tester:        a.WebhookTester(),
		Address:       web.Address{PublicURL: c.PublicURL, TrustForwarded: behindProxy},
		ClientAddress: address,
		Guess: func(r *http.Request) (time.Duration, func(bool)) {
			return limiter.Guess(address(r))
		},
		Version: c.Version,
		Health:  a.parts,
		Log:     c.Log,
		Observe: observe,
		Now:     c.Access.Now,

		LinkURL:      c.PublicURL,
		Settings:     c.settings(),
		OwnDatabase:  c.DatabaseURL == "",
		ResetSandbox: a.Sandbox.Reset,
		Reveal:       !c.Console.NoReveal,
	}
	if c.Console.Listen != "" {
		o.Address.PublicURL = "" // that is the URL of the API
		o.LinkURL = cmp.Or(c.PublicURL, a.URL)
	}
	return console.New(o)
}

// settings returns what flags set, for the console.
func (c Config) settings() []console.Setting {
	kept := func(d time.Duration) string {
		if d == 0 {
			return "forever"
		}
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
	return []console.Setting{
		{
			Group: "Retention",
			Name:  "Events and finished deliveries",
			Value: kept(c.Retention.Events),
			Flag:  "--delivery-retention",
		},
		{Group: "Retention", Name: "Audit log", Value: kept(c.Retention.Audit), Flag: "--audit-retention"},
		{
			Group: "Limits",
			Name:  "Client connections",
			Value: strconv.Itoa(cmp.Or(c.Connections, admission.DefaultConnections)),
			Flag:  "--client-connections",
		},
	}
}

// parts returns the parts of the server for the console.
func (a *App) parts(ctx context.Context) (parts []console.Part) {
	for _, s := range a.health.now(ctx).Parts {
		parts = append(parts, console.Part{
			Name:        s.Service,
			Description: s.Description,
			Degraded:    s.Status == api.Degraded,
			Down:        s.Status == api.Down,
		})
	}
	return parts
}

// consoleServer serves the console on its own address.
type consoleServer struct {
	http *http.Server
	l    net.Listener
}

// listenForConsole returns nil if the console has no address of its own.
func listenForConsole(ctx context.Context, o ConsoleOptions, log *slog.Logger) (*consoleServer, error) {
	if o.Disabled || o.Listen == "" {
		return nil, nil //nolint:nilnil // it is on the address of the API
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf(
			"listen on %s for the console: %w; choose another address with --console-listen", o.Listen, err)
	}
	return &consoleServer{http: newHTTP(log), l: l}, nil
}

// serve serves h until the server is closed. config can be nil.
func (s *consoleServer) serve(h http.Handler, limits admission.Limits, config *tls.Config) {
	s.http.TLSConfig = config
	go func() { _ = serveLimited(s.http, h, limits, s.l) }() // until close
}

// close waits for running requests until ctx is done.
func (s *consoleServer) close(ctx context.Context) error {
	s.l.Close() //nolint:errcheck // also if nothing was served
	return errors.Join(s.http.Shutdown(ctx), s.http.Close())
}

// leadBrowsers redirects browsers that open the server's start page to the console. Clients of the API get an error there.
func leadBrowsers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
			strings.Contains(r.Header.Get("Accept"), "text/html") {
			http.Redirect(w, r, console.Path, http.StatusFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}
