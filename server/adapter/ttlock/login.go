package ttlock

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// wireTokens is the response to a login or a refresh.
type wireTokens struct {
	Access    string `json:"access_token"`
	Refresh   string `json:"refresh_token"`
	ExpiresIn number `json:"expires_in"` // seconds
	UID       number `json:"uid"`
}

// maxTokenLife bounds the life of a token that TTLock reports.
const maxTokenLife = 366 * 24 * time.Hour

// requestTokens requests tokens with the operator's client.
func (a *Adapter) requestTokens(ctx context.Context, params url.Values) (got wireTokens, err error) {
	params.Set("clientId", a.client.ID)
	params.Set("clientSecret", a.client.Secret)
	c := vendorhttp.Call{Method: http.MethodPost, Path: "/oauth2/token", Form: params}
	if err := a.send(ctx, c, &got); err != nil {
		return got, err
	}
	if got.Access == "" {
		return got, adapter.Errorf(adapter.Transient, "TTLock's answer has no access token")
	}
	return got, nil
}

// tokens returns the tokens of a response, for the account.
func (w wireTokens) tokens(now time.Time) adapter.Tokens {
	t := adapter.Tokens{Access: w.Access, Refresh: w.Refresh}
	if w.ExpiresIn > 0 {
		t.ExpiresAt = now.Add(min(time.Duration(min(w.ExpiresIn, 1e9))*time.Second, maxTokenLife))
	}
	return t
}

// refresh is TokenSource.Refresh.
func (a *Adapter) refresh(ctx context.Context, old adapter.Tokens) (adapter.Tokens, error) {
	if old.Refresh == "" {
		return adapter.Tokens{}, adapter.Errorf(adapter.AuthRevoked, "the account's token has expired; log in again")
	}
	got, err := a.requestTokens(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}})
	if err != nil {
		return adapter.Tokens{}, err
	}
	return got.tokens(a.now()), nil
}

// logIn exchanges a user name and the MD5 of a password for tokens.
func (a *Adapter) logIn(ctx context.Context, username, passwordMD5 string) (wireTokens, error) {
	return a.requestTokens(ctx, url.Values{"username": {username}, "password": {passwordMD5}})
}
