package operator

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func TestRoleClaim_GrantsRoles(t *testing.T) {
	t.Parallel()
	home := uuid.MustParse("01a2245d-45f2-79f9-8acb-a4298f48fecf")
	type roles = map[uuid.UUID]domain.Role
	for name, c := range map[string]struct {
		text   string
		claims map[string]any
		want   roles
	}{
		"list":     {"groups=admin:ops,viewer:staff", map[string]any{"groups": []any{"ops", 3}}, roles{uuid.Nil: "admin"}},
		"text":     {"role=operator:desk", map[string]any{"role": "desk"}, roles{uuid.Nil: "operator"}},
		"none":     {"groups=admin:ops", map[string]any{"groups": []any{"staff"}}, roles{}},
		"part":     {"groups=admin:ops", map[string]any{"groups": "opsx"}, roles{}},
		"no claim": {"groups=admin:ops", nil, roles{}},
		"everyone": {"groups=admin:ops,viewer:*", nil, roles{uuid.Nil: "viewer"}},
		"strongest": {
			"groups=viewer:*,admin:ops,operator:staff",
			map[string]any{"groups": []any{"staff", "ops"}},
			roles{uuid.Nil: "admin"},
		},
		"nested": {
			"realm_access.roles=admin:ops",
			map[string]any{"realm_access": map[string]any{"roles": []any{"ops"}}},
			roles{uuid.Nil: "admin"},
		},
		"with dots": {
			"https://example.com/roles=admin:ops",
			map[string]any{"https://example.com/roles": "ops"},
			roles{uuid.Nil: "admin"},
		},
		"workspace": {
			"groups=viewer:*,operator@" + home.String() + ":desk",
			map[string]any{"groups": "desk"},
			roles{uuid.Nil: "viewer", home: "operator"},
		},
		"value with colon": {"groups=admin:urn:ops", map[string]any{"groups": "urn:ops"}, roles{uuid.Nil: "admin"}},
		"off":              {"", map[string]any{"groups": "ops"}, roles{}},
	} {
		claim, err := ParseRoleClaim(c.text)
		if got := claim.roles(c.claims); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, c.want)
		}
	}
}

func TestParseRoleClaim_Refuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"groups":           "name of a claim",
		"=admin:ops":       "name of a claim",
		"groups=":          "not a role and a value",
		"groups=admin":     "not a role and a value",
		"groups=admin:":    "not a role and a value",
		"groups=owner:ops": "is not a role",
		"groups=admin@x:y": "id of a workspace",
		"groups=admin@00000000-0000-0000-0000-000000000000:y": "id of a workspace",
	} {
		if _, err := ParseRoleClaim(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestRoleIn_TakesStronger(t *testing.T) {
	t.Parallel()
	home, other := uuid.New(), uuid.New()
	for _, c := range []struct {
		everywhere, home           domain.Role
		inHome, inOther, inGeneral domain.Role
	}{
		{"", "", "", "", ""},
		{"viewer", "", "viewer", "viewer", "viewer"},
		{"viewer", "admin", "admin", "viewer", "viewer"},
		{"admin", "viewer", "admin", "admin", "admin"},
		{"", "operator", "operator", "", ""},
	} {
		o := Operator{Roles: map[uuid.UUID]domain.Role{}}
		if c.everywhere != "" {
			o.Roles[uuid.Nil] = c.everywhere
		}
		if c.home != "" {
			o.Roles[home] = c.home
		}
		if o.RoleIn(home) != c.inHome || o.RoleIn(other) != c.inOther || o.RoleIn(uuid.Nil) != c.inGeneral {
			t.Errorf("%+v: %q %q %q", c, o.RoleIn(home), o.RoleIn(other), o.RoleIn(uuid.Nil))
		}
		decoded, err := decodeRoles(encodeRoles(o.Roles))
		if err != nil || !maps.Equal(decoded, o.Roles) {
			t.Errorf("%v is stored as %s: %v", o.Roles, encodeRoles(o.Roles), err)
		}
	}
}
