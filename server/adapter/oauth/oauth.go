// Package oauth obtains and refreshes the tokens of vendors whose login is by OAuth 2.0 (RFC 6749) with PKCE (RFC 7636).
package oauth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// Timeout bounds one request to a vendor's token endpoint.
const Timeout = 20 * time.Second

// Request is a login on the vendor's pages.
type Request struct {
	// RedirectURI is where the vendor's pages lead back to. The operator registers it at the vendor.
	RedirectURI string
	// State comes back unchanged.
	State string
	// Verifier is the code verifier of PKCE. The vendor's pages receive its SHA-256 only.
	Verifier string
}

// AuthorizeURL returns the URL of the vendor's page on which a person allows the access.
func AuthorizeURL(o *adapter.OAuth, client adapter.Client, r Request) string {
	return config(o, client, r.RedirectURI).AuthCodeURL(r.State, oauth2.S256ChallengeOption(r.Verifier))
}

// Exchange returns the tokens for a code from the vendor's page. It fails with AuthRevoked when the vendor refuses the
// code, and with GatewayDown when the vendor does not answer, or rejects the operator's client.
func Exchange(ctx context.Context, o *adapter.OAuth, env adapter.Env, code string, r Request) (adapter.Tokens, error) {
	ctx, done := withClient(ctx, env)
	defer done()
	t, err := config(o, env.Client, r.RedirectURI).Exchange(ctx, code, oauth2.VerifierOption(r.Verifier))
	return toTokens(t), classify(err)
}

// Refresh returns the function TokenSource.Refresh of an account. It fails with AuthRevoked when the vendor refuses the
// refresh token, and with GatewayDown when the vendor does not answer, or rejects the operator's client.
func Refresh(o *adapter.OAuth, env adapter.Env) func(context.Context, adapter.Tokens) (adapter.Tokens, error) {
	return func(ctx context.Context, old adapter.Tokens) (adapter.Tokens, error) {
		switch {
		case old.Refresh == "":
			return adapter.Tokens{}, adapter.Errorf(adapter.AuthRevoked, "the login has ended; log in again")
		case env.Client.ID == "":
			return adapter.Tokens{}, adapter.Errorf(adapter.GatewayDown,
				"this server has no registration at the vendor: set --vendor-client and --vendor-client-secret-file")
		}
		if err := adapter.MaySend(ctx); err != nil {
			return adapter.Tokens{}, err
		}
		ctx, done := withClient(ctx, env)
		defer done()
		about := append(traces.ServerAddress(o.TokenURL), traces.Method(http.MethodPost))
		ctx, span := traces.Start(ctx, "refresh tokens", about...)
		t, err := config(o, env.Client, "").TokenSource(ctx, &oauth2.Token{RefreshToken: old.Refresh}).Token()
		err = classify(err)
		adapter.EndSpan(span, err)
		return toTokens(t), err
	}
}

func config(o *adapter.OAuth, client adapter.Client, redirectURI string) *oauth2.Config {
	style := oauth2.AuthStyleInParams // never by trial, because the code works once
	if o.BasicAuth {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID:     client.ID,
		ClientSecret: client.Secret,
		Endpoint:     oauth2.Endpoint{AuthURL: o.AuthorizeURL, TokenURL: o.TokenURL, AuthStyle: style},
		RedirectURL:  redirectURI,
		Scopes:       o.Scopes,
	}
}

// withClient sets the HTTP client of golang.org/x/oauth2, which reads at most 1 MiB of a response. It follows no
// redirects, because the request has secrets, which belong to the token endpoint only.
func withClient(ctx context.Context, env adapter.Env) (limited context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	client := vendorhttp.New(env)
	return context.WithValue(ctx, oauth2.HTTPClient, client), func() {
		cancel()
		client.CloseIdleConnections()
	}
}

func toTokens(t *oauth2.Token) adapter.Tokens {
	if t == nil {
		return adapter.Tokens{}
	}
	return adapter.Tokens{Access: t.AccessToken, Refresh: t.RefreshToken, ExpiresAt: t.Expiry}
}

// classify returns the *adapter.Error of a failed request. It quotes nothing that the vendor sent, which may contain
// secrets.
func classify(err error) error {
	if err == nil {
		return nil
	}
	refused, answered := errors.AsType[*oauth2.RetrieveError](err)
	if !answered {
		_, isNetwork := errors.AsType[net.Error](err)
		if isNetwork || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return adapter.Errorf(adapter.GatewayDown, "the vendor's login server does not answer")
		}
		return adapter.Errorf(adapter.GatewayDown, "the answer of the vendor's login server cannot be read")
	}
	status := refused.Response.StatusCode
	switch refused.ErrorCode { // RFC 6749, section 5.2
	case "invalid_grant":
		return adapter.Errorf(adapter.AuthRevoked, "the vendor refuses the login; log in again")
	case "invalid_client", "unauthorized_client":
		return errClient
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return errClient
	}
	e := adapter.Errorf(adapter.GatewayDown, "the vendor's login server answers with status %d", status)
	e.RetryAfter = vendorhttp.RetryAfter(refused.Response.Header)
	return e
}

var errClient = adapter.Errorf(
	adapter.GatewayDown,
	"the vendor rejects the registration of this server: check --vendor-client and --vendor-client-secret-file",
)
