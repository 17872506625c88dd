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

// CloudConfig says how a simulated cloud runs by itself, for several servers on one database.
type CloudConfig struct {
	Database
	Listen     string // host:port; port 0 takes a free one
	Sandboxing Sandboxing
	// Connections is how many there may be at once; 0: crowd.Connections.
	Connections int
	Wrap        func(http.Handler) http.Handler // around everything; nil: nothing
	Log         *slog.Logger
}

// Cloud is a simulated cloud by itself. What is on its locks is its own; the database tells which accounts there are.
type Cloud struct {
	URL string // where it listens: what the servers are told

	sandbox *Sandbox
	http    *http.Server
	served  chan error
}

// StartCloud runs a simulated cloud until Stop. When it returns, requests are answered.
func StartCloud(ctx context.Context, c CloudConfig) (_ *Cloud, err error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; another address is chosen with --listen", c.Listen, err)
	}
	cloud := &Cloud{URL: "http://" + reachable(listener.Addr()), served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, listener.Close(), cloud.Stop(ctx))
		}
	}()
	db, err := openDB(ctx, c.Database, false, mayMigrate, c.Log)
	if err != nil {
		return nil, err
	}
	a, _ := db.services(access.Options{Log: c.Log})
	cloud.sandbox, err = newSandbox(ctx, a, c.Sandboxing, filepath.Join(c.DataDir, "sandbox"), c.Log)
	if err = errors.Join(err, db.close(ctx)); err != nil { // from here on it is told
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

// Failed carries why the cloud cannot go on.
func (c *Cloud) Failed() <-chan error { return c.served }

// Stop ends the cloud. What is on its way to locks never arrives.
func (c *Cloud) Stop(ctx context.Context) (err error) {
	if c.http != nil {
		err = c.http.Shutdown(ctx)
	}
	if c.sandbox != nil {
		c.sandbox.close()
	}
	return err
}
