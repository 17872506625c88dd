// Package operator knows the people who sign in to the console: their roles, how they sign in, and their sessions. It
// knows no pages, and no devices.
package operator

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Operator is a person who may sign in to the console.
type Operator struct {
	ID    uuid.UUID
	Email string
	Name  string
	// Roles are the roles by workspace. uuid.Nil stands for every workspace.
	Roles        map[uuid.UUID]domain.Role
	HasPassword  bool
	HasTOTP      bool
	Passkeys     int    // the number of passkeys
	Issuer       string // the OpenID Connect provider; empty: none
	CreatedAt    time.Time
	DisabledAt   *time.Time
	LastSignInAt *time.Time
}

// RoleIn returns the role in a workspace: the stronger one of the workspace's and of that for every workspace. uuid.Nil
// asks for the latter. An empty role allows nothing.
func (o Operator) RoleIn(workspace uuid.UUID) domain.Role {
	return domain.StrongerRole(o.Roles[workspace], o.Roles[uuid.Nil])
}

// IsAdminOfAll reports whether the operator is an administrator of every workspace.
func (o Operator) IsAdminOfAll() bool { return o.Roles[uuid.Nil] == domain.RoleAdmin }

// CanSignIn reports whether the operator is enabled and has a way to sign in. An invited person has none at first.
func (o Operator) CanSignIn() bool {
	return o.DisabledAt == nil && (o.HasPassword || o.Passkeys > 0 || o.Issuer != "")
}

// everywhere is the key of the role for every workspace in the database.
const everywhere = "*"

// encodeRoles returns roles as they are stored.
func encodeRoles(roles map[uuid.UUID]domain.Role) []byte {
	out := map[string]domain.Role{}
	for workspace, role := range roles {
		if workspace == uuid.Nil {
			out[everywhere] = role
		} else {
			out[workspace.String()] = role
		}
	}
	return domain.MustJSON(out) // sorts the keys
}

// decodeRoles is the inverse of encodeRoles.
func decodeRoles(stored []byte) (map[uuid.UUID]domain.Role, error) {
	var in map[string]domain.Role
	if err := json.Unmarshal(stored, &in); err != nil {
		return nil, fmt.Errorf("read the roles of an operator: %w", err)
	}
	out := map[uuid.UUID]domain.Role{}
	for key, role := range in {
		workspace := uuid.Nil
		if key != everywhere {
			var err error
			if workspace, err = uuid.Parse(key); err != nil {
				return nil, fmt.Errorf("read the roles of an operator: %w", err)
			}
		}
		out[workspace] = role
	}
	return out, nil
}

// checkRoles fails with Invalid for unknown roles, and where there are none.
func checkRoles(roles map[uuid.UUID]domain.Role) error {
	if len(roles) == 0 {
		return domain.Invalidf("roles", "Give the operator a role in at least one workspace.")
	}
	for role := range maps.Values(roles) {
		if !slices.Contains(domain.Roles, role) {
			return domain.Invalidf("roles", "A role is admin, operator, or viewer.")
		}
	}
	return nil
}

// maxEmail is the maximum length of an email address, by RFC 5321.
const maxEmail = 254

// checkEmail fails with Invalid unless text is an email address.
func checkEmail(text string) error {
	if err := domain.CheckText("email", text); err != nil {
		return err
	}
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || len(text) > maxEmail || strings.ContainsAny(text, "<>\"") {
		return domain.Invalidf("email", "Enter an email address, such as jane@example.com.")
	}
	return nil
}
