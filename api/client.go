package api

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// Config configures a client: the server, the credential, and limits.
type Config struct {
	// Endpoint is the http or https address of the server. It may have a path and may end in a slash.
	Endpoint string

	// Credential is an API key, a personal access token (seam_at…) or a console session (a JSON Web Token).
	Credential string

	// CredentialFrom says where the credential comes from. Errors of requests quote it.
	CredentialFrom string

	// WorkspaceID is the workspace to act in. Only tokens and sessions need it, because a key is bound to one
	// workspace.
	WorkspaceID string

	// UserAgent is the User-Agent header.
	UserAgent string

	// MaxConcurrentRequests bounds the concurrent requests; others wait. The default is DefaultMaxConcurrentRequests.
	MaxConcurrentRequests int

	// Log receives every try of a request when it ends. By default, tries are not logged.
	Log func(context.Context, Try)

	// RootCAs are the trusted certificate authorities. The default is those of the system.
	RootCAs *x509.CertPool

	// Transport sends one try of a request. The default is NewTransport.
	Transport http.RoundTripper
}

// DefaultMaxConcurrentRequests equals the number of resources on which Terraform works concurrently.
const DefaultMaxConcurrentRequests = 10

// New returns a client of the server at config.Endpoint. Call runs its operations.
//
// A request passes through a chain of transports: it is retried if that is safe (retrying), waits for a slot
// (limited), is logged (logged) and authorized (authorised), and its response is read completely (whole). The client
// does not follow redirects, because they would send PINs to an address that the user did not configure.
func New(config Config) (*Client, error) {
	if err := CheckEndpoint(config.Endpoint); err != nil {
		return nil, err
	}
	transport := config.Transport
	if transport == nil {
		transport = NewTransport(config.RootCAs)
	}
	endpoint, err := url.Parse(config.Endpoint)
	if err != nil {
		return nil, err
	}
	return NewClient(config.Endpoint, WithHTTPClient(&http.Client{
		Transport:     chain(transport, config, strings.TrimRight(endpoint.Path, "/")),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}))
}

// chain wraps the transport, from the inside out, for an endpoint with the path base.
func chain(transport http.RoundTripper, config Config, base string) http.RoundTripper {
	transport = bodyReading{transport}
	transport = authorizing{transport, config}
	transport = logged{transport, config.Credential, config.Log}
	transport = verifyingNotFound{transport, base}
	transport = limited{
		transport,
		make(chan struct{}, cmp.Or(max(0, config.MaxConcurrentRequests), DefaultMaxConcurrentRequests)),
	}
	return retrying{transport, base, new(atomic.Bool), new(outage)}
}

// CheckEndpoint returns an error if the endpoint is not a valid address of a server.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("the endpoint is not a URL; write it like http://127.0.0.1:8500")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf(
			"the endpoint %q is not an http or https URL; write it like http://127.0.0.1:8500",
			u.Redacted(),
		)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return errors.New(
			"the endpoint must have no user name, query or fragment; the credential belongs into the API key",
		)
	}
	return nil
}

// IsPublishable reports whether the credential is a publishable key, which web pages use to create client sessions.
func IsPublishable(credential string) bool { return strings.HasPrefix(credential, "seam_pk") }

// NeedsWorkspace reports whether the credential is bound to a person instead of a workspace, so that each request
// must name the workspace.
func NeedsWorkspace(credential string) bool {
	return strings.HasPrefix(credential, "seam_at") || strings.HasPrefix(credential, "ey")
}
