package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/console"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// fakeOperators knows one operator per role. The token of a session is the role.
type fakeOperators struct{}

func (fakeOperators) Session(_ context.Context, token string) (operator.Session, error) {
	return operator.Session{
		ID:         uuid.New(),
		CSRF:       "csrf-of-" + token,
		SignedInAt: time.Now(),
		Operator: operator.Operator{
			ID:    uuid.New(),
			Email: token + "@example.com",
			Roles: map[uuid.UUID]domain.Role{uuid.Nil: domain.Role(token)},
		},
	}, nil
}

func (fakeOperators) Principal(s operator.Session, workspace uuid.UUID) (domain.Principal, bool) {
	return domain.Principal{
		WorkspaceID:  workspace,
		CredentialID: s.Operator.ID,
		Kind:         "operator",
		Role:         s.Operator.RoleIn(workspace),
		Name:         s.Operator.Email,
	}, true
}

// bed is a console in front of a server.
type bed struct {
	*apptest.Server
	console string // URL
}

func newBed(t *testing.T, opts ...apptest.Option) *bed {
	t.Helper()
	s := apptest.Start(t, opts...)
	c := httptest.NewServer(
		console.New(console.Options{
			Access:       s.App.Access,
			ACS:          s.App.ACS,
			Operators:    fakeOperators{},
			Settings:     testSettings,
			ResetSandbox: s.App.Sandbox.Reset,
		}),
	)
	t.Cleanup(c.Close)
	return &bed{s, c.URL}
}

// page returns the URL of a page of the workspace.
func (b *bed) page(path string) string {
	return b.console + "/console/w/" + b.WorkspaceID + path
}

// signIn gives a browser the session of a role.
func (b *bed) signIn(role domain.Role) browser.Step {
	return browser.Cookie(b.console, "deviceaccess", string(role))
}

// get requests a page as a role and returns the status.
func (b *bed) get(t *testing.T, role domain.Role, url string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "deviceaccess", Value: string(role)})
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
