package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
)

// CloudConfig configures a simulated cloud in its own process, for several servers on one database.
type CloudConfig struct {
	// Database says where the data is. It has the accounts of the cloud.
	Database
	// Listen is the host:port of the cloud. Port 0 selects a free port.
	Listen string
	// Sandboxing configures the simulated devices.
	Sandboxing Sandboxing
	// Connections is the maximum number of connections. The default is admission.Connections.
	Connections int
	// Wrap, if not nil, wraps the handler of all requests.
	Wrap func(http.Handler) http.Handler
	// Log receives log messages. If nil, they are discarded.
	Log *slog.Logger
}

// Cloud is a running simulated cloud. It keeps the state of its locks; the database has its accounts.
type Cloud struct {
	// URL is where the cloud listens: the sandbox URL of the servers.
	URL string

	sandbox *Sandbox
	http    *http.Server
	served  chan error
}

// StartCloud starts a simulated cloud, which runs until Stop. Once it returns, the cloud answers requests.
func StartCloud(ctx context.Context, c CloudConfig) (_ *Cloud, err error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --listen", c.Listen, err)
	}
	cloud := &Cloud{URL: "http://" + reachable(listener.Addr()), served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, listener.Close(), cloud.Stop(ctx))
		}
	}()
	db, err := openDB(ctx, c.Database, false, openAndMigrate, c.Log)
	if err != nil {
		return nil, err
	}
	a, _ := db.services(access.Options{Log: c.Log})
	cloud.sandbox, err = newSandbox(ctx, a, c.Sandboxing, filepath.Join(c.DataDir, "sandbox"), c.Log)
	if err = errors.Join(err, db.close(ctx)); err != nil { // servers announce later accounts to the cloud
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(sandboxPath, http.StripPrefix(sandboxPath[:len(sandboxPath)-1], cloud.sandbox.Handler()))
	var handler http.Handler = mux
	if c.Wrap != nil {
		handler = c.Wrap(handler)
	}
	cloud.http = newHTTP(c.Log)
	go func() {
		cloud.served <- serveLimited(cloud.http, handler, admission.Limits{Connections: c.Connections}, listener)
	}()
	return cloud, nil
}

// Failed returns a channel that receives the error that prevents the cloud from continuing.
func (c *Cloud) Failed() <-chan error { return c.served }

// Stop stops the cloud. Pending writes to its locks are lost.
func (c *Cloud) Stop(ctx context.Context) (err error) {
	if c.http != nil {
		err = c.http.Shutdown(ctx)
	}
	if c.sandbox != nil {
		c.sandbox.close()
	}
	return err
}
