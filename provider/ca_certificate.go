package provider

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// envCACertificate names a file, because a certificate has several lines.
const envCACertificate = "DEVICEACCESS_CA_CERTIFICATE"

// trustedRoots returns the certificate authorities of the system and those of ca_certificate, or of the file that the
// environment variable names. It returns nil if neither is set.
func (s settings) trustedRoots(diags *diag.Diagnostics) *x509.CertPool {
	const summary = "Invalid CA certificate"
	content := []byte(s.CACertificate.ValueString())
	if s.CACertificate.IsNull() {
		file := os.Getenv(envCACertificate)
		if file == "" {
			return nil
		}
		var err error
		if content, err = os.ReadFile(file); err != nil {
			diagnostics.ErrorAt(diags, path.Root("ca_certificate"), summary, fmt.Sprintf("The file of the environment "+
				"variable %s cannot be read: %v. Correct the path, or unset the variable.", envCACertificate, err))
			return nil
		}
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	err = addCertificates(roots, content)
	if err == nil {
		return roots
	}
	detail := "`ca_certificate` " + err.Error() + ". Set it to the certificate of the certificate authority in PEM " +
		"format, for example with `file(\"ca.pem\")`."
	if s.CACertificate.IsNull() {
		detail = "The file of the environment variable " + envCACertificate + " " + err.Error() + ". Name a file with " +
			"the certificate of the certificate authority in PEM format."
	}
	if errors.Is(err, errOtherPEM) { // without the attribute: Terraform would show the line, and a key in it
		diagnostics.Error(diags, summary, detail)
	} else {
		diagnostics.ErrorAt(diags, path.Root("ca_certificate"), summary, detail)
	}
	return nil
}

var errOtherPEM = errors.New("contains something other than certificates, such as a private key")

// addCertificates adds the certificates in PEM format. It rejects everything else, so that no certificate is silently
// left out. Its errors do not show the content, which may be a private key.
func addCertificates(roots *x509.CertPool, content []byte) error {
	for number := 1; len(bytes.TrimSpace(content)) > 0 || number == 1; number++ {
		block, rest := pem.Decode(content)
		switch {
		case block == nil && number == 1:
			return errors.New("contains no certificate in PEM format")
		case block == nil:
			return fmt.Errorf("contains text that is not in PEM format after certificate %d", number-1)
		case block.Type != "CERTIFICATE":
			return errOtherPEM
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("contains a damaged certificate, number %d", number)
		}
		roots.AddCert(certificate)
		content = rest
	}
	return nil
}
