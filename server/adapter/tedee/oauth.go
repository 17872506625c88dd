package tedee

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// refresher exchanges refresh tokens. An access token lives four hours, and a refresh token 14 days. Package oauth does
// not fit: its refresh sends no scope, which Azure AD B2C recommends.
type refresher struct {
	url    string
	client adapter.Client
	http   *http.Client
	log    *slog.Logger
}

// wireTokens is the response of the token endpoint. The sample has expires_in as a string.
type wireTokens struct {
	Access    string          `json:"access_token"`
	Refresh   string          `json:"refresh_token"`
	ExpiresIn json.RawMessage `json:"expires_in"`
}

// defaultTokenTime is the documented life of an access token.
const defaultTokenTime = 4 * time.Hour

func (w wireTokens) expiresIn() time.Duration {
	seconds, err := strconv.Atoi(strings.Trim(string(w.ExpiresIn), `"`))
	if err != nil || seconds <= 0 || seconds > int(defaultTokenTime/time.Second) {
		return defaultTokenTime
	}
	return time.Duration(seconds) * time.Second
}

// refresh implements TokenSource.Refresh.
func (r refresher) refresh(ctx context.Context, old adapter.Tokens) (adapter.Tokens, error) {
	switch {
	case old.Refresh == "":
		return adapter.Tokens{}, adapter.Errorf(adapter.AuthRevoked, "Tedee's login cannot be renewed; log in again")
	case r.client.ID == "":
		return adapter.Tokens{}, adapter.Errorf(adapter.Transient,
			"the server has no client id of Tedee; set it again, or connect the account with a personal access key")
	}
	c := vendorhttp.Client{Adapter: Name, Base: r.url, HTTP: r.http, Log: r.log, Secret: old.Refresh}
	form := url.Values{
		"grant_type":    {"refresh_token"},
		"client_id":     {r.client.ID},
		"scope":         {strings.Join(scopes, " ")},
		"refresh_token": {old.Refresh},
	}
	if r.client.Secret != "" {
		form.Set("client_secret", r.client.Secret)
	}
	call := vendorhttp.Call{Method: http.MethodPost, Form: form, Write: true}
	var got wireTokens
	err := c.DoJSON(ctx, call, &got, func(response vendorhttp.Response) error {
		var body struct {
			Error string `json:"error"`
		}
		known := json.Unmarshal(response.Data, &body) == nil
		if known && (body.Error == "invalid_grant" || body.Error == "interaction_required") {
			return adapter.Errorf(adapter.AuthRevoked, "Tedee's login has ended or was revoked; log in again")
		}
		e := c.Refusal(call, response, "")
		if e.Class == adapter.AuthRevoked { // the client's credentials are wrong, not the user's
			e.Class = adapter.Transient
		}
		return e
	})
	switch {
	case err != nil:
		return adapter.Tokens{}, err
	case got.Access == "":
		return adapter.Tokens{}, adapter.Errorf(adapter.Transient, "Tedee's response has no access token")
	}
	expires := time.Now().Add(got.expiresIn())
	return adapter.Tokens{Access: got.Access, Refresh: got.Refresh, ExpiresAt: expires}, nil
}

// loginSecrets holds the tokens of a login that is being checked.
type loginSecrets struct{ tokens *adapter.Tokens }

// Load implements adapter.Secrets.
func (s loginSecrets) Load(context.Context, string) ([]byte, error) { return json.Marshal(s.tokens) }

// Store implements adapter.Secrets.
func (s loginSecrets) Store(_ context.Context, _ string, value []byte) error {
	return json.Unmarshal(value, s.tokens)
}

// Rotate implements adapter.Secrets.
func (s loginSecrets) Rotate(ctx context.Context, name string, _ []byte, renew adapter.Renew) ([]byte, error) {
	old, err := s.Load(ctx, name)
	if err != nil {
		return nil, err
	}
	fresh, err := renew(ctx, old)
	if err != nil {
		return nil, err
	}
	return fresh, s.Store(ctx, name, fresh)
}
