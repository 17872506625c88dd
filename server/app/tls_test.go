package app_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// authority is a certificate authority that signs certificates for 127.0.0.1.
type authority struct {
	*testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	dir  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "tests"},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
	}
	var der []byte
	der, a.key = a.sign(a.cert)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) sign(c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, signer)
	if err != nil {
		a.Fatal(err)
	}
	return der, key
}

// issue writes a certificate with a serial number, which expires after life, and its key. It replaces the files.
func (a *authority) issue(serial int64, life time.Duration) {
	a.Helper()
	der, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotAfter:     time.Now().Add(life),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	a.replace("tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	a.replace("tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (a *authority) replace(name string, text []byte) {
	a.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		a.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		a.Fatal(err)
	}
}

func (a *authority) options() app.TLSOptions {
	return app.TLSOptions{
		CertFile:       filepath.Join(a.dir, "tls.crt"),
		KeyFile:        filepath.Join(a.dir, "tls.key"),
		ReloadInterval: 5 * time.Millisecond,
	}
}

// client returns a client that trusts the authority. Each request has a new connection.
func (a *authority) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		DisableKeepAlives: true,
	}}
}

// lines collects log messages.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(text string) bool { return l.count(text) > 0 }

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// A server with a certificate serves HTTP/2 over TLS, and follows its files. The simulated cloud works as without TLS.
func TestTLS_FollowsFiles(t *testing.T) {
	t.Parallel()
	a, log := newAuthority(t), &lines{}
	a.issue(2, 30*24*time.Hour)
	s, err := app.Start(t.Context(), app.Config{
		Database:   app.Database{DatabaseURL: storetest.New(t), DataDir: t.TempDir(), MaxConns: 10},
		Listen:     "127.0.0.1:0",
		TLS:        a.options(),
		Sandbox:    true,
		Sandboxing: app.Sandboxing{Speed: 50, Dir: "memory", Profiles: []string{"august"}},
		Log:        slog.New(slog.NewTextHandler(log, nil)),

		MetricsListen: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
	client := a.client()
	serial := func() int64 {
		t.Helper()
		res, raw := send(t, client, s.URL+"/health", "", "")
		if res.TLS == nil || res.ProtoMajor != 2 {
			t.Fatalf("%s over %s: %s", s.URL, res.Proto, raw)
		}
		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 2 {
		t.Errorf("serial number %d, want 2", got)
	}
	testenv.Until(t, "the simulated lock is found", func() bool {
		var out struct{ Devices []any }
		_, raw := send(t, client, s.URL+"/devices/list", s.Sandbox.APIKey, "{}")
		return json.Unmarshal(raw, &out) == nil && len(out.Devices) > 0
	})
	a.issue(3, 10*24*time.Hour)
	testenv.Until(t, "the new certificate is served", func() bool { return serial() == 3 })
	testenv.Until(t, "the expiry is logged", func() bool { return log.has("the TLS certificate expires soon") })
	a.replace("tls.crt", []byte("not a certificate"))
	testenv.Until(t, "the broken certificate is logged", func() bool { return log.has("keeping the old certificate") })
	if got := serial(); got != 3 {
		t.Errorf("serial number %d after a broken file, want 3", got)
	}
	a.issue(4, 30*24*time.Hour)
	testenv.Until(t, "the repaired certificate is served", func() bool { return serial() == 4 })
	old := a.client()
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS11 //nolint:forcetypeassert,gosec // must be refused
	old.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS10 //nolint:forcetypeassert,gosec // must be refused
	if res, err := old.Get(
		s.URL + "/health",
	); err == nil {
		res.Body.Close()
		t.Error("the server accepts TLS 1.1")
	}
	if _, raw := send(
		t,
		http.DefaultClient,
		s.MetricsURL,
		"",
		"",
	); !strings.Contains(
		string(raw),
		"certificate_expiry",
	) {
		t.Error("there is no metric of the expiry")
	}
}

// Without a usable certificate, the server does not start, and says why.
func TestTLS_BrokenFiles(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue(2, time.Hour)
	for name, c := range map[string]struct {
		files app.TLSOptions
		want  string
	}{
		"no certificate": {app.TLSOptions{CertFile: "none", KeyFile: a.dir + "/tls.key"}, "set --tls-cert to a PEM file"},
		"no key":         {app.TLSOptions{CertFile: a.dir + "/tls.crt", KeyFile: "none"}, "set --tls-key to a PEM file"},
		"swapped": {
			app.TLSOptions{CertFile: a.dir + "/tls.key", KeyFile: a.dir + "/tls.crt"},
			"both must be PEM files of one pair",
		},
	} {
		_, err := app.Start(t.Context(), app.Config{Listen: "127.0.0.1:0", TLS: c.files})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// send sends a request: a POST if there is a body, else a GET.
func send(t *testing.T, c *http.Client, url, key, body string) (*http.Response, []byte) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return do(t, c, req)
}

// do sends a request and reads the response.
func do(t *testing.T, c *http.Client, req *http.Request) (*http.Response, []byte) {
	t.Helper()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, raw
}
