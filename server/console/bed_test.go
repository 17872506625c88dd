package console_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// bed is a server with a console, and operators that are signed in.
type bed struct {
	*apptest.Server
	console string // URL

	mu       sync.Mutex
	sessions map[domain.Role]session
}

// session is the token and the secret of an operator's session.
type session struct{ token, secret string }

func newBed(t *testing.T, opts ...apptest.Option) *bed {
	t.Helper()
	s := apptest.Start(t, opts...)
	return &bed{Server: s, console: s.URL, sessions: map[domain.Role]session{}}
}

// page returns the URL of a page of the workspace.
func (b *bed) page(path string) string {
	return b.console + "/console/w/" + b.WorkspaceID + path
}

// signIn gives a browser the session of a role.
func (b *bed) signIn(t *testing.T, role domain.Role) browser.Step {
	t.Helper()
	token, _ := b.session(t, role)
	return browser.Cookie(b.console, "deviceaccess", token)
}

// none is the role of operators without a role in the workspace: they are administrators of another one.
const none domain.Role = "none"

// session returns the token and the secret of a session of a role. Without a role, they are those of no session.
func (b *bed) session(t *testing.T, role domain.Role) (token, secret string) {
	t.Helper()
	if role == "" {
		return "", ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s, found := b.sessions[role]
	if !found {
		s = b.newSession(t, role)
		b.sessions[role] = s
	}
	return s.token, s.secret
}

// newSession creates an operator and signs it in.
func (b *bed) newSession(t *testing.T, role domain.Role) session {
	t.Helper()
	n := operator.NewOperator{Email: string(role) + "@example.com", Roles: map[uuid.UUID]domain.Role{uuid.Nil: role}}
	if role == none {
		other, err := b.App.Access.Accounts.CreateWorkspace(t.Context(), "Other", "Other", false)
		if err != nil {
			t.Fatal(err)
		}
		n.Roles = map[uuid.UUID]domain.Role{other.ID: domain.RoleAdmin}
	}
	return b.signUp(t, n)
}

// signUp creates an operator and signs it in.
func (b *bed) signUp(t *testing.T, n operator.NewOperator) session {
	t.Helper()
	operators := b.App.Access.Operators
	_, link, err := operators.CreateOperator(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	token, err := operators.AcceptLink(
		t.Context(),
		link,
		operator.Acceptance{Password: uuid.NewString()},
		operator.Client{},
	)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := operators.Session(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return session{token, opened.CSRF}
}
