package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// TLSOptions configures HTTPS. The zero value is plain HTTP.
type TLSOptions struct {
	// CertFile is the PEM file of the certificate, followed by those of intermediate authorities.
	CertFile string
	// KeyFile is the PEM file of its private key.
	KeyFile string
	// ReloadInterval is how often the server looks for changes of the files. The default is 5 seconds.
	ReloadInterval time.Duration
}

const (
	tlsReloadInterval = 5 * time.Second
	// expiryWarning is how long before its expiry the server warns about a certificate, once a day.
	expiryWarning = 14 * 24 * time.Hour
	// http2Streams is the maximum number of concurrent requests of one HTTP/2 connection.
	http2Streams = 100
)

// Enabled reports whether the server uses TLS.
func (o TLSOptions) Enabled() bool { return o.CertFile != "" || o.KeyFile != "" }

// certificate is the certificate of the server, which follows its files.
type certificate struct {
	options TLSOptions
	log     *slog.Logger
	current atomic.Pointer[tls.Certificate]
	read    []byte    // last content of the files, valid or not
	warned  time.Time // of the expiry
}

// newCertificate reads the certificate. It returns nil without TLS.
func newCertificate(o TLSOptions, log *slog.Logger) (*certificate, error) {
	if !o.Enabled() {
		return nil, nil //nolint:nilnil // plain HTTP
	}
	if o.ReloadInterval == 0 {
		o.ReloadInterval = tlsReloadInterval
	}
	c := &certificate{options: o, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	c.warnExpiry(time.Now())
	return c, nil
}

// load replaces the certificate if the files have changed. On error, the certificate stays.
func (c *certificate) load() error {
	cert, err := os.ReadFile(c.options.CertFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w; set --tls-cert to a PEM file", ExplainPermission(err))
	}
	key, err := os.ReadFile(c.options.KeyFile)
	if err != nil {
		return fmt.Errorf("read the key of the certificate: %w; set --tls-key to a PEM file", ExplainPermission(err))
	}
	content := slices.Concat(cert, key)
	if bytes.Equal(content, c.read) {
		return nil
	}
	c.read = content
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("use the certificate %s with the key %s: %w; both must be PEM files of one pair",
			c.options.CertFile, c.options.KeyFile, err)
	}
	c.current.Store(&pair)
	return nil
}

// follow reloads the certificate until ctx is done. It logs each broken version of the files once.
func (c *certificate) follow(ctx context.Context) {
	tick := time.NewTicker(c.options.ReloadInterval)
	defer tick.Stop()
	for missing := false; ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			old := c.current.Load()
			err := c.load()
			unread := errors.As(err, new(*os.PathError))
			if err != nil && (!unread || !missing) {
				c.log.Warn("keeping the old certificate because the new one cannot be used", "error", err)
			}
			missing = unread
			if pair := c.current.Load(); pair != old {
				c.log.Info("using a new certificate", "expires", pair.Leaf.NotAfter)
				c.warned = time.Time{}
			}
			c.warnExpiry(now)
		}
	}
}

// expiry returns when the certificate expires.
func (c *certificate) expiry() time.Time { return c.current.Load().Leaf.NotAfter }

func (c *certificate) warnExpiry(now time.Time) {
	if left := c.expiry().Sub(now); left < expiryWarning && now.Sub(c.warned) >= 24*time.Hour {
		c.warned = now
		c.log.Warn("the TLS certificate expires soon: renew it; the server reloads its files",
			"expires", c.expiry(), "file", c.options.CertFile)
	}
}

// config returns the TLS configuration of a server with the certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}

// localServer serves the simulated cloud of this process on plain HTTP, because the server's own certificate does not
// name the loopback address.
type localServer struct {
	url  string
	http *http.Server
	l    net.Listener
}

func listenLocally(ctx context.Context, log *slog.Logger) (*localServer, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the simulated cloud: %w", err)
	}
	return &localServer{url: "http://" + l.Addr().String(), http: newHTTP(log), l: l}, nil
}

func (s *localServer) serve(h http.Handler) {
	s.http.Handler = h
	go func() { _ = s.http.Serve(s.l) }() // until close
}

func (s *localServer) close() {
	s.l.Close()    //nolint:errcheck // may already be closed
	s.http.Close() //nolint:errcheck // the main server has waited for its requests
}
