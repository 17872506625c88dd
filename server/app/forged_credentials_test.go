package app_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// forger can write to the database, and has valid credentials of one workspace. It wants to enter another one.
type forger struct {
	*testing.T
	own, other *apptest.Server
	conn       *pgx.Conn
}

func newForger(t *testing.T) *forger {
	t.Helper()
	f := &forger{T: t, own: apptest.Shared(t)}
	f.other = f.own.Workspace(t, "of another")
	var err error
	if f.conn, err = pgx.Connect(t.Context(), f.own.DatabaseURL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.conn.Close(context.WithoutCancel(t.Context())) })
	return f
}

func (f *forger) write(sql string, args ...any) {
	f.Helper()
	done, err := f.conn.Exec(f.Context(), sql, args...)
	if err != nil {
		f.Fatal(err)
	}
	if done.RowsAffected() == 0 {
		f.Fatalf("%s has written nothing", sql)
	}
}

// issue returns a valid credential of a kind for the own workspace.
func (f *forger) issue(kind domain.CredentialKind) (token string, id uuid.UUID) {
	f.Helper()
	if kind == domain.EndUser {
		c, err := f.own.App.Access.Auth.CreateClientSession(
			f.Context(),
			domain.Principal{WorkspaceID: uuid.MustParse(f.own.WorkspaceID)},
			auth.NewClientSession{},
			auth.RefuseIfTaken,
		)
		if err != nil {
			f.Fatal(err)
		}
		return c.Token, c.ID
	}
	token, c := f.own.Credential(f, auth.NewCredential{
		Kind:     kind,
		Lifetime: time.Hour,
	})
	return token, c.ID
}

// status returns the status of a request with a credential to a workspace.
func (f *forger) status(kind domain.CredentialKind, token string, to *apptest.Server) int {
	f.Helper()
	header, path, body := apptest.Bearer(token), "/devices/list", "{}"
	switch kind {
	case domain.PublishableKey:
		header, path = http.Header{"Seam-Publishable-Key": {token}}, "/client_sessions/create"
		body = fmt.Sprintf(`{"user_identifier_key":%q}`, uuid.NewString())
	case domain.PAT, domain.ConsoleSession:
		header.Set("Seam-Workspace", to.WorkspaceID)
	}
	return f.own.Send(f, http.MethodPost, path, header, body, nil).StatusCode
}

var credentialKinds = []domain.CredentialKind{
	domain.APIKey, domain.PAT, domain.ConsoleSession, domain.PublishableKey,
}

// Writing to the database makes no credential of any kind, and gives an own one neither another kind, nor another
// workspace, nor more time.
func TestForgedCredential_IsRefused(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	for _, kind := range credentialKinds {
		attacks := map[string]func(id uuid.UUID, hash []byte){
			"another workspace": func(id uuid.UUID, _ []byte) {
				f.write(
					"update credential_workspaces set workspace_id = $2 where credential_id = $1",
					id,
					f.other.WorkspaceID,
				)
			},
			"one more workspace": func(id uuid.UUID, _ []byte) {
				if kind == domain.APIKey || kind == domain.PublishableKey { // they have exactly one
					f.write("delete from credential_workspaces where credential_id = $1", id)
				}
				f.write("insert into credential_workspaces (credential_id, workspace_id) values ($1, $2)",
					id, f.other.WorkspaceID)
			},
			"the workspace of a credential of others": func(id uuid.UUID, _ []byte) {
				_, others := f.other.Credential(f, auth.NewCredential{Kind: domain.PAT})
				f.write("delete from credential_workspaces where credential_id = $1", id)
				f.write("update credential_workspaces set credential_id = $1 where credential_id = $2", id, others.ID)
			},
			"more time": func(id uuid.UUID, _ []byte) {
				f.write(
					"update credentials set expires_at = expires_at + interval '1 year' where credential_id = $1",
					id,
				)
			},
			"no end": func(id uuid.UUID, _ []byte) {
				f.write("update credentials set expires_at = null where credential_id = $1", id)
			},
			"another identifier": func(id uuid.UUID, hash []byte) {
				other := uuid.New()
				f.write("update credentials set token_hash = sha256(token_hash) where credential_id = $1", id)
				f.write(`insert into credentials (credential_id, kind, hint, token_hash, expires_at, mac)
					select $2, kind, '', $3, expires_at, mac from credentials where credential_id = $1`, id, other, hash)
				f.write("update credential_workspaces set credential_id = $2 where credential_id = $1", id, other)
			},
			"no hash": func(id uuid.UUID, _ []byte) {
				f.write("update credentials set mac = null where credential_id = $1", id)
			},
		}
		for _, as := range credentialKinds {
			if as != kind {
				attacks["as "+string(as)] = func(id uuid.UUID, _ []byte) {
					f.write("update credentials set kind = $2 where credential_id = $1", id, string(as))
				}
			}
		}
		for name, attack := range attacks {
			token, id := f.issue(kind)
			if got := f.status(kind, token, f.own); got != http.StatusOK {
				t.Fatalf("%s: a valid credential gets %d", kind, got)
			}
			hash := sha256.Sum256([]byte(token))
			attack(id, hash[:])
			to := f.own
			if strings.Contains(name, "workspace") {
				to = f.other
			}
			if got := f.status(kind, token, to); got != http.StatusUnauthorized {
				t.Errorf("%s, %s: status %d, want 401", kind, name, got)
			}
		}
	}
}

// Writing to the database widens no role.
func TestForgedRole_IsRefused(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	for _, kind := range []domain.CredentialKind{domain.APIKey, domain.PAT, domain.ConsoleSession} {
		for _, role := range domain.Roles {
			for _, forged := range domain.Roles {
				token, c := f.own.Credential(f, auth.NewCredential{Kind: kind, Role: role})
				want := http.StatusOK
				if forged != role {
					f.write("update credentials set role = $2 where credential_id = $1", c.ID, string(forged))
					want = http.StatusUnauthorized
				}
				if got := f.status(kind, token, f.own); got != want {
					t.Errorf("%s of a %s with the role %s: status %d, want %d", kind, role, forged, got, want)
				}
			}
		}
	}
}

// A token that the forger has made up is no credential, and replaces no token of others.
func TestMadeUpToken_IsRefused(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	for kind, prefix := range map[domain.CredentialKind]string{
		domain.APIKey: "seam_", domain.PAT: "seam_at1", domain.PublishableKey: "seam_pk1", domain.EndUser: auth.SessionPrefix + "1",
	} {
		token := prefix + strings.ReplaceAll(uuid.NewString(), "-", "_")
		hash := sha256.Sum256([]byte(token))
		_, victim := f.issue(kind)
		table, key := "credentials", "credential_id"
		if kind == domain.EndUser {
			table, key = "client_sessions", "client_session_id"
		}
		for _, withHash := range []string{"mac", "null"} {
			id := uuid.New()
			if kind == domain.EndUser {
				f.write(
					`insert into client_sessions (client_session_id, workspace_id, token_hash, token_sealed, expires_at, mac)
					select $2, workspace_id, $3, token_sealed, expires_at, `+withHash+`
					from client_sessions where client_session_id = $1`,
					victim,
					id,
					hash[:],
				)
			} else {
				f.write(`insert into credentials (credential_id, kind, hint, token_hash, expires_at, public_token, mac)
					select $2, kind, hint, $3, expires_at, public_token, `+withHash+`
					from credentials where credential_id = $1`, victim, id, hash[:])
				f.write(`insert into credential_workspaces (credential_id, workspace_id, mac)
					select $2, workspace_id, `+withHash+` from credential_workspaces where credential_id = $1`, victim, id)
			}
			if got := f.status(kind, token, f.own); got != http.StatusUnauthorized {
				t.Errorf("%s, a row with the hash %s: status %d, want 401", kind, withHash, got)
			}
			f.write("delete from "+table+" where "+key+" = $1", id)
		}
		f.write("update "+table+" set token_hash = $2 where "+key+" = $1", victim, hash[:])
		if got := f.status(kind, token, f.own); got != http.StatusUnauthorized {
			t.Errorf("%s, in place of another's: status %d, want 401", kind, got)
		}
		f.write("delete from "+table+" where "+key+" = $1", victim) // lists fail while it is there
	}
}

// A row of a client session that was changed is no credential. Its token is not given to the bearer of a publishable
// key, which is public.
func TestForgedClientSession_IsRefused(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	public, _ := f.issue(domain.PublishableKey)
	for name, change := range map[string]string{
		"another workspace": "workspace_id = (select workspace_id from workspaces where name = 'of another' limit 1)",
		"a customer":        "customer_key = 'a customer'",
		"an end user":       "user_identifier_key = 'forged'",
		"more time":         "expires_at = expires_at + interval '1 year'",
		"no hash":           "mac = null",
	} {
		token, id := f.issue(domain.EndUser)
		if got := f.status(domain.EndUser, token, f.own); got != http.StatusOK {
			t.Fatalf("a valid session gets %d", got)
		}
		f.write("update client_sessions set "+change+" where client_session_id = $1", id)
		if got := f.status(domain.EndUser, token, f.own); got != http.StatusUnauthorized {
			t.Errorf("%s: status %d, want 401", name, got)
		}
		if name == "an end user" {
			res := f.own.Send(t, http.MethodPost, "/client_sessions/get_or_create",
				http.Header{"Seam-Publishable-Key": {public}}, `{"user_identifier_key":"forged"}`, nil)
			if res.StatusCode == http.StatusOK {
				t.Error("a publishable key gets the token of a session that was given another end user")
			}
		}
		f.write("delete from client_sessions where client_session_id = $1", id)
	}
}

// A personal access token lists the workspaces that the server has granted.
func TestForgedWorkspace_IsNotListed(t *testing.T) {
	t.Parallel()
	f := newForger(t)
	token, id := f.issue(domain.PAT)
	f.write(`insert into credential_workspaces (credential_id, workspace_id, mac)
		select $1, $2, mac from credential_workspaces where credential_id = $1`, id, f.other.WorkspaceID)
	var out struct {
		Workspaces []struct {
			ID string `json:"workspace_id"`
		}
	}
	f.own.Send(t, http.MethodPost, "/workspaces/list", apptest.Bearer(token), "{}", &out)
	if len(out.Workspaces) != 1 || out.Workspaces[0].ID != f.own.WorkspaceID {
		t.Errorf("listed are %v, want only %s", out.Workspaces, f.own.WorkspaceID)
	}
}
