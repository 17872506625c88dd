package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// CheckResult is the result of checking one part of a configuration.
type CheckResult struct {
	// Name is the checked part, such as "database".
	Name string
	// Detail describes a part that is valid.
	Detail string
	// Err says what is wrong and what to do.
	Err error
}

// configCheckTimeout limits the checks of the database.
const configCheckTimeout = 20 * time.Second

// Check checks a configuration. It starts, creates, and migrates nothing, also if the server runs already.
func Check(ctx context.Context, c Config) []CheckResult {
	ctx, cancel := context.WithTimeout(ctx, configCheckTimeout)
	defer cancel()
	dsn, running, leave := c.runningDatabase(ctx)
	defer leave()
	checks := []struct {
		name  string
		check func() (string, error)
	}{
		{"listen", func() (string, error) { return checkAddress(ctx, c.Listen, "--listen") }},
		{"metrics", func() (string, error) { return checkAddress(ctx, c.MetricsListen, "--metrics-listen") }},
		{"tls", func() (string, error) { return c.checkTLS(ctx) }},
		{"public url", c.checkPublicURL},
		{"data directory", c.checkDataDir},
		{"database", func() (string, error) {
			detail, err := c.checkDatabaseOf(ctx, dsn, running)
			return detail, c.explainUnusable(err)
		}},
		{"master key", func() (string, error) {
			detail, err := c.checkKeyOf(ctx, dsn)
			return detail, cmp.Or(c.explainUnusable(err), c.checkKeyReadable(ctx))
		}},
	}
	results := make([]CheckResult, len(checks))
	for i, one := range checks {
		detail, err := one.check()
		results[i] = CheckResult{one.name, detail, err}
	}
	return results
}

// runningDatabase returns the DSN of the database, unless it is private and no process runs it. The caller must call
// leave after its use.
func (c Database) runningDatabase(ctx context.Context) (dsn string, running bool, leave func()) {
	if c.DatabaseURL != "" {
		return c.DatabaseURL, true, func() {}
	}
	h, err := pglocal.Join(ctx, filepath.Join(c.DataDir, postgresName))
	if err != nil {
		return "", false, func() {}
	}
	return h.DSN("postgres"), true, func() { _ = h.Close(context.WithoutCancel(ctx)) }
}

// checkAddress checks an address to listen on. It does not listen, because the server may run.
func checkAddress(ctx context.Context, address, flag string) (string, error) {
	if address == "" {
		return "off", nil
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err == nil && host != "" {
		_, err = net.DefaultResolver.LookupHost(ctx, host)
	}
	if err != nil {
		return "", fmt.Errorf("%w; set %s to an address such as 127.0.0.1:8500", err, flag)
	}
	return address, nil
}

func (c Config) checkTLS(ctx context.Context) (string, error) {
	o := c.TLS
	cert, err := newCertificate(o, slog.New(slog.DiscardHandler))
	if err != nil || cert == nil {
		return "off", err
	}
	end := cert.expiry()
	if time.Now().After(end) {
		return "", fmt.Errorf("the certificate %s has expired at %s: renew it", o.CertFile, end.Format(time.RFC3339))
	}
	for _, file := range []string{o.CertFile, o.KeyFile} {
		if err := c.CheckReadable(ctx, file); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s, expires %s", o.CertFile, end.Format(time.RFC3339)), nil
}

func (c Config) checkPublicURL() (string, error) {
	switch {
	case c.PublicURL == "":
		return "not set: links have the host of the request", nil
	case strings.HasPrefix(c.PublicURL, "http://"):
		return c.PublicURL + " (passwords on connect pages are not encrypted on their way)", nil
	}
	return c.PublicURL, nil
}

func (c Config) checkDataDir() (string, error) {
	const readWriteSearch = 7
	st, err := os.Stat(c.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.DataDir + " does not exist: the first start creates it", nil
	case err != nil:
		return "", fmt.Errorf("%w; choose another directory with --data-dir", err)
	case !st.IsDir():
		return "", fmt.Errorf("%s is not a directory: choose another with --data-dir", c.DataDir)
	case syscall.Access(c.DataDir, readWriteSearch) != nil:
		return "", fmt.Errorf(
			"this user cannot write to %s: run the server as the owner of the directory, or change the "+
				"owner with chown",
			c.DataDir,
		)
	}
	owner, err := pglocal.OwnerOf(c.DataDir)
	if err == nil && owner.Name() != "" {
		return fmt.Sprintf("%s of user %s", c.DataDir, owner.Name()), nil
	}
	return c.DataDir, err
}

// checkDatabaseOf checks the database and its schema. Without running, it only looks for the files of the private one.
func (c Config) checkDatabaseOf(ctx context.Context, dsn string, running bool) (string, error) {
	if !running {
		exists, err := pglocal.HasData(filepath.Join(c.DataDir, postgresName))
		switch {
		case err != nil:
			return "", err
		case !exists:
			return "private, the first start creates it", nil
		}
		return "private, not running: the start checks its schema", c.checkNoRestore()
	}
	if err := store.CheckRequirements(ctx, dsn); err != nil {
		return "", err
	}
	limit, err := store.ReadConnLimit(ctx, dsn)
	if err != nil {
		return "", err
	}
	if limit.Connections < MinConns {
		return "", fmt.Errorf(
			"the database accepts %d connections, and a server needs at least %d: raise the limit of %s",
			limit.Connections,
			MinConns,
			limit.Of,
		)
	}
	place := "private, running"
	if c.DatabaseURL != "" {
		host, name, err := store.Location(dsn)
		if err != nil {
			return "", err
		}
		place = fmt.Sprintf("%s on %s", name, host)
	}
	version, err := store.SchemaVersion(ctx, dsn)
	switch newest := store.NewestSchema(); {
	case errors.Is(err, store.ErrNoSchema):
		return fmt.Sprintf("%s, empty: the first start creates schema %d", place, newest), nil
	case err != nil:
		return "", err
	case version < newest:
		return fmt.Sprintf("%s, schema %d: the start migrates it to %d", place, version, newest), nil
	default:
		return fmt.Sprintf("%s, schema %d", place, version), nil
	}
}

// checkKeyOf checks whether the master key opens the database. Without a dsn, it only reads the key.
func (c Config) checkKeyOf(ctx context.Context, dsn string) (string, error) {
	if dsn != "" {
		keys, err := c.keysOf(ctx, dsn)
		if err != nil {
			return "", err
		}
		if keys == nil {
			return "the first start creates it", nil
		}
		return "opens the database", nil
	}
	_, err := c.readKeys()
	if errors.Is(err, fs.ErrNotExist) {
		exists, missing := pglocal.HasData(filepath.Join(c.DataDir, postgresName))
		if missing != nil || !exists {
			return "the first start creates it", missing
		}
		return "", c.checkData()
	}
	return "can be read", err
}

// checkKeyReadable checks that the server can read the master key in the data directory. Other sources of the key may be
// files of root that systemd passes on.
func (c Config) checkKeyReadable(ctx context.Context) error {
	file := filepath.Join(c.DataDir, keyName)
	if _, err := os.Stat(file); c.MasterKey != "" || err != nil { // the check of the key reports a missing one
		return nil //nolint:nilerr // see above
	}
	return c.CheckReadable(ctx, file)
}
