package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// RoleClaim says which roles a claim of an OpenID Connect provider grants.
type RoleClaim struct {
	// Claim is the name of the claim, such as groups. Dots separate the names of nested objects.
	Claim  string
	Grants []RoleGrant
}

// RoleGrant grants a role to everyone whose claim has a value.
type RoleGrant struct {
	Role      domain.Role
	Workspace uuid.UUID // uuid.Nil: every workspace
	Value     string    // *: everyone who signs in
}

// anyValue is the value of a grant to everyone.
const anyValue = "*"

// ParseRoleClaim parses a claim with its grants, such as groups=admin:ops,viewer:*. A role can name a workspace:
// operator@<workspace id>:staff. An empty text grants nothing.
func ParseRoleClaim(text string) (c RoleClaim, err error) {
	if text == "" {
		return c, nil
	}
	claim, grants, found := strings.Cut(text, "=")
	if c.Claim = strings.TrimSpace(claim); !found || c.Claim == "" {
		return RoleClaim{}, fmt.Errorf(
			"%q does not start with the name of a claim: write groups=admin:ops,viewer:*",
			text,
		)
	}
	for part := range strings.SplitSeq(grants, ",") {
		role, value, found := strings.Cut(strings.TrimSpace(part), ":")
		role, workspace, inWorkspace := strings.Cut(role, "@")
		g := RoleGrant{Role: domain.Role(role), Value: value}
		if !found || value == "" {
			return RoleClaim{}, fmt.Errorf("%q is not a role and a value of the claim: write admin:ops", part)
		}
		if !slices.Contains(domain.Roles, g.Role) {
			return RoleClaim{}, fmt.Errorf("%q is not a role: write admin, operator, or viewer", role)
		}
		if inWorkspace {
			if g.Workspace, err = uuid.Parse(workspace); err != nil || g.Workspace == uuid.Nil {
				return RoleClaim{}, fmt.Errorf("%q is not the id of a workspace", workspace)
			}
		}
		c.Grants = append(c.Grants, g)
	}
	return c, nil
}

// roles returns the roles that the claims of a person grant.
func (c RoleClaim) roles(claims map[string]any) map[uuid.UUID]domain.Role {
	values := textsOf(findClaim(claims, c.Claim))
	out := map[uuid.UUID]domain.Role{}
	for _, g := range c.Grants {
		if g.Value == anyValue || slices.Contains(values, g.Value) {
			out[g.Workspace] = domain.StrongerRole(out[g.Workspace], g.Role)
		}
	}
	return out
}

// findClaim returns the value of a claim; nil: none.
func findClaim(claims map[string]any, name string) any {
	if value, ok := claims[name]; ok {
		return value
	}
	outer, inner, nested := strings.Cut(name, ".")
	if below, ok := claims[outer].(map[string]any); nested && ok {
		return findClaim(below, inner)
	}
	return nil
}

// textsOf returns the texts of a claim, which is a text or a list.
func textsOf(value any) (texts []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, one := range value {
			if text, ok := one.(string); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
