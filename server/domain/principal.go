package domain

import (
	"slices"

	"github.com/google/uuid"
)

// CredentialKind is the kind of a credential. Existing clients of this API require the token prefixes.
type CredentialKind string

// The kinds of credentials.
const (
	APIKey         CredentialKind = "api_key"         // seam_<8>_<24>, bound to one workspace
	PAT            CredentialKind = "pat"             // seam_at1<8>_<24>, for the workspaces that it may enter
	ConsoleSession CredentialKind = "console_session" // a JSON Web Token signed by the server
	PublishableKey CredentialKind = "publishable_key" // seam_pk1<8>_<24>, public, bound to one workspace
	EndUser        CredentialKind = "client_session"  // seam_cst1<8>_<24>, of an end user: see ClientSession
	// OperatorAccount is a person who has signed in to the console. CredentialID is the identifier of the operator.
	OperatorAccount CredentialKind = "operator"
)

// Role is what a key may do in its workspaces. The zero value allows nothing.
type Role string

// The roles, each of which may also do what the next one may.
const (
	RoleAdmin    Role = "admin"
	RoleOperator Role = "operator" // daily work: codes, doors, people, and thermostats
	RoleViewer   Role = "viewer"   // reads, except PINs
)

// Roles are all roles, from the strongest.
var Roles = []Role{RoleAdmin, RoleOperator, RoleViewer}

// Includes reports whether a role may do what needs another role.
func (r Role) Includes(needed Role) bool {
	has := slices.Index(Roles, r)
	return has >= 0 && has <= slices.Index(Roles, needed)
}

// StrongerRole returns the role that includes the other one. An empty role is the weakest.
func StrongerRole(a, b Role) Role {
	if b == "" || a.Includes(b) {
		return a
	}
	return b
}

// Principal is the caller of a request: a credential, and the workspace that it acts in.
type Principal struct {
	WorkspaceID  uuid.UUID // zero where the request names none
	CredentialID uuid.UUID
	Kind         CredentialKind
	Name         string // of the credential; client sessions have none
	Role         Role   // of the credential; RoleAdmin for the kinds that have no roles
	Suspended    bool   // whether the workspace is suspended
	// Scope are the accounts that the caller can see, with everything that belongs to them, and single devices that it
	// can see without their accounts. nil means the whole workspace.
	Scope    []uuid.UUID
	Customer string // the customer key of a client session that sees a customer's accounts
	// Unclaimed is true for a client session that was created with a publishable key and reaches nothing.
	Unclaimed bool
}

// IsPublic reports whether anyone could have got the credential: it is a publishable key, or a session that was created
// with one and reaches nothing. What such callers store is limited.
func (p Principal) IsPublic() bool { return p.Kind == PublishableKey || p.Unclaimed }

// CanReadPINs reports whether the caller may read the PINs of the codes in its scope. Client sessions and the server
// itself have no role, and can.
func (p Principal) CanReadPINs() bool { return p.Role != RoleViewer }

// CanSee reports whether the caller can see what belongs to the account. Everything else counts as absent.
func (p Principal) CanSee(account uuid.UUID) bool {
	return p.Scope == nil || slices.Contains(p.Scope, account)
}

// CanSeeDevice reports whether the caller can see a device of an account, and what belongs to the device.
func (p Principal) CanSeeDevice(account, device uuid.UUID) bool {
	return p.CanSee(account) || p.CanSee(device)
}
