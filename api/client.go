package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// Config says which server a client talks to, and as whom.
type Config struct {
	// Endpoint is the http or https address of the server. It may have a path and may end in a slash.
	Endpoint string

	// Credential is an API key, a personal access token (seam_at…) or a console session (a JSON Web Token).
	Credential string

	// CredentialFrom says where the credential comes from, to be told by the errors of requests.
	CredentialFrom string

	// WorkspaceID is the workspace to act in. Only tokens and sessions need it: a key is bound to one.
	WorkspaceID string

	// UserAgent names the program.
	UserAgent string

	// MaxConcurrentRequests is how many requests are under way at the same time; others wait for their turn. By
	// default DefaultMaxConcurrentRequests.
	MaxConcurrentRequests int

	// Log is told of every try of a request when it has ended. By default nobody is told.
	Log func(context.Context, Try)

	// Transport sends one try of a request; by default NewTransport.
	Transport http.RoundTripper
}

// DefaultMaxConcurrentRequests is as many as Terraform works on resources at once.
const DefaultMaxConcurrentRequests = 10

// New makes a client of the server at config.Endpoint, whose operations are carried out by Call.
//
// A request goes through one chain: it is repeated where that is harmless (see retrying), waits for its turn
// (limited), is logged (logged), says who asks (authorised), and its answer is read to the end (whole). Redirects
// are not followed, because they would carry PINs to an address nobody has named.
func New(config Config) (*Client, error) {
	if err := CheckEndpoint(config.Endpoint); err != nil {
		return nil, err
	}
	transport := config.Transport
	if transport == nil {
		transport = NewTransport()
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

// chain is what a request goes through, from the inside out, to an endpoint with this path.
func chain(transport http.RoundTripper, config Config, base string) http.RoundTripper {
	transport = whole{transport}
	transport = authorised{transport, config}
	transport = logged{transport, config.Credential, config.Log}
	transport = trusting{transport, base}
	transport = limited{transport, make(chan struct{}, cmp.Or(max(0, config.MaxConcurrentRequests), DefaultMaxConcurrentRequests))}
	return retrying{transport, base, new(atomic.Bool), new(outage)}
}

// CheckEndpoint says what keeps an address from being the address of a server.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("the endpoint is not a URL; write it like http://127.0.0.1:8500")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("the endpoint %q is not an http or https URL; write it like http://127.0.0.1:8500", u.Redacted())
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return errors.New("the endpoint must have no user name, query or fragment; the credential belongs into the API key")
	}
	return nil
}

// IsPublishable says whether a credential is one that everybody may know, for pages that make client sessions with it.
func IsPublishable(credential string) bool { return strings.HasPrefix(credential, "seam_pk") }

// NeedsWorkspace says whether a credential is bound to a person instead of a workspace, so that each request
// must name the workspace.
func NeedsWorkspace(credential string) bool {
	return strings.HasPrefix(credential, "seam_at") || strings.HasPrefix(credential, "ey")
}
