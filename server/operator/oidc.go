package operator

import (
	"context"
	"crypto/subtle"
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

// oidcSignIn is the state of a sign-in at the provider.
type oidcSignIn struct {
	State       string `json:"s"`
	Nonce       string `json:"n"`
	Verifier    string `json:"v"` // of PKCE
	RedirectURL string `json:"r"`
}

// BeginOIDC starts a sign-in at the provider, which redirects to redirectURL. It returns the URL for the browser, and the
// state for FinishOIDC. It fails with Unavailable if the provider does not answer.
func (s *Service) BeginOIDC(ctx context.Context, redirectURL string) (authURL, state string, err error) {
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
		RedirectURL: redirectURL,
	}
	if state, err = s.sealChallenge(oidcPurpose, begun); err != nil {
		return "", "", err
	}
	config := s.oauth(p, redirectURL)
	return config.AuthCodeURL(begun.State, oidc.Nonce(nonce), oauth2.S256ChallengeOption(begun.Verifier)), state, nil
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
}

// FinishOIDC signs in the person whom the provider has identified, and refreshes its roles. It returns the token of a new
// session. The provider's identifier of the person finds the operator. The first time, a verified email address finds an
// invited operator. It fails with Unauthorized, with Forbidden for a person without a role, and with Unavailable.
func (s *Service) FinishOIDC(ctx context.Context, state string, b Callback, c Client) (token string, err error) {
	if !s.OIDCEnabled() {
		return "", oidcOff()
	}
	var begun oidcSignIn
	challenge, err := s.openChallenge(oidcPurpose, state, &begun)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare([]byte(begun.State), []byte(b.State)) != 1 {
		return "", signInExpired()
	}
	if b.Error != "" || b.Code == "" {
		s.opt.Log.Info("the OpenID Connect provider refused a sign-in", "reason", domain.CleanName(b.Error))
		return "", unauthorized("sign_in_failed", "Your organization's sign-in was canceled or refused. Try again.")
	}
	who, err := s.identify(ctx, begun, b.Code)
	if err != nil {
		return "", err
	}
	return s.admit(ctx, challenge, who, c)
}

// identity is a person as the provider describes it.
type identity struct {
	issuer, subject string
	email, name     string
	verified        bool // the email address
	claims          map[string]any
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
	if err := s.addUserInfo(ctx, p, tokens, id.Subject, claims); err != nil {
		return failed(err)
	}
	who = identity{issuer: id.Issuer, subject: id.Subject, claims: claims}
	who.email, _ = claims["email"].(string)
	who.name, _ = claims["name"].(string)
	who.name = domain.CleanName(who.name)
	who.verified = claims["email_verified"] == true || claims["email_verified"] == "true"
	return who, nil
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

// admit signs an identified person in.
func (s *Service) admit(ctx context.Context, challenge string, who identity, c Client) (token string, err error) {
	var refused error
	id := domain.NewID() // of a new operator
	actor := Operator{ID: id, Email: who.email}
	if known, err := s.findIdentity(ctx, s.db.Queries, who); err == nil && known.row.OperatorID != uuid.Nil {
		actor = known.operator()
	}
	ctx = acting(ctx, actor, c, signInOperation)
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		refused = nil
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		if err := s.useChallenge(ctx, tx.Queries, challenge); err != nil {
			return err
		}
		r, err := s.findIdentity(ctx, tx.Queries, who)
		if err != nil {
			return err
		}
		if r.row.DisabledAt != nil {
			return noRole()
		}
		if r.row.OperatorID == uuid.Nil {
			r, err = s.addIdentity(ctx, tx, id, who)
		} else {
			r, err = s.refreshIdentity(ctx, tx, r, who)
		}
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
		token, err = s.startSession(ctx, tx, r, ByOIDC, c)
		return err
	})
	if err == nil {
		err = refused
	}
	return token, domain.Wrap(err, "sign in with an organization's account")
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
