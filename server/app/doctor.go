package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const (
	// maxBackupAge is how old the last backup may be, as in the alert DeviceAccessBackupTooOld.
	maxBackupAge = 36 * time.Hour
	// minDiskBytes and minDiskPercent are the least free space of the disk of the data directory.
	minDiskBytes   = 1 << 30
	minDiskPercent = 5
	// maxClockSkew is how far the clocks of the server and its database may differ.
	maxClockSkew = 5 * time.Second
	// doctorTimeout limits each request of the checks.
	doctorTimeout = 10 * time.Second
)

// Diagnose checks a configuration like Check, and what a running installation needs: a server that answers, also at its
// public URL, disk space, a recent backup, and a clock that agrees with that of the database. It changes nothing.
func Diagnose(ctx context.Context, c Config) []CheckResult {
	results := Check(ctx, c)
	dsn, _, leave := c.runningDatabase(ctx)
	defer leave()
	for _, one := range []struct {
		name  string
		check func() (string, error)
	}{
		{"schema", func() (string, error) { return diagnoseSchema(ctx, dsn) }},
		{"server", func() (string, error) { return c.diagnoseServer(ctx) }},
		{"public url answers", func() (string, error) { return c.diagnosePublicURL(ctx) }},
		{"disk space", c.diagnoseDisk},
		{"backup", func() (string, error) { return c.diagnoseBackup(ctx, dsn) }},
		{"clock", func() (string, error) { return diagnoseClock(ctx, dsn) }},
	} {
		detail, err := one.check()
		results = append(results, CheckResult{one.name, detail, err})
	}
	return results
}

const databaseNotRunning = "unknown, because the database does not run"

func diagnoseSchema(ctx context.Context, dsn string) (string, error) {
	if dsn == "" {
		return databaseNotRunning, nil
	}
	version, err := store.SchemaVersion(ctx, dsn)
	switch newest := store.NewestSchema(); {
	case errors.Is(err, store.ErrNoSchema):
		return "", errors.New(
			"the database is empty: start the server, or create the schema with `deviceaccess-server migrate`",
		)
	case err != nil:
		return "", err
	case version < newest:
		return "", fmt.Errorf(
			"the schema is %d, and this program needs %d: start the server, or run `deviceaccess-server "+
				"migrate`",
			version,
			newest,
		)
	case version > newest:
		return "", fmt.Errorf(
			"the schema is %d, which is newer than that of this program, %d: upgrade the program",
			version,
			newest,
		)
	default:
		return fmt.Sprintf("%d, as this program needs", version), nil
	}
}

// diagnoseServer checks that a server answers on this machine.
func (c Config) diagnoseServer(ctx context.Context) (string, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil:
		return "", err
	case port == "0":
		return "unknown, because --listen selects a free port", nil
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	address := net.JoinHostPort(host, port)
	advice := "start the server, or set --listen to its address"
	if c.TLS.CertFile != "" { // its certificate is for another name
		conn, err := (&net.Dialer{Timeout: doctorTimeout}).DialContext(ctx, "tcp", address)
		if err != nil {
			return "", fmt.Errorf("no server answers at %s: %w; %s", address, err, advice)
		}
		return "accepts connections at " + address, conn.Close()
	}
	return healthAt(ctx, "http://"+address, advice)
}

func (c Config) diagnosePublicURL(ctx context.Context) (string, error) {
	if c.PublicURL == "" {
		return "off: set --public-url if people open connect pages", nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(
		u.Hostname(),
	); u.Scheme != "https" && u.Hostname() != "localhost" &&
		(ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf(
			"%s is not https, so passwords and PINs are not encrypted: set --tls-cert and --tls-key, or put a "+
				"proxy with TLS in front",
			c.PublicURL,
		)
	}
	return healthAt(
		ctx,
		strings.TrimRight(c.PublicURL, "/"),
		"check the name in DNS, the proxy, the firewall, and the "+
			"certificate",
	)
}

// healthAt returns the health that a server reports at a URL.
func healthAt(ctx context.Context, at, advice string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/health", nil)
	if err != nil {
		return "", err
	}
	resp, err := api.NewTransport(nil).RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("no server answers at %s: %w; %s", at, err, advice)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	var health api.HealthResponse
	if err := json.Unmarshal(text, &health); err != nil || health.ServiceHealthStatuses == nil {
		return "", fmt.Errorf(
			"%s/health answers %s, and not with the health of this server: %s",
			at,
			resp.Status,
			advice,
		)
	}
	for _, part := range health.ServiceHealthStatuses {
		if part.Status != api.Healthy {
			return "", fmt.Errorf("%s of the server at %s is %s: %s", part.Service, at, part.Status, part.Description)
		}
	}
	return "healthy at " + at, nil
}

func (c Config) diagnoseDisk() (string, error) {
	dir := c.DataDir
	var st syscall.Statfs_t
	err := syscall.Statfs(dir, &st)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) { // the first start creates it
		dir = filepath.Dir(dir)
		err = syscall.Statfs(dir, &st)
	}
	if err != nil {
		return "", fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	block := uint64(st.Bsize) //nolint:gosec,nolintlint // never negative; its type differs by system
	free, total := st.Bavail*block, max(st.Blocks*block, 1)
	percent := free * 100 / total
	detail := fmt.Sprintf("%d MiB (%d %%) free on the disk of %s", free>>20, percent, dir)
	if free < minDiskBytes || percent < minDiskPercent {
		return "", fmt.Errorf(
			"%s: free at least 1 GiB and %d %%, or mount a larger disk there",
			detail,
			minDiskPercent,
		)
	}
	return detail, nil
}

// diagnoseBackup checks the age of the last backup of the private database. The server does not know the backups of an
// external one, because the command backup refuses it.
func (c Config) diagnoseBackup(ctx context.Context, dsn string) (string, error) {
	if c.DatabaseURL != "" {
		return "not known: back up your PostgreSQL with its own tools, such as pg_dump, and the master key separately", nil
	}
	var last time.Time
	detail, err := onDatabase(ctx, dsn, func(db *store.DB) (err error) {
		last, err = db.GetLastBackup(ctx)
		return err
	})
	if err != nil || detail != "" {
		return detail, err
	}
	ago := time.Since(last).Round(time.Minute)
	if ago > maxBackupAge {
		return "", fmt.Errorf(
			"the last backup, or else the installation, is %s old: run `deviceaccess-server backup` at least "+
				"daily",
			ago,
		)
	}
	return fmt.Sprintf("the last backup, or else the installation, is %s old", ago), nil
}

func diagnoseClock(ctx context.Context, dsn string) (string, error) {
	var off time.Duration
	detail, err := onDatabase(ctx, dsn, func(db *store.DB) error {
		before := time.Now()
		now, err := db.Now(ctx)
		after := time.Now()
		// The database read its clock between the two.
		off = cmp.Or(max(before.Sub(now), 0), max(now.Sub(after), 0))
		return err
	})
	if err != nil || detail != "" {
		return detail, err
	}
	if off > maxClockSkew {
		return "", fmt.Errorf(
			"the clocks of this machine and of the database differ by %s: synchronize both, for example "+
				"with chrony",
			off.Round(time.Second),
		)
	}
	return "agrees with that of the database", nil
}

// onDatabase runs f on the database. It returns a text instead if the database does not run or has no schema.
func onDatabase(ctx context.Context, dsn string, f func(*store.DB) error) (string, error) {
	if dsn == "" {
		return databaseNotRunning, nil
	}
	if _, err := store.SchemaVersion(ctx, dsn); errors.Is(err, store.ErrNoSchema) {
		return "unknown, because the database is empty", nil
	}
	db, err := store.Open(ctx, dsn, 1)
	if err != nil {
		return "", err
	}
	defer db.Close()
	return "", f(db)
}
