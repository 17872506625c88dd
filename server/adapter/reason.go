package adapter

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
)

// Reason is why a connection was not made or ended, for people. It never holds the URL that was called, as
// that may hold a password.
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
