package vendorhttp

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Option changes the client that New returns.
type Option func(*http.Transport)

// Pinned returns an option that trusts only certificates in PEM, and not those of public CAs. It is for a server in the
// operator's network at the URL base. Each certificate is that of a private CA, or the server's own. A server with
// exactly a pinned certificate needs neither a matching host name nor a time of validity, which the certificates of
// devices often lack. Pinned fails with an error for operators.
func Pinned(base, certificates string) (Option, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("a certificate needs a URL that starts with https://")
	}
	p := pins{host: u.Hostname(), pool: x509.NewCertPool()}
	if p.all, err = readCertificates(certificates); err != nil {
		return nil, err
	}
	for _, c := range p.all {
		p.pool.AddCert(c)
	}
	return func(t *http.Transport) {
		t.TLSClientConfig = &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: true, //nolint:gosec // verify replaces the verification by the host name
			VerifyConnection:   p.verify,
		}
	}, nil
}

func readCertificates(text string) (all []*x509.Certificate, err error) {
	rest := []byte(strings.TrimSpace(text))
	for len(rest) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return nil, errors.New("the file has a private key; enter the certificate only")
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil { // the error may quote the certificate
			return nil, errors.New("a certificate in the file cannot be read; export it again in PEM")
		}
		all, rest = append(all, one), []byte(strings.TrimSpace(string(rest)))
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("the file has no certificate in PEM; it must start with -----BEGIN CERTIFICATE-----")
	case len(rest) > 0:
		return nil, errors.New("the end of the file cannot be read; export the certificate again in PEM")
	}
	return all, nil
}

// pins are the certificates to trust.
type pins struct {
	host string
	all  []*x509.Certificate
	pool *x509.CertPool
}

// verify implements VerifyConnection of tls.Config. It fails before the client sends the request.
func (p pins) verify(s tls.ConnectionState) error {
	server := s.PeerCertificates[0] // servers always have one
	if slices.ContainsFunc(p.all, server.Equal) {
		return nil
	}
	options := x509.VerifyOptions{Roots: p.pool, Intermediates: x509.NewCertPool(), DNSName: p.host}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := server.Verify(options)
	if err == nil {
		return nil
	}
	if _, isName := errors.AsType[x509.HostnameError](err); isName {
		return adapter.Errorf(adapter.GatewayDown, "the server's certificate is not valid for %s; connect to a name "+
			"of the certificate, or pin the certificate itself instead of its CA", p.host)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return adapter.Errorf(
			adapter.GatewayDown, "the server's certificate has expired, or is not valid yet; renew it")
	}
	return adapter.Errorf(adapter.GatewayDown, "the server's certificate is not the pinned one, nor of the pinned CA; "+
		"if it was replaced by one with the SHA-256 fingerprint %X, pin that certificate", sha256.Sum256(server.Raw))
}
