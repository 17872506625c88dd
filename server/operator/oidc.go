package operator

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/google/uuid"
	"golang.org/x/oauth2"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// OIDC configures sign-in at an OpenID Connect provider.
type OIDC struct {
	Issuer       string // URL of the provider; empty: off
	ClientID     string
	ClientSecret string
	// Roles grants roles by a claim, at each sign-in. If it has no claim, administrators invite people and set their
	// roles.
	Roles RoleClaim
	// WithClient returns the context with the HTTP client of requests to the provider; nil: the default client.
	WithClient func(context.Context) context.Context
}

// providerTimeout limits the requests to the provider for a step of a sign-in.
const providerTimeout = 15 * time.Second

// provider is the provider, once it was discovered.
type provider struct {
	mu    sync.Mutex
	known *oidc.Provider
}

// OIDCEnabled reports whether operators can sign in at an OpenID Connect provider.
func (s *Service) OIDCEnabled() bool { return s.opt.OIDC.Issuer != "" }

// CanUseOIDC reports whether an operator signs in at the provider that is configured now.
func (s *Service) CanUseOIDC(o Operator) bool {
	return s.OIDCEnabled() && o.Issuer == s.opt.OIDC.Issuer
}

// discover returns the provider. It asks the provider until it has answered once.
func (s *Service) discover(ctx context.Context) (*oidc.Provider, error) {
	s.provider.mu.Lock()
	defer s.provider.mu.Unlock()
	if s.provider.known != nil {
		return s.provider.known, nil
	}
	found, err := oidc.NewProvider(ctx, s.opt.OIDC.Issuer)
	if err != nil {
		s.opt.Log.Error("cannot reach the OpenID Connect provider", "issuer", s.opt.OIDC.Issuer, "error", err)
		return nil, providerFailed()
	}
	s.provider.known = found
	return found, nil
}

func providerFailed() error {
	return &domain.Error{
		Kind: domain.Unavailable,
		Type: "provider_unavailable",
		Message: "Your organization's sign-in did not answer as expected. Try again; the server's log has the " +
			"reason.",
	}
}

// requesting returns the context of requests to the provider.
func (s *Service) requesting(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.opt.OIDC.WithClient != nil {
		ctx = s.opt.OIDC.WithClient(ctx)
	}
	return context.WithTimeout(ctx, providerTimeout)
}

func (s *Service) oauth(p *oidc.Provider, redirectURL string) oauth2.Config {
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	var metadata struct {
		Scopes []string `json:"scopes_supported"`
	}
	// Some providers send the claim of groups only for the scope of that name.
	if claim := s.opt.OIDC.Roles.Claim; p.Claims(&metadata) == nil && slices.Contains(metadata.Scopes, claim) {
		scopes = append(scopes, claim)
	}
	return oauth2.Config{
		ClientID:     s.opt.OIDC.ClientID,
		ClientSecret: s.opt.OIDC.ClientSecret,
		Endpoint:     p.Endpoint(),
		RedirectURL:  redirectURL,
		Scopes:       scopes,
	}
}

const oidcPurpose = "oidc"

// maxClockSkew is how much the clocks of the provider and of the server may differ.
const maxClockSkew = time.Minute

// OIDCRequest is a request to identify a person at the provider.
type OIDCRequest struct {
	// RedirectURL is where the provider sends the browser afterwards.
	RedirectURL string
	// Next is the page to which the sign-in leads. It comes back in OIDCResult.
	Next string
	// Confirm is the session whose operator confirms its identity; nil: a sign-in with a new session. For a
	// confirmation, the provider must ask for the login again, also if the person is signed in there.
	Confirm *Session
}

// oidcSignIn is the state of a sign-in at the provider.
type oidcSignIn struct {
	State       string    `json:"s"`
	Nonce       string    `json:"n"`
	Verifier    string    `json:"v"` // of PKCE
	RedirectURL string    `json:"r"`
	Next        string    `json:"p"`
	At          time.Time `json:"t"`
	Session     uuid.UUID `json:"c"` // of a confirmation; uuid.Nil: a sign-in
	Operator    uuid.UUID `json:"o"` // of Session

	challenge string // for useChallenge
}

func (b oidcSignIn) confirms() bool { return b.Session != uuid.Nil }

// BeginOIDC starts a sign-in or a confirmation at the provider. It returns the URL for the browser, and the state for
// FinishOIDC. It fails with Unavailable if the provider does not answer.
func (s *Service) BeginOIDC(ctx context.Context, q OIDCRequest) (authURL, state string, err error) {
	if !s.OIDCEnabled() {
		return "", "", oidcOff()
	}
	ctx, cancel := s.requesting(ctx)
	defer cancel()
	p, err := s.discover(ctx)
	if err != nil {
		return "", "", err
	}
	random, _ := newToken()
	nonce, _ := newToken()
	begun := oidcSignIn{
		State:       random,
		Nonce:       nonce,
		Verifier:    oauth2.GenerateVerifier(),
		RedirectURL: q.RedirectURL,
		Next:        q.Next,
		At:          s.opt.Now(),
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(nonce), oauth2.S256ChallengeOption(begun.Verifier)}
	if q.Confirm != nil {
		begun.Session, begun.Operator = q.Confirm.ID, q.Confirm.Operator.ID
		options = append(options,
			oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	if state, err = s.sealChallenge(oidcPurpose, begun); err != nil {
		return "", "", err
	}
	config := s.oauth(p, q.RedirectURL)
	return config.AuthCodeURL(begun.State, options...), state, nil
}

func oidcOff() error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "oidc_disabled",
		Message: "This server has no sign-in with an organization's account.",
	}
}

// Callback is what the provider sends back with the browser.
type Callback struct {
	State, Code string
	Error       string // such as access_denied
	// Session is the browser's session; uuid.Nil: none.
	Session uuid.UUID
}

// OIDCResult is the end of a sign-in or a confirmation at the provider.
type OIDCResult struct {
	// Token is the token of the new session; empty for a confirmation.
	Token string
	// Next is the page of OIDCRequest. It is also set for a refused sign-in whose state is valid.
	Next string
	// Confirms reports whether this ends a confirmation. It is also set for a refused one.
	Confirms bool
}

// FinishOIDC signs in the person whom the provider has identified, and refreshes its roles. It starts a session, or
// renews the one that is confirmed. The provider's identifier of the person finds the operator. The first time, a
// verified email address finds an invited operator. It fails with Unauthorized, with Forbidden for a person without a
// role, and with Unavailable.
func (s *Service) FinishOIDC(ctx context.Context, state string, b Callback, c Client) (out OIDCResult, err error) {
	if !s.OIDCEnabled() {
		return out, oidcOff()
	}
	var begun oidcSignIn
	challenge, err := s.openChallenge(oidcPurpose, state, &begun)
	if err != nil {
		return out, err
	}
	begun.challenge = challenge
	out.Next, out.Confirms = begun.Next, begun.confirms()
	if subtle.ConstantTimeCompare([]byte(begun.State), []byte(b.State)) != 1 ||
		begun.confirms() && begun.Session != b.Session {
		return out, signInExpired()
	}
	if b.Error != "" || b.Code == "" {
		s.opt.Log.Info("the OpenID Connect provider refused a sign-in", "reason", domain.CleanName(b.Error))
		return out, unauthorized("sign_in_failed", "Your organization's sign-in was canceled or refused. Try again.")
	}
	who, err := s.identify(ctx, begun, b.Code)
	if err != nil {
		return out, err
	}
	if begun.confirms() {
		if err := s.checkFresh(begun, who); err != nil {
			return out, err
		}
	}
	out.Token, err = s.admit(ctx, begun, who, c)
	return out, err
}

// checkFresh fails with Unauthorized unless the provider has asked for the login since the confirmation began.
func (s *Service) checkFresh(begun oidcSignIn, who identity) error {
	switch {
	case who.authTime.IsZero():
		s.opt.Log.Warn(
			"refused a confirmation: the OpenID Connect provider sends no auth_time although max_age asks for it",
		)
		return unauthorized("auth_time_missing", "Your organization's sign-in does not say when you signed in, so it "+
			"cannot confirm that it is you. Ask its administrator to send the claim auth_time.")
	case who.authTime.Before(begun.At.Add(-maxClockSkew)), who.authTime.After(s.opt.Now().Add(maxClockSkew)):
		s.opt.Log.Warn("refused a confirmation: the auth_time of the OpenID Connect provider is not recent",
			"auth_time", who.authTime)
		return unauthorized("sign_in_not_fresh", "Your organization's sign-in did not ask you to sign in again, so it "+
			"did not confirm that it is you. Sign out there, and try again.")
	}
	return nil
}

// identity is a person as the provider describes it.
type identity struct {
	issuer, subject string
	email, name     string
	verified        bool // the email address
	// authTime is when the provider asked for the login; zero: it does not say.
	authTime time.Time
	claims   map[string]any
}

// identify exchanges the code of a sign-in for the identity of a person.
func (s *Service) identify(ctx context.Context, begun oidcSignIn, code string) (who identity, err error) {
	ctx, cancel := s.requesting(ctx)
	defer cancel()
	p, err := s.discover(ctx)
	if err != nil {
		return who, err
	}
	failed := func(err error) (identity, error) {
		s.opt.Log.Warn("cannot check a sign-in at the OpenID Connect provider", "error", withoutTokens(err))
		return identity{}, providerFailed()
	}
	config := s.oauth(p, begun.RedirectURL)
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(begun.Verifier))
	if err != nil {
		return failed(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	id, err := p.Verifier(&oidc.Config{ClientID: config.ClientID, Now: s.opt.Now}).Verify(ctx, raw)
	if err != nil {
		return failed(err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(begun.Nonce)) != 1 {
		return failed(errors.New("the token is of another sign-in"))
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return failed(err)
	}
	authTime, err := authTimeOf(id)
	if err != nil {
		return failed(err)
	}
	if err := s.addUserInfo(ctx, p, tokens, id.Subject, claims); err != nil {
		return failed(err)
	}
	who = identity{issuer: s.opt.OIDC.Issuer, subject: id.Subject, authTime: authTime, claims: claims}
	who.email, _ = claims["email"].(string)
	who.name, _ = claims["name"].(string)
	who.name = domain.CleanName(who.name)
	who.verified = claims["email_verified"] == true || claims["email_verified"] == "true"
	return who, nil
}

// maxAuthTime bounds the claim auth_time, in seconds since 1970: the year 5138.
const maxAuthTime = 1e11

// authTimeOf returns the claim auth_time of a verified ID token; zero: there is none.
func authTimeOf(id *oidc.IDToken) (time.Time, error) {
	var claims struct {
		AuthTime *json.Number `json:"auth_time"`
	}
	if err := id.Claims(&claims); err != nil {
		return time.Time{}, fmt.Errorf("read the claim auth_time: %w", err)
	}
	if claims.AuthTime == nil {
		return time.Time{}, nil
	}
	seconds, err := claims.AuthTime.Float64()
	if err != nil || seconds <= 0 || seconds > maxAuthTime {
		return time.Time{}, errors.New("the claim auth_time is not a time")
	}
	return time.Unix(int64(seconds), 0), nil
}

// withoutTokens returns an error of the provider without the body of its answer, which may have secrets.
func withoutTokens(err error) error {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response != nil {
		return fmt.Errorf("the provider answered %s: %s %s", e.Response.Status, e.ErrorCode, e.ErrorDescription)
	}
	return err
}

// addUserInfo adds the claims that the provider has only at its userinfo endpoint, if a needed one is missing.
func (s *Service) addUserInfo(
	ctx context.Context,
	p *oidc.Provider,
	t *oauth2.Token,
	subject string,
	claims map[string]any,
) error {
	wanted := s.opt.OIDC.Roles.Claim
	if p.UserInfoEndpoint() == "" ||
		claims["email"] != nil && (wanted == "" || findClaim(claims, wanted) != nil) {
		return nil
	}
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(t))
	if err != nil {
		return err
	}
	if info.Subject != subject {
		return errors.New("the userinfo endpoint answered for another person")
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return err
	}
	for name, value := range more {
		if _, known := claims[name]; !known {
			claims[name] = value
		}
	}
	return nil
}

// admission is a person who asks to be signed in.
type admission struct {
	begun  oidcSignIn
	who    identity
	client Client
	id     uuid.UUID // of the operator, if it is a new one
}

// admit signs an identified person in, or renews the session of a confirmation.
func (s *Service) admit(ctx context.Context, begun oidcSignIn, who identity, c Client) (token string, err error) {
	var refused error
	a := admission{begun: begun, who: who, client: c, id: domain.NewID()}
	actor := Operator{ID: a.id, Email: who.email}
	if known, err := s.findIdentity(ctx, s.db.Queries, who); err == nil && known.row.OperatorID != uuid.Nil {
		actor = known.operator()
	}
	operation := signInOperation
	if begun.confirms() {
		operation = confirmOperation
	}
	ctx = acting(ctx, actor, c, operation)
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		refused = nil
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		if err := s.useChallenge(ctx, tx.Queries, begun.challenge); err != nil {
			return err
		}
		r, err := s.refreshed(ctx, tx, a)
		if err != nil {
			return err
		}
		if len(r.roles) == 0 { // keeps that the roles are gone
			refused = noRole()
			return tx.DeleteSessionsOfOperator(
				ctx,
				dbsqlc.DeleteSessionsOfOperatorParams{OperatorID: r.row.OperatorID},
			)
		}
		if err := tx.DeleteLinksOfOperator(ctx, &r.row.OperatorID); err != nil {
			return err
		}
		if begun.confirms() {
			return s.renewSession(ctx, tx, r.row.OperatorID, begun.Session, who.authTime)
		}
		token, err = s.startSession(ctx, tx, signIn{operator: r, method: ByOIDC, at: who.authTime, client: c})
		return err
	})
	if err == nil {
		err = refused
	}
	return token, domain.Wrap(err, "sign in with an organization's account")
}

// refreshed returns the operator of a person with the roles that the claims grant now. It creates the operator of a new
// person. It fails with Unauthorized if another operator confirms, and with Forbidden.
func (s *Service) refreshed(ctx context.Context, tx store.Tx, a admission) (record, error) {
	r, err := s.findIdentity(ctx, tx.Queries, a.who)
	switch {
	case err != nil:
		return record{}, err
	case a.begun.confirms() && r.row.OperatorID != a.begun.Operator:
		return record{}, anotherPerson()
	case r.row.DisabledAt != nil:
		return record{}, noRole()
	case r.row.OperatorID == uuid.Nil:
		return s.addIdentity(ctx, tx, a.id, a.who)
	}
	return s.refreshIdentity(ctx, tx, r, a.who)
}

func anotherPerson() error {
	return unauthorized("another_person", "Your organization signed in another person. Confirm with the account with "+
		"which you are signed in here.")
}

func noRole() error {
	return &domain.Error{
		Kind:    domain.Forbidden,
		Type:    "no_role",
		Message: "Your account may not use this server. Ask an administrator for a role.",
	}
}

// findIdentity returns the operator of a person. The first time, that is one without a provider whose email address the
// provider has verified. It returns an empty record if there is none.
func (s *Service) findIdentity(ctx context.Context, q *dbsqlc.Queries, who identity) (record, error) {
	bySubject, err := q.GetOperatorBySubject(
		ctx,
		dbsqlc.GetOperatorBySubjectParams{Issuer: who.issuer, Subject: who.subject},
	)
	if err == nil {
		return s.openRecord(bySubject.Operator, bySubject.Passkeys)
	}
	if !store.IsNoRows(err) {
		return record{}, fmt.Errorf("look up the operator: %w", err)
	}
	if !who.verified || who.email == "" {
		return record{}, nil
	}
	byEmail, err := q.GetOperatorByEmail(ctx, domain.Storable(who.email))
	if store.IsNoRows(err) || err == nil && byEmail.Operator.Subject != nil {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("look up the operator: %w", err)
	}
	return s.openRecord(byEmail.Operator, byEmail.Passkeys)
}

// addIdentity creates the operator of a person whose claims grant a role. It fails with Forbidden for others, and where
// the email address is that of another operator.
func (s *Service) addIdentity(ctx context.Context, tx store.Tx, id uuid.UUID, who identity) (record, error) {
	roles := s.opt.OIDC.Roles.roles(who.claims)
	if len(roles) == 0 || checkEmail(who.email) != nil {
		return record{}, noRole()
	}
	r, err := s.insert(ctx, tx, dbsqlc.Operator{
		OperatorID: id,
		Email:      who.email,
		Name:       who.name,
		Roles:      encodeRoles(roles),
		Issuer:     &who.issuer,
		Subject:    &who.subject,
	})
	if e, ok := domain.AsError(err); ok && e.Kind == domain.Conflict {
		s.opt.Log.Warn("refused a sign-in: another operator has the email address", "issuer", who.issuer)
		return record{}, noRole()
	}
	return r, err
}

// refreshIdentity stores the identifier and the roles of a known person. The provider decides about roles, also about
// those of the last administrator: the commands of the server's machine create another one.
func (s *Service) refreshIdentity(ctx context.Context, tx store.Tx, r record, who identity) (record, error) {
	r.row.Issuer, r.row.Subject = &who.issuer, &who.subject
	if s.opt.OIDC.Roles.Claim != "" {
		r.roles = s.opt.OIDC.Roles.roles(who.claims)
	}
	if err := s.save(ctx, tx, r); err != nil {
		return record{}, err
	}
	return s.read(ctx, tx.Queries, r.row.OperatorID)
}
