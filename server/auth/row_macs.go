package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A credential is a row with a keyed hash of what it is and where it is valid. So writing to the database makes or
// widens no credential: the token is looked up by its SHA-256, and then the hash is checked.

// boundCredential is what the hash of a credential covers.
type boundCredential struct {
	id        uuid.UUID
	kind      domain.CredentialKind
	tokenHash []byte
	expiresAt *time.Time
	role      domain.Role
}

func (b boundCredential) hashed() (scope string, content []byte) {
	content = fmt.Appendf(nil, "%s|%x|%s", b.kind, b.tokenHash, micros(b.expiresAt))
	if b.role != domain.RoleAdmin { // credentials of versions without roles have none in their hash
		content = fmt.Appendf(content, "|%s", b.role)
	}
	return "credentials.mac/" + b.id.String(), content
}

// hashedWorkspace is what the hash of a workspace of a credential covers.
func hashedWorkspace(credential, workspace uuid.UUID) (scope string, content []byte) {
	return "credential_workspaces.mac/" + credential.String(), []byte(workspace.String())
}

// boundSession is what the hash of a client session covers. user_identifier_key is the name by which a publishable key
// gets the token.
type boundSession struct {
	id, workspace     uuid.UUID
	tokenHash         []byte
	userIdentifierKey *string
	customerKey       *string
	expiresAt         time.Time
}

func (b boundSession) hashed() (scope string, content []byte) {
	return "client_sessions.mac/" + b.id.String(), fmt.Appendf(nil, "%s|%x|%s|%q|%q",
		b.workspace, b.tokenHash, micros(&b.expiresAt), domain.Value(b.userIdentifierKey), domain.Value(b.customerKey))
}

func boundSessionOf(r dbsqlc.ClientSession) boundSession {
	return boundSession{
		id:                r.ClientSessionID,
		workspace:         r.WorkspaceID,
		tokenHash:         r.TokenHash,
		userIdentifierKey: r.UserIdentifierKey,
		customerKey:       r.CustomerKey,
		expiresAt:         r.ExpiresAt,
	}
}

// micros formats a time as precisely as the database stores it.
func micros(t *time.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprint(t.UnixMicro())
}

// GrantWorkspace lets a credential act in a workspace.
func (s *Service) GrantWorkspace(ctx context.Context, tx store.Tx, credential, workspace uuid.UUID) error {
	return tx.InsertCredentialWorkspace(ctx, dbsqlc.InsertCredentialWorkspaceParams{
		CredentialID: credential,
		WorkspaceID:  workspace,
		Mac:          s.keys.MAC(hashedWorkspace(credential, workspace)),
	})
}

// IsGranted reports whether mac is the hash of a workspace that the server has granted to a credential.
func (s *Service) IsGranted(credential, workspace uuid.UUID, mac []byte) bool {
	return s.keys.Match(mac, s.keys.MAC(hashedWorkspace(credential, workspace)))
}

// BindCredentials adds the hashes to credentials of a version of the server that had none. Call it only right after the
// migration that adds the columns: a later row without a hash was not written by a server.
func BindCredentials(ctx context.Context, db *store.DB, keys *encryption.Keys) error {
	err := db.InTx(ctx, func(tx store.Tx) error {
		credentials, err := tx.ListCredentialsWithoutMAC(ctx)
		for _, r := range credentials {
			if err != nil {
				return err
			}
			b := boundCredential{
				r.CredentialID,
				domain.CredentialKind(r.Kind),
				r.TokenHash,
				r.ExpiresAt,
				domain.Role(r.Role),
			}
			err = tx.SetCredentialMAC(
				ctx,
				dbsqlc.SetCredentialMACParams{CredentialID: r.CredentialID, Mac: keys.MAC(b.hashed())},
			)
		}
		if err != nil {
			return err
		}
		workspaces, err := tx.ListCredentialWorkspacesWithoutMAC(ctx)
		for _, r := range workspaces {
			if err != nil {
				return err
			}
			err = tx.SetCredentialWorkspaceMAC(ctx, dbsqlc.SetCredentialWorkspaceMACParams{
				CredentialID: r.CredentialID,
				WorkspaceID:  r.WorkspaceID,
				Mac:          keys.MAC(hashedWorkspace(r.CredentialID, r.WorkspaceID)),
			})
		}
		if err != nil {
			return err
		}
		sessions, err := tx.ListClientSessionsWithoutMAC(ctx)
		for _, r := range sessions {
			if err != nil {
				return err
			}
			err = tx.SetClientSessionMAC(ctx, dbsqlc.SetClientSessionMACParams{
				ClientSessionID: r.ClientSessionID,
				Mac:             keys.MAC(boundSessionOf(r).hashed()),
			})
		}
		return err
	})
	return domain.Wrap(err, "add keyed hashes to the credentials")
}
