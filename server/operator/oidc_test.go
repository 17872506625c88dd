package operator_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

// issuer is an OpenID Connect provider whose tokens tests change.
type issuer struct {
	*testing.T
	*httptest.Server
	key       *ecdsa.PrivateKey                 // the published one
	signer    *ecdsa.PrivateKey                 // of tokens
	challenge string                            // of PKCE, of the last sign-in
	claims    func(nonce string) map[string]any // of the next token
	nonce     string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{T: t, key: key, signer: key}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			i.Error(err)
		}
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer(map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token",
			"jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
			"scopes_supported": []string{"openid", "email", "groups"},
		})
	case "/keys":
		point, err := i.key.PublicKey.Bytes()
		if err != nil {
			i.Error(err)
		}
		answer(map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1",
			"x": b64.EncodeToString(point[1:33]), "y": b64.EncodeToString(point[33:]),
		}}})
	case "/token":
		if got := oauth2.S256ChallengeFromVerifier(r.FormValue("code_verifier")); got != i.challenge {
			w.WriteHeader(http.StatusBadRequest)
			answer(map[string]any{"error": "invalid_grant"})
			return
		}
		answer(map[string]any{"access_token": "secret-access-token", "token_type": "Bearer", "id_token": i.token()})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (i *issuer) token() string {
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims(i.claims(i.nonce)))
	token.Header["kid"] = "1"
	signed, err := token.SignedString(i.signer)
	if err != nil {
		i.Error(err)
	}
	return signed
}

// person returns the claims of a person.
func (i *issuer) person(subject, email string, verified bool, groups ...string) {
	i.claims = func(nonce string) map[string]any {
		return map[string]any{
			"iss": i.URL, "aud": "deviceaccess", "sub": subject, "email": email, "email_verified": verified,
			"name": "Jane", "groups": groups, "nonce": nonce, "exp": time.Now().Add(time.Hour).Unix(),
		}
	}
}

// changed changes a claim of the next token.
func (i *issuer) changed(name string, value any) {
	before := i.claims
	i.claims = func(nonce string) map[string]any {
		claims := before(nonce)
		claims[name] = value
		return claims
	}
}

const redirectURL = "https://locks.example.com/console/oidc/callback"

// at returns a bed whose operators sign in at an issuer.
func (i *issuer) at(claim string) *bed {
	i.Helper()
	roles, err := operator.ParseRoleClaim(claim)
	if err != nil {
		i.Fatal(err)
	}
	return newBed(i.T, operator.Options{OIDC: operator.OIDC{
		Issuer: i.URL, ClientID: "deviceaccess", ClientSecret: "secret", Roles: roles,
	}})
}

// begin starts a sign-in, and returns what the provider sends back.
func (i *issuer) begin(b *bed) (state string, back operator.Callback) {
	i.Helper()
	_, state, back = i.request(b, operator.OIDCRequest{RedirectURL: redirectURL})
	return state, back
}

// request starts a sign-in or a confirmation, and returns what the browser sends to the provider and what that sends
// back.
func (i *issuer) request(b *bed, r operator.OIDCRequest) (sent url.Values, state string, back operator.Callback) {
	i.Helper()
	target, state, err := b.BeginOIDC(i.Context(), r)
	if err != nil {
		i.Fatal(err)
	}
	u, err := url.Parse(target)
	if err != nil {
		i.Fatal(err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || !strings.Contains(q.Get("scope"), "openid") {
		i.Errorf("the sign-in is at %s", target)
	}
	i.challenge, i.nonce = q.Get("code_challenge"), q.Get("nonce")
	return q, state, operator.Callback{State: q.Get("state"), Code: "code"}
}

func (i *issuer) signIn(b *bed) (string, error) {
	i.Helper()
	state, back := i.begin(b)
	end, err := b.FinishOIDC(i.Context(), state, back, client)
	return end.Token, err
}

func TestOIDC_RefreshesRoles(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("groups=admin:ops,viewer:staff")
	i.person("1", "jane@example.com", false, "ops", "staff")
	token, err := i.signIn(b)
	if err != nil {
		t.Fatalf("%v: %s", err, b.log.String())
	}
	first := b.session(token)
	if o := first.Operator; !o.IsAdminOfAll() || o.Issuer != i.URL || o.Email != "jane@example.com" ||
		o.Name != "Jane" ||
		first.Method != operator.ByOIDC {
		t.Errorf("%+v", first)
	}
	i.person("1", "jane@example.com", false, "staff")
	if _, err = i.signIn(b); err != nil {
		t.Fatal(err)
	}
	if s := b.session(token); s.Operator.ID != first.Operator.ID || s.Operator.RoleIn(uuid.Nil) != domain.RoleViewer {
		t.Errorf("%+v", s.Operator)
	}
	i.person("1", "jane@example.com", false)
	_, err = i.signIn(b)
	fails(t, "without a group", err, "no_role")
	_, err = b.Session(t.Context(), token)
	fails(t, "the session of before", err, "session_not_found")
	if o, err := b.GetOperator(t.Context(), first.Operator.ID); err != nil || len(o.Roles) != 0 {
		t.Errorf("%+v %v", o, err)
	}
}

// The provider's identifier decides who signs in, and an email address only if the provider has verified it.
func TestOIDC_MatchesSubject(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("")
	admin := b.create("admin@example.com", domain.RoleAdmin)
	i.person("1", "admin@example.com", false)
	_, err := i.signIn(b)
	fails(t, "unverified email", err, "no_role")
	i.person("1", "unknown@example.com", true)
	_, err = i.signIn(b)
	fails(t, "unknown email", err, "no_role")
	i.person("1", "ADMIN@example.com", true)
	token, err := i.signIn(b)
	if err != nil {
		t.Fatal(err)
	}
	if s := b.session(token); s.Operator.ID != admin.ID || !s.Operator.IsAdminOfAll() {
		t.Errorf("%+v", s.Operator)
	}
	i.person("2", "admin@example.com", true)
	_, err = i.signIn(b)
	fails(t, "another person with the address", err, "no_role")
	i.person("1", "renamed@example.com", false)
	if _, err = i.signIn(b); err != nil {
		t.Errorf("the person with another address: %v", err)
	}
}

// An email address that the provider has not verified takes no account of another operator, also where a group gives a
// role.
func TestOIDC_TakesNoAddressOfAnother(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("groups=viewer:*")
	b.create("admin@example.com", domain.RoleAdmin)
	i.person("1", "admin@example.com", false)
	_, err := i.signIn(b)
	fails(t, "unverified email", err, "no_role")
}

func TestOIDC_RefusesForgedTokens(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(i *issuer){
		"another nonce":    func(i *issuer) { i.changed("nonce", "another") },
		"no nonce":         func(i *issuer) { i.changed("nonce", nil) },
		"another issuer":   func(i *issuer) { i.changed("iss", "https://evil.example.com") },
		"another audience": func(i *issuer) { i.changed("aud", "another") },
		"expired":          func(i *issuer) { i.changed("exp", time.Now().Add(-time.Hour).Unix()) },
		"another key": func(i *issuer) {
			other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Error(err)
			}
			i.signer = other
		},
		"another verifier": func(i *issuer) { i.challenge = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			b := i.at("groups=admin:*")
			i.person("1", "jane@example.com", true)
			state, back := i.begin(b)
			change(i)
			_, err := b.FinishOIDC(t.Context(), state, back, client)
			fails(t, "sign in", err, "provider_unavailable")
			if log := b.log.String(); strings.Contains(log, "secret-access-token") || !strings.Contains(log, "WARN") {
				t.Errorf("the log says %s", log)
			}
			if all, err := b.ListOperators(t.Context()); err != nil || len(all) != 0 {
				t.Errorf("%d operators, %v", len(all), err)
			}
		})
	}
}

func TestOIDC_StateCountsOnce(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("groups=admin:*")
	i.person("1", "jane@example.com", true)
	state, back := i.begin(b)
	other := back
	other.State = "another"
	_, err := b.FinishOIDC(t.Context(), state, other, client)
	fails(t, "state of another browser", err, "sign_in_expired")
	_, err = b.FinishOIDC(t.Context(), "", back, client)
	fails(t, "without a cookie", err, "sign_in_expired")
	_, err = b.FinishOIDC(t.Context(), state, operator.Callback{State: back.State, Error: "access_denied"}, client)
	fails(t, "canceled", err, "sign_in_failed")
	if _, err := b.FinishOIDC(t.Context(), state, back, client); err != nil {
		t.Fatal(err)
	}
	_, err = b.FinishOIDC(t.Context(), state, back, client)
	fails(t, "again", err, "sign_in_expired")
	state, back = i.begin(b)
	b.pass(5 * time.Minute)
	_, err = b.FinishOIDC(t.Context(), state, back, client)
	fails(t, "late", err, "sign_in_expired")
}

func TestOIDC_RefusesDisabledOperator(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("groups=admin:*")
	b.create("admin@example.com", domain.RoleAdmin)
	i.person("1", "jane@example.com", true)
	token, err := i.signIn(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.SetDisabled(t.Context(), b.session(token).Operator.ID, true); err != nil {
		t.Fatal(err)
	}
	_, err = i.signIn(b)
	fails(t, "disabled", err, "no_role")
}

// Another provider with the same identifiers is another person.
func TestOIDC_SubjectOfAnotherIssuer(t *testing.T) {
	t.Parallel()
	i, evil := newIssuer(t), newIssuer(t)
	b := i.at("")
	b.create("admin@example.com", domain.RoleAdmin)
	i.person("1", "admin@example.com", true)
	if _, err := i.signIn(b); err != nil {
		t.Fatal(err)
	}
	b.UseIssuer(evil.URL)
	evil.person("1", "admin@example.com", true)
	_, err := evil.signIn(b)
	fails(t, "same subject elsewhere", err, "no_role")
}

func TestOIDC_Unreachable(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("")
	i.Close()
	_, _, err := b.BeginOIDC(t.Context(), operator.OIDCRequest{RedirectURL: redirectURL})
	fails(t, "unreachable", err, "provider_unavailable")
	off := newBed(t, operator.Options{})
	_, _, err = off.BeginOIDC(t.Context(), operator.OIDCRequest{RedirectURL: redirectURL})
	fails(t, "off", err, "oidc_disabled")
}

// The provider says when a person has signed in there, which may be long ago.
func TestOIDC_SignedInAtIsAuthTime(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("groups=admin:*")
	now := b.clock()
	for name, c := range map[string]struct {
		authTime any
		want     time.Time
	}{
		"none":    {nil, now},
		"earlier": {now.Add(-time.Hour).Unix(), now.Add(-time.Hour).Truncate(time.Second)},
		"text":    {strconv.FormatInt(now.Add(-time.Hour).Unix(), 10), now.Add(-time.Hour).Truncate(time.Second)},
		"later":   {now.Add(time.Hour).Unix(), now},
	} {
		i.person("1", "jane@example.com", true)
		i.changed("auth_time", c.authTime)
		token, err := i.signIn(b)
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, b.log.String())
		}
		if s := b.session(token); !s.SignedInAt.Equal(c.want) || !s.CreatedAt.Equal(now) {
			t.Errorf("%s: signed in at %s, want %s", name, s.SignedInAt, c.want)
		}
	}
	i.changed("auth_time", "yesterday")
	_, err := i.signIn(b)
	fails(t, "no time", err, "provider_unavailable")
}

// A confirmation counts only if the provider has asked the same person for the login again.
func TestOIDC_ConfirmNeedsFreshLogin(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("groups=admin:*")
	i.person("1", "jane@example.com", true)
	token, err := i.signIn(b)
	if err != nil {
		t.Fatal(err)
	}
	b.pass(20 * time.Minute)
	s := b.session(token)
	confirm := func(by uuid.UUID) (operator.OIDCResult, error) {
		sent, state, back := i.request(b, operator.OIDCRequest{
			RedirectURL: redirectURL, Next: "/console/access", Confirm: &s,
		})
		if sent.Get("prompt") != "login" || sent.Get("max_age") != "0" {
			t.Errorf("the provider is asked %v", sent)
		}
		back.Session = by
		return b.FinishOIDC(t.Context(), state, back, client)
	}
	refused := func(name string, by uuid.UUID, want string) {
		t.Helper()
		end, err := confirm(by)
		fails(t, name, err, want)
		if end.Token != "" || end.Next != "/console/access" || !end.Confirms {
			t.Errorf("%s: %+v", name, end)
		}
	}
	refused("no auth_time", s.ID, "auth_time_missing")
	i.changed("auth_time", b.clock().Add(-5*time.Minute).Unix())
	refused("old login", s.ID, "sign_in_not_fresh")
	i.changed("auth_time", b.clock().Add(5*time.Minute).Unix())
	refused("login to come", s.ID, "sign_in_not_fresh")
	i.changed("auth_time", b.clock().Unix())
	refused("another browser", uuid.Nil, "sign_in_expired")
	i.changed("sub", "2")
	i.changed("email", "joe@example.com")
	refused("another person", s.ID, "another_person")
	if now := b.session(token); !now.SignedInAt.Equal(s.SignedInAt) {
		t.Errorf("signed in at %s", now.SignedInAt)
	}
	i.person("1", "jane@example.com", true)
	i.changed("auth_time", b.clock().Unix())
	if end, err := confirm(s.ID); err != nil || end.Token != "" || end.Next != "/console/access" {
		t.Fatalf("%+v %v", end, err)
	}
	if now := b.session(token); !now.SignedInAt.Equal(b.clock().Truncate(time.Second)) {
		t.Errorf("signed in at %s", now.SignedInAt)
	}
	if n := b.count("select count(*) from operator_sessions"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}
