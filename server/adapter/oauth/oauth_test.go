package oauth_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/oauth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/oauth/oauthtest"
)

var request = oauth.Request{
	RedirectURI: "https://locks.example.com/connect/back/acme",
	State:       "a-state",
	Verifier:    strings.Repeat("verifier", 6),
}

// authorize returns the code of a login.
func authorize(t *testing.T, s *oauthtest.Server, o adapter.OAuth) string {
	t.Helper()
	s.Register(request.RedirectURI)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(oauth.AuthorizeURL(&o, s.Client, request))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	to, err := res.Location()
	if err != nil {
		t.Fatalf("%d: %v", res.StatusCode, err)
	}
	if to.Query().Get("state") != request.State {
		t.Errorf("the state is %q", to.Query().Get("state"))
	}
	return to.Query().Get("code")
}

// A code and a refresh token yield tokens, with both ways to send the client's secret.
func TestTokens(t *testing.T) {
	t.Parallel()
	for name, basic := range map[string]bool{"in the body": false, "in the header": true} {
		s := oauthtest.Start(t)
		o := s.OAuth()
		o.BasicAuth = basic
		env := adapter.Env{Client: s.Client}
		first, err := oauth.Exchange(t.Context(), &o, env, authorize(t, s, o), request)
		if err != nil || first.Access == "" || time.Until(first.ExpiresAt) < 59*time.Minute {
			t.Fatalf("%s: the code: %v", name, err)
		}
		refresh := oauth.Refresh(&o, env)
		second, err := refresh(t.Context(), first)
		if err != nil || second.Access == first.Access || second.Refresh == first.Refresh {
			t.Errorf("%s: the refresh token: %v", name, err)
		}
		if _, err := refresh(t.Context(), first); adapter.ClassOf(err) != adapter.AuthRevoked {
			t.Errorf("%s: a used refresh token: %v", name, err)
		}
		if _, err := refresh(t.Context(), adapter.Tokens{Access: "x"}); adapter.ClassOf(err) != adapter.AuthRevoked {
			t.Errorf("%s: no refresh token: %v", name, err)
		}
		_, err = oauth.Refresh(&o, adapter.Env{})(t.Context(), second)
		if adapter.ClassOf(err) != adapter.GatewayDown || !strings.Contains(err.Error(), "set --vendor-client") {
			t.Errorf("%s: no registration: %v", name, err)
		}
	}
}

// Errors say what failed, and quote nothing of what the vendor sent.
func TestExchange_Errors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  oauthtest.Fault
		change func(r *oauth.Request, env *adapter.Env)
		class  adapter.Class
		says   string
		after  time.Duration
	}{
		"unavailable":  {fault: oauthtest.Unavailable, class: adapter.GatewayDown, says: "status 503", after: 7 * time.Second},
		"garbage":      {fault: oauthtest.Garbage, class: adapter.GatewayDown, says: "cannot be read"},
		"no answer":    {fault: oauthtest.HangUp, class: adapter.GatewayDown, says: "does not answer"},
		"a bad client": {fault: oauthtest.BadClient, class: adapter.GatewayDown, says: "--vendor-client"},
		"another client": {
			change: func(_ *oauth.Request, env *adapter.Env) { env.Client.Secret = "guess" },
			class:  adapter.GatewayDown,
			says:   "--vendor-client",
		},
		"another verifier": {
			change: func(r *oauth.Request, _ *adapter.Env) { r.Verifier += "x" },
			class:  adapter.AuthRevoked,
			says:   "log in again",
		},
		"another redirect URI": {
			change: func(r *oauth.Request, _ *adapter.Env) { r.RedirectURI += "x" },
			class:  adapter.AuthRevoked,
			says:   "log in again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := oauthtest.Start(t)
			o := s.OAuth()
			r, env := request, adapter.Env{Client: s.Client}
			code := authorize(t, s, o)
			s.Fail(c.fault)
			if c.change != nil {
				c.change(&r, &env)
			}
			_, err := oauth.Exchange(t.Context(), &o, env, code, r)
			e := adapter.AsError(err)
			if e == nil || e.Class != c.class || !strings.Contains(e.Message, c.says) || e.RetryAfter != c.after {
				t.Fatalf("%+v", err)
			}
			for _, secret := range s.Secrets() {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error contains a secret")
				}
			}
		})
	}
}

// A vendor that is slow or redirects does not receive the code elsewhere, and the login ends in time.
func TestExchange_SlowAndMoved(t *testing.T) {
	t.Parallel()
	s := oauthtest.Start(t)
	entered := make(chan struct{}, 1)
	s.Mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		r.FormValue("code") // the server notices the end of a request only after its body
		entered <- struct{}{}
		<-r.Context().Done()
	})
	s.Mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/token", http.StatusTemporaryRedirect)
	})
	o, env := s.OAuth(), adapter.Env{Client: s.Client}
	code := authorize(t, s, o)
	o.TokenURL = s.URL + "/moved"
	if _, err := oauth.Exchange(t.Context(), &o, env, code, request); adapter.ClassOf(err) != adapter.GatewayDown ||
		!strings.Contains(err.Error(), "status 307") {
		t.Errorf("a redirect: %v", err)
	}
	o.TokenURL = s.URL + "/slow"
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := oauth.Exchange(ctx, &o, env, code, request); adapter.ClassOf(err) != adapter.GatewayDown ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a slow server: %v", err)
	}
	u, err := url.Parse(oauth.AuthorizeURL(&o, s.Client, request))
	if err != nil || strings.Contains(u.RawQuery, request.Verifier) {
		t.Errorf("the URL contains the verifier: %v", err)
	}
}
