package spec_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// credential is one way to authenticate.
type credential struct {
	header  http.Header
	kinds   []string // names in the contract; none for an invalid credential
	refusal string   // error of an invalid credential
	own     things   // what it owns, in addition to what everyone with the account sees
	limited bool     // its scope is less than the workspace
}

// may reports whether an operation accepts the credential.
func (c credential) may(accepted []string) bool {
	return len(accepted) == 0 ||
		slices.ContainsFunc(c.kinds, func(kind string) bool { return slices.Contains(accepted, kind) })
}

// refusedWith returns the error of an operation that does not accept the credential.
func (c credential) refusedWith(accepted []string) string {
	if c.kinds == nil {
		return c.refusal
	}
	for _, kind := range c.kinds {
		if roams, is := strings.CutSuffix(
			kind,
			"_without_workspace",
		); is &&
			slices.Contains(accepted, roams+"_with_workspace") {
			return "401 unauthorized"
		}
	}
	return "403 forbidden"
}

// newCredentials returns all ways to authenticate, for a client that knows its own things and the id of another
// workspace.
func newCredentials(t *testing.T, s *apptest.Server, own things, foreign string) (all map[string]credential) {
	t.Helper()
	issue := func(kind domain.CredentialKind, lifetime time.Duration) (string, auth.Credential) {
		return s.Credential(t, auth.NewCredential{Kind: kind, Lifetime: lifetime})
	}
	ended := func(kind domain.CredentialKind) string {
		token, c := issue(kind, 0)
		if err := s.App.Access.Auth.RevokeCredential(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		return token
	}
	in := func(token, workspace string) http.Header {
		return http.Header{"Authorization": {"Bearer " + token}, "Seam-Workspace": {workspace}}
	}
	pat, _ := issue(domain.PAT, 0)
	late, _ := issue(domain.PAT, time.Nanosecond)
	console, of := issue(domain.ConsoleSession, 0)
	over, _ := issue(domain.ConsoleSession, time.Nanosecond)
	public, _ := issue(domain.PublishableKey, 0)

	reached := params{
		"connected_account_ids": []any{own["connected_account_id"], own["unmanaged_account_id"], own["acs_account_id"]},
		"connect_webview_ids":   []any{own["connect_webview_id"]},
		"user_identity_id":      own["user_identity_id"],
	}
	endUser := func(more params) api.ClientSession {
		in := params{}
		for _, from := range []params{reached, more} {
			for name, value := range from {
				in[name] = value
			}
		}
		return session(t, s, in)
	}
	jane := endUser(params{"user_identifier_key": "reach jane"})
	customers := session(
		t,
		s,
		params{
			"user_identifier_key": "reach customer",
			"customer_key":        own["customer_key"],
			"user_identity_id":    own["user_identity_id"],
			"connect_webview_ids": reached["connect_webview_ids"],
		},
	)
	revoked, deleted, short := endUser(nil), endUser(nil), endUser(params{"expires_at": time.Now().Add(time.Hour)})
	madeBy(t, s, "/client_sessions/revoke", "", params{"client_session_id": revoked.ClientSessionID})
	madeBy(t, s, "/client_sessions/delete", "", params{"client_session_id": deleted.ClientSessionID})
	expire(t, s, short)
	itself := func(c api.ClientSession) things {
		return things{"client_session_id": c.ClientSessionID, "user_identifier_key": *c.UserIdentifierKey}
	}

	forged := func(method jwt.SigningMethod, key any) string {
		token, err := jwt.NewWithClaims(method, jwt.RegisteredClaims{
			ID: of.ID.String(), Issuer: "deviceaccess-server",
			ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)),
		}).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	const unauthorized, elsewhere = "401 unauthorized", "401 workspace_not_found"
	return map[string]credential{
		"API key":      {header: apptest.Bearer(s.APIKey), kinds: []string{"api_key"}},
		"PAT":          {header: in(pat, s.WorkspaceID), kinds: []string{"pat_with_workspace"}},
		"PAT, roaming": {header: apptest.Bearer(pat), kinds: []string{"pat_without_workspace"}},
		"console session": {
			header: in(console, s.WorkspaceID),
			kinds:  []string{"console_session_with_workspace"},
		},
		"console session, roaming": {
			header: apptest.Bearer(console),
			kinds:  []string{"console_session_without_workspace"},
		},
		"client session": {
			header:  apptest.Bearer(jane.Token),
			kinds:   []string{"client_session"},
			own:     itself(jane),
			limited: true,
		},
		"client session of a customer": {
			header:  apptest.Bearer(customers.Token),
			kinds:   []string{"client_session", "client_session_with_customer"},
			own:     itself(customers),
			limited: true,
		},
		"publishable key": {
			header: http.Header{"Seam-Publishable-Key": {public}},
			kinds:  []string{"publishable_key"},
		},
		"nothing": {refusal: unauthorized},
		"another scheme": {
			header:  http.Header{"Authorization": {"Basic " + s.APIKey}},
			refusal: unauthorized,
		},
		"an unknown key": {
			header:  apptest.Bearer("seam_nosuch12_abcdefghijklmnopqrstuvwx"),
			refusal: unauthorized,
		},
		"an unknown PAT": {
			header:  in("seam_at1nosuch12_abcdefghijklmnopqrstuvwx", s.WorkspaceID),
			refusal: unauthorized,
		},
		"an unknown session": {
			header:  apptest.Bearer("seam_cst1nosuch12_abcdefghijklmnopqrstu"),
			refusal: "401 client_session_not_found",
		},
		"an unknown publishable key": {
			header:  http.Header{"Seam-Publishable-Key": {"seam_pk1nosuch12_abcdefghijklmnopqrstu"}},
			refusal: "401 invalid_publishable_key",
		},
		"a secret key as publishable": {
			header:  http.Header{"Seam-Publishable-Key": {s.APIKey}},
			refusal: "401 invalid_publishable_key",
		},
		"a publishable key as secret": {header: apptest.Bearer(public), refusal: "400 publishable_key_header_required"},
		"a key as a session's token": {
			header:  http.Header{"Client-Session-Token": {s.APIKey}},
			refusal: "400 invalid_client_session_token",
		},
		"a revoked key":             {header: apptest.Bearer(ended(domain.APIKey)), refusal: unauthorized},
		"a revoked PAT":             {header: in(ended(domain.PAT), s.WorkspaceID), refusal: unauthorized},
		"a revoked console session": {header: in(ended(domain.ConsoleSession), s.WorkspaceID), refusal: unauthorized},
		"a revoked publishable key": {
			header:  http.Header{"Seam-Publishable-Key": {ended(domain.PublishableKey)}},
			refusal: "401 invalid_publishable_key",
		},
		"a PAT that has expired":         {header: in(late, s.WorkspaceID), refusal: unauthorized},
		"a console session that is over": {header: in(over, s.WorkspaceID), refusal: unauthorized},
		"a console session, unsigned": {
			header:  in(forged(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType), s.WorkspaceID),
			refusal: unauthorized,
		},
		"a console session of another's": {
			header:  in(forged(jwt.SigningMethodHS256, []byte("a key of 32 bytes that is a guess")), s.WorkspaceID),
			refusal: unauthorized,
		},
		"a revoked session": {
			header:  apptest.Bearer(revoked.Token),
			refusal: "401 client_session_revoked",
		},
		"a session that is over": {header: apptest.Bearer(short.Token), refusal: "401 client_session_expired"},
		"a deleted session": {
			header:  apptest.Bearer(deleted.Token),
			refusal: "401 client_session_not_found",
		},
		"a key in another workspace":      {header: in(s.APIKey, foreign), refusal: elsewhere},
		"a PAT in another workspace":      {header: in(pat, foreign), refusal: elsewhere},
		"a console session in another":    {header: in(console, foreign), refusal: elsewhere},
		"a session in another workspace":  {header: in(jane.Token, foreign), refusal: elsewhere},
		"a PAT in no workspace there is":  {header: in(pat, uuid.NewString()), refusal: elsewhere},
		"a PAT with an invalid workspace": {header: in(pat, "*"), refusal: elsewhere},
		"a PAT in two workspaces": {
			header:  http.Header{"Authorization": {"Bearer " + pat}, "Seam-Workspace": {s.WorkspaceID, foreign}},
			refusal: "400 conflicting_credentials",
		},
		"two keys": {
			header:  http.Header{"Authorization": {"Bearer " + s.APIKey, "Bearer " + jane.Token}},
			refusal: "400 conflicting_credentials",
		},
		"two sessions": {
			header:  http.Header{"Client-Session-Token": {jane.Token, customers.Token}},
			refusal: "400 conflicting_credentials",
		},
		"two sessions in two headers": {
			header:  http.Header{"Client-Session-Token": {jane.Token}, "Seam-Client-Session-Token": {customers.Token}},
			refusal: "400 invalid_client_session_token",
		},
		"a key and a session": {
			header:  http.Header{"Authorization": {"Bearer " + s.APIKey}, "Client-Session-Token": {jane.Token}},
			refusal: "400 invalid_client_session_token",
		},
		"a key with another's after it": {
			header:  apptest.Bearer(s.APIKey + ", Bearer " + jane.Token),
			refusal: unauthorized,
		},
		"two publishable keys": {
			header:  http.Header{"Seam-Publishable-Key": {public, "seam_pk1nosuch12_abcdefghijklmnopqrstu"}},
			refusal: "400 conflicting_credentials",
		},
		"a key with a byte more":  {header: apptest.Bearer(s.APIKey + "x"), refusal: unauthorized},
		"a key with a byte less":  {header: apptest.Bearer(s.APIKey[:len(s.APIKey)-1]), refusal: unauthorized},
		"a key in the other case": {header: apptest.Bearer(strings.ToUpper(s.APIKey)), refusal: unauthorized},
		"a session with a byte more": {
			header:  apptest.Bearer(jane.Token + "x"),
			refusal: "401 client_session_not_found",
		},
		"a PAT in a workspace, in braces": {header: in(pat, "{"+foreign+"}"), refusal: elsewhere},
	}
}
