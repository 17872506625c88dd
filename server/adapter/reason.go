package adapter

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
)

// Reason returns for people why a connection failed or ended. It omits the URL, which may contain a password.
func Reason(err error) string {
	var (
		wrapped *url.Error
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		timeout net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.As(err, &dns):
		return "its name cannot be resolved"
	case errors.As(err, &cert):
		return "its certificate is not trusted"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &wrapped):
		return wrapped.Err.Error()
	default:
		return err.Error()
	}
}
