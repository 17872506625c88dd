package vendorhttp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// issuer issues certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a certificate by an issuer. It is self-signed if the issuer is nil.
func issue(t *testing.T, by *issuer, change func(*x509.Certificate)) *issuer {
	t.Helper()
	made := &issuer{key: newKey(t), certificate: &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "Acme"},
		NotBefore:             time.Now().Add(-48 * time.Hour),
		NotAfter:              time.Now().Add(48 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  by == nil,
		BasicConstraintsValid: true,
	}}
	if change != nil {
		change(made.certificate)
	}
	if by == nil {
		by = made
	}
	der, err := x509.CreateCertificate(rand.Reader, made.certificate, by.certificate, &made.key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	if made.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return made
}

func (i *issuer) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Raw}))
}

// A client trusts a server with a pinned certificate, or with one of a pinned CA. It sends nothing to another server, and
// says how its certificate differs.
func TestPinned(t *testing.T) {
	t.Parallel()
	ca := issue(t, nil, nil)
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-24 * time.Hour) }
	named := func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"hub.local"} }
	own := issue(t, nil, func(c *x509.Certificate) {
		expired(c)
		named(c)
	})
	for name, c := range map[string]struct {
		server *issuer
		pinned string
		says   string // empty: trusted
	}{
		"its own certificate":      {server: own, pinned: own.pem()},
		"one of several":           {server: own, pinned: ca.pem() + own.pem()},
		"one of the CA":            {server: issue(t, ca, nil), pinned: ca.pem()},
		"one of another CA":        {server: issue(t, ca, nil), pinned: own.pem(), says: "is not the pinned one"},
		"another one":              {server: issue(t, nil, nil), pinned: ca.pem(), says: "is not the pinned one"},
		"of the CA, expired":       {server: issue(t, ca, expired), pinned: ca.pem(), says: "expired"},
		"of the CA, another name":  {server: issue(t, ca, named), pinned: ca.pem(), says: "not valid for 127.0.0.1"},
		"nothing is pinned at all": {server: own, says: "its certificate is not trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var received atomic.Int32
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				received.Add(1)
				w.WriteHeader(http.StatusNoContent)
			}))
			s.TLS = &tls.Config{Certificates: []tls.Certificate{
				{Certificate: [][]byte{c.server.certificate.Raw}, PrivateKey: c.server.key},
			}}
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.EnableHTTP2 = true
			s.StartTLS()
			t.Cleanup(s.Close)
			var options []vendorhttp.Option
			if c.pinned != "" {
				pinned, err := vendorhttp.Pinned(s.URL, c.pinned)
				if err != nil {
					t.Fatal(err)
				}
				options = append(options, pinned)
			}
			client := clientOf(s.URL, nil)
			client.HTTP = vendorhttp.New(adapter.Env{}, options...)
			t.Cleanup(client.HTTP.CloseIdleConnections)
			call := vendorhttp.Call{Method: http.MethodPut, Path: "/locks", Write: true}
			err := client.DoJSON(t.Context(), call, nil, nil)
			switch {
			case c.says == "" && (err != nil || received.Load() != 1):
				t.Errorf("%v; %d requests", err, received.Load())
			case c.says == "":
			case adapter.ClassOf(err) != adapter.GatewayDown || !strings.Contains(err.Error(), c.says):
				t.Errorf("%v, want %q", err, c.says)
			case received.Load() != 0:
				t.Error("the server received the request")
			}
		})
	}
}

func TestPinned_RefusesOtherInput(t *testing.T) {
	t.Parallel()
	good := issue(t, nil, nil).pem()
	key := "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LWtleQ==\n-----END PRIVATE KEY-----\n"
	for name, c := range map[string]struct{ base, certificates, says string }{
		"nothing":          {"https://10.0.0.2", "", "no certificate in PEM"},
		"no PEM":           {"https://10.0.0.2", "MIIB", "no certificate in PEM"},
		"a private key":    {"https://10.0.0.2", good + key, "private key"},
		"a broken one":     {"https://10.0.0.2", strings.ReplaceAll(good, "MII", "AAA"), "cannot be read"},
		"text at the end":  {"https://10.0.0.2", good + "-----BEGIN", "cannot be read"},
		"a URL in clear":   {"http://10.0.0.2", good, "https"},
		"a URL of no host": {"https://", good, "https"},
	} {
		_, err := vendorhttp.Pinned(c.base, c.certificates)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
