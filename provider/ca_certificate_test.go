package provider

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
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// overTLS serves the fake with a certificate of an authority of its own, and returns the address and the authority.
func (f *fake) overTLS(t *testing.T) (address, authority string) {
	t.Helper()
	ca := newCertificate(t, nil, x509.Certificate{
		Subject: pkix.Name{CommonName: "Our authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	leaf := newCertificate(t, ca, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	server := httptest.NewUnstartedServer(f)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate[0]}))
}

// newCertificate makes a certificate for an hour. Without an issuer, it signs itself.
func newCertificate(t *testing.T, issuer *tls.Certificate, template x509.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := &template, any(key)
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey
	}
	made, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(made)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key, Leaf: leaf}
}

func inFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestServerOfAnOwnAuthorityIsTrusted(t *testing.T) {
	f := startFake(t)
	address, authority := f.overTLS(t)
	_, another := f.overTLS(t)
	for name, c := range map[string]struct {
		block   types.String
		file    string
		trusted bool
	}{
		"neither":                       {types.StringNull(), "", false},
		"in the block":                  {types.StringValue(authority), "", true},
		"after others":                  {types.StringValue("\n" + another + "\n" + authority + "\n"), "", true},
		"another":                       {types.StringValue(another), "", false},
		"in the file":                   {types.StringNull(), authority, true},
		"the block overrides the file":  {types.StringValue(another), authority, false},
		"the file counts for no other":  {types.StringNull(), another, false},
		"with comments before the text": {types.StringValue("# Our authority\n" + authority), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.file != "" {
				t.Setenv(envCACertificate, inFile(t, c.file))
			}
			conn, diags := settings{
				APIKey:        types.StringValue(fakeKey),
				Endpoint:      types.StringValue(address),
				WorkspaceID:   types.StringValue(fakeWorkspace),
				CACertificate: c.block,
			}.connect(t.Context(), "test")
			if diags.HasError() == c.trusted || !conn.isConnected() {
				t.Fatalf("%v", diags)
			}
			if !c.trusted {
				expectSaid(t, "the error", diags.Errors()[0].Detail(), "is not trusted, so nothing was sent",
					"`ca_certificate`", envCACertificate)
			}
		})
	}
}

func TestInvalidCACertificateIsAnErrorAtTheAttribute(t *testing.T) {
	f := startFake(t)
	_, authority := f.overTLS(t)
	block := func(kind, content string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(content)}))
	}
	for name, c := range map[string]struct{ content, says string }{
		"empty":                {"", "contains no certificate in PEM format"},
		"a path":               {"/etc/ssl/ca.pem", "contains no certificate in PEM format"},
		"a key":                {block("PRIVATE KEY", "hush-hush"), "such as a private key"},
		"a key after it":       {authority + block("EC PRIVATE KEY", "hush-hush"), "such as a private key"},
		"damaged":              {block("CERTIFICATE", "hush-hush"), "contains a damaged certificate, number 1"},
		"the second damaged":   {authority + block("CERTIFICATE", "hush-hush"), "damaged certificate, number 2"},
		"cut off":              {authority + authority[:len(authority)/2], "not in PEM format after certificate 1"},
		"text behind the last": {authority + "hush-hush", "not in PEM format after certificate 1"},
	} {
		for from, file := range map[string]bool{"in the block": false, "in the file": true} {
			t.Run(name+", "+from, func(t *testing.T) {
				s := settings{APIKey: types.StringValue(fakeKey), Endpoint: types.StringValue(f.URL)}
				s.CACertificate = types.StringValue(c.content)
				origin := "`ca_certificate` "
				if file {
					t.Setenv(envCACertificate, inFile(t, c.content))
					s.CACertificate, origin = types.StringNull(), "The file of the environment variable "+envCACertificate
				}
				conn, diags := s.connect(t.Context(), "test")
				if conn.isConnected() || len(diags) != 1 {
					t.Fatalf("%v", diags)
				}
				expectSaid(
					t,
					"the error",
					diags[0].Summary()+diags[0].Detail(),
					"Invalid CA certificate",
					origin,
					c.says,
				)
				at, hasPath := diags[0].(interface{ Path() path.Path })
				if isKey := strings.Contains(c.content, "PRIVATE KEY"); isKey == hasPath ||
					hasPath && at.Path().String() != "ca_certificate" {
					t.Errorf("the error is at an attribute: %t", hasPath)
				}
				forbids(
					t,
					"the error",
					diags[0].Detail(),
					map[string]string{"the content": "hush", "encoded": "aHVzaC1odXNo"},
				)
			})
		}
	}
	t.Run("no file", func(t *testing.T) {
		t.Setenv(envCACertificate, filepath.Join(t.TempDir(), "none.pem"))
		_, diags := settings{APIKey: types.StringValue(fakeKey), Endpoint: types.StringValue(f.URL)}.connect(
			t.Context(), "test")
		expectSaid(t, "the error", diags[0].Detail(), "none.pem", "Correct the path, or unset the variable")
	})
}

func TestCACertificateWorksFromTheProviderBlock(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	address, authority := f.overTLS(t)
	startPlugin(t, map[string]string{
		"endpoint": address, "api_key": fakeKey, "workspace_id": fakeWorkspace, "ca_certificate": authority,
	})
	if got := f.count("/workspaces/get"); got != 1 {
		t.Errorf("%d requests", got)
	}
}
