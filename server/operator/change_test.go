package operator_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

func TestCreateOperator_Refuses(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("jane@example.com", domain.RoleAdmin)
	good := operator.NewOperator{Email: "joe@example.com", Roles: roles(domain.RoleViewer), Password: password}
	for name, c := range map[string]struct {
		change func(*operator.NewOperator)
		want   string
	}{
		"known email":      {func(n *operator.NewOperator) { n.Email = "JANE@example.com" }, "operator_exists"},
		"no email":         {func(n *operator.NewOperator) { n.Email = "" }, "invalid_input"},
		"bad email":        {func(n *operator.NewOperator) { n.Email = "joe" }, "invalid_input"},
		"email with name":  {func(n *operator.NewOperator) { n.Email = "Joe <joe@example.com>" }, "invalid_input"},
		"no role":          {func(n *operator.NewOperator) { n.Roles = nil }, "invalid_input"},
		"unknown role":     {func(n *operator.NewOperator) { n.Roles = roles("owner") }, "invalid_input"},
		"short password":   {func(n *operator.NewOperator) { n.Password = "elevenchars" }, "invalid_input"},
		"long password":    {func(n *operator.NewOperator) { n.Password = strings.Repeat("x", 257) }, "invalid_input"},
		"name with a line": {func(n *operator.NewOperator) { n.Name = "a\nb" }, "invalid_input"},
	} {
		n := good
		c.change(&n)
		_, _, err := b.CreateOperator(t.Context(), n)
		fails(t, name, err, c.want)
	}
	if all, err := b.ListOperators(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d operators, %v", len(all), err)
	}
}

// Nothing leaves the server without an administrator of every workspace who can sign in.
func TestLastAdmin_Stays(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	admin := b.create("jane@example.com", domain.RoleAdmin)
	b.create("viewer@example.com", domain.RoleViewer)
	if _, _, err := b.CreateOperator(
		t.Context(),
		operator.NewOperator{Email: "invited@example.com", Roles: roles(domain.RoleAdmin)},
	); err != nil {
		t.Fatal(err)
	}
	disabled := b.create("disabled@example.com", domain.RoleAdmin)
	if _, err := b.SetDisabled(t.Context(), disabled.ID, true); err != nil {
		t.Fatal(err)
	}
	tries := map[string]func() error{
		"disable": func() error { _, err := b.SetDisabled(t.Context(), admin.ID, true); return err },
		"demote":  func() error { _, err := b.SetRoles(t.Context(), admin.ID, roles(domain.RoleOperator)); return err },
		"demote to one workspace": func() error {
			_, err := b.SetRoles(t.Context(), admin.ID, map[uuid.UUID]domain.Role{uuid.New(): domain.RoleAdmin})
			return err
		},
		"delete": func() error { return b.DeleteOperator(t.Context(), admin.ID) },
	}
	for name, try := range tries {
		fails(t, name, try(), "last_admin")
	}
	b.signIn("jane@example.com")
	if _, err := b.SetDisabled(t.Context(), disabled.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := tries["delete"](); err != nil {
		t.Error(err)
	}
}

func TestSetDisabled_EndsSessions(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("admin@example.com", domain.RoleAdmin)
	o := b.create("jane@example.com", domain.RoleViewer)
	token, _ := b.signIn("jane@example.com")
	if _, err := b.SetDisabled(t.Context(), o.ID, true); err != nil {
		t.Fatal(err)
	}
	_, err := b.Session(t.Context(), token)
	fails(t, "session", err, "session_not_found")
	_, _, err = b.SignIn(t.Context(), "jane@example.com", password, client)
	fails(t, "sign in", err, "sign_in_failed")
	if _, err := b.SetDisabled(t.Context(), o.ID, false); err != nil {
		t.Fatal(err)
	}
	b.signIn("jane@example.com")
}

func TestSetRoles_AppliesToSessions(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("admin@example.com", domain.RoleAdmin)
	o := b.create("jane@example.com", domain.RoleViewer)
	token, _ := b.signIn("jane@example.com")
	own, other := uuid.New(), uuid.New()
	if _, err := b.SetRoles(
		t.Context(),
		o.ID,
		map[uuid.UUID]domain.Role{own: domain.RoleOperator},
	); err != nil {
		t.Fatal(err)
	}
	s := b.session(token)
	if p, ok := b.Principal(s, own); !ok || p.Role != domain.RoleOperator {
		t.Errorf("in its workspace: %+v %v", p, ok)
	}
	for name, workspace := range map[string]uuid.UUID{"another": other, "all": uuid.Nil} {
		if p, ok := b.Principal(s, workspace); ok {
			t.Errorf("in %s: %+v", name, p)
		}
	}
	_, err := b.SetRoles(t.Context(), uuid.New(), roles(domain.RoleAdmin))
	fails(t, "unknown operator", err, "operator_not_found")
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("jane@example.com", domain.RoleAdmin)
	other, _ := b.signIn("jane@example.com")
	token, s := b.signIn("jane@example.com")
	fails(t, "wrong", b.ChangePassword(t.Context(), s, "wrong password", "another long password"), "sign_in_failed")
	fails(t, "short", b.ChangePassword(t.Context(), s, password, "short"), "invalid_input")
	if err := b.ChangePassword(t.Context(), s, password, "another long password"); err != nil {
		t.Fatal(err)
	}
	b.session(token)
	_, err := b.Session(t.Context(), other)
	fails(t, "another session", err, "session_not_found")
	_, _, err = b.SignIn(t.Context(), "jane@example.com", password, client)
	fails(t, "old password", err, "sign_in_failed")
}

func TestFirstRunLink_CreatesOneAdmin(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	old, err := b.FirstRunLink(t.Context())
	if err != nil || old == "" {
		t.Fatal(err)
	}
	token, err := b.FirstRunLink(t.Context())
	if err != nil || token == "" || token == old {
		t.Fatal(err)
	}
	a := operator.Acceptance{Email: "jane@example.com", Name: "Jane", Password: password}
	for name, try := range map[string]string{"replaced": old, "unknown": "x", "empty": ""} {
		_, err := b.AcceptLink(t.Context(), try, a, client)
		fails(t, name, err, "link_not_found")
	}
	for name, bad := range map[string]operator.Acceptance{
		"email":    {Email: "jane", Password: password},
		"password": {Email: "jane@example.com", Password: "short"},
	} {
		_, err := b.AcceptLink(t.Context(), token, bad, client)
		fails(t, name, err, "invalid_input")
	}
	session, err := b.AcceptLink(t.Context(), token, a, client)
	if err != nil {
		t.Fatal(err)
	}
	if s := b.session(
		session,
	); !s.Operator.IsAdminOfAll() || s.Operator.Email != a.Email ||
		s.Method != operator.ByLink {
		t.Errorf("%+v", s)
	}
	_, err = b.AcceptLink(t.Context(), token, operator.Acceptance{Email: "joe@example.com", Password: password}, client)
	fails(t, "used", err, "link_not_found")
	if token, err := b.FirstRunLink(t.Context()); err != nil || token != "" {
		t.Errorf("a link although there is an operator: %v", err)
	}
}

func TestFirstRunLink_Expires(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	token, err := b.FirstRunLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.pass(operator.SetupLifetime)
	_, err = b.OpenLink(t.Context(), token)
	fails(t, "old link", err, "link_not_found")
	if err := b.DropExpired(t.Context()); err != nil || b.count("select count(*) from operator_links") != 0 {
		t.Errorf("expired links stay: %v", err)
	}
}

func TestCreateFirst_OnlyWithoutOperators(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	link, err := b.FirstRunLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, email := range []string{"jane@example.com", "joe@example.com"} {
		if created, err := b.CreateFirst(t.Context(), email, password); err != nil || created != (i == 0) {
			t.Errorf("%s: %v %v", email, created, err)
		}
	}
	_, err = b.OpenLink(t.Context(), link)
	fails(t, "link of before", err, "link_not_found")
	b.signIn("jane@example.com")
}

func TestInvitation_SetsPasswordOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("admin@example.com", domain.RoleAdmin)
	o, link, err := b.CreateOperator(
		t.Context(),
		operator.NewOperator{Email: "jane@example.com", Name: "J", Roles: roles(domain.RoleViewer)},
	)
	if err != nil || o.CanSignIn() {
		t.Fatalf("%+v %v", o, err)
	}
	opened, err := b.OpenLink(t.Context(), link)
	if err != nil || opened.Email != "jane@example.com" || opened.Name != "J" || opened.Purpose != operator.Invitation {
		t.Fatalf("%+v %v", opened, err)
	}
	session, err := b.AcceptLink(
		t.Context(),
		link,
		operator.Acceptance{Email: "ignored@example.com", Name: "Jane", Password: password},
		client,
	)
	if err != nil {
		t.Fatal(err)
	}
	if s := b.session(session); s.Operator.Email != "jane@example.com" || s.Operator.Name != "Jane" {
		t.Errorf("%+v", s.Operator)
	}
	_, err = b.AcceptLink(t.Context(), link, operator.Acceptance{Password: "another long password"}, client)
	fails(t, "used link", err, "link_not_found")
	b.signIn("jane@example.com")
}

func TestResetOperator_RemovesEverything(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	o := b.create("jane@example.com", domain.RoleAdmin)
	token, _ := b.signIn("jane@example.com")
	b.withTOTP(o)
	link, err := b.ResetOperator(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Session(t.Context(), token)
	fails(t, "session", err, "session_not_found")
	_, _, err = b.SignIn(t.Context(), "jane@example.com", password, client)
	fails(t, "old password", err, "sign_in_failed")
	again, err := b.ResetOperator(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.AcceptLink(t.Context(), link, operator.Acceptance{Password: password}, client)
	fails(t, "replaced link", err, "link_not_found")
	if _, err = b.AcceptLink(t.Context(), again, operator.Acceptance{Password: password}, client); err != nil {
		t.Fatal(err)
	}
	b.signIn("jane@example.com")
}

// An operator who changes how it signs in, or signs in at the provider, needs no earlier link. A thief of the link must
// not have a way in.
func TestLinks_EndWithNewWayIn(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := i.at("")
	b.create("admin@example.com", domain.RoleAdmin)
	for name, use := range map[string]func(o operator.Operator, link string){
		"password": func(o operator.Operator, link string) {
			token, err := b.AcceptLink(t.Context(), link, operator.Acceptance{Password: password}, client)
			if err != nil {
				t.Fatal(err)
			}
			s := b.session(token)
			b.relink(o)
			if err := b.ChangePassword(t.Context(), s, password, "another long password"); err != nil {
				t.Fatal(err)
			}
		},
		"codes":   func(o operator.Operator, _ string) { b.withTOTP(o) },
		"passkey": func(o operator.Operator, _ string) { b.withPasskey(o) },
		"provider": func(o operator.Operator, _ string) {
			i.person("1", o.Email, true)
			if _, err := i.signIn(b); err != nil {
				t.Fatal(err)
			}
		},
	} {
		o, link, err := b.CreateOperator(t.Context(), operator.NewOperator{
			Email: name + "@example.com", Roles: roles(domain.RoleViewer),
		})
		if err != nil {
			t.Fatal(err)
		}
		use(o, link)
		if n := b.count("select count(*) from operator_links"); n != 0 {
			t.Errorf("%s: %d links stay", name, n)
			b.write("delete from operator_links")
		}
	}
}

// relink gives an operator a link, as an invitation that was not used.
func (b *bed) relink(o operator.Operator) {
	b.Helper()
	if _, err := b.AddInvitation(b.Context(), o.ID); err != nil {
		b.Fatal(err)
	}
}

// Only ways to sign in that are switched on count for the last administrator.
func TestLastAdmin_NeedsWayInThatIsOn(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	b := newBed(t, operator.Options{NoLocalSignIn: true, OIDC: operator.OIDC{Issuer: i.URL, ClientID: "deviceaccess"}})
	b.create("password@example.com", domain.RoleAdmin)
	admin := b.create("jane@example.com", domain.RoleAdmin)
	i.person("1", "jane@example.com", true)
	if _, err := i.signIn(b); err != nil {
		t.Fatal(err)
	}
	_, err := b.SetDisabled(t.Context(), admin.ID, true)
	fails(t, "disable", err, "last_admin")
	fails(t, "delete", b.DeleteOperator(t.Context(), admin.ID), "last_admin")
	if _, err := b.ResetUnlessLast(t.Context(), admin.ID); err != nil {
		t.Errorf("a reset, which keeps the provider: %v", err)
	}
	// Only the password is left where the provider is off.
	off := operator.New(b.db, b.keys, operator.Options{Now: b.clock})
	all, err := off.ListOperators(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d operators, %v", len(all), err)
	}
	_, err = off.SetDisabled(t.Context(), all[0].ID, true)
	fails(t, "disable", err, "last_admin")
}

// The console does not reset the only administrator who can sign in. The command of the server's machine does.
func TestResetOperator_KeepsLastAdmin(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	admin := b.create("jane@example.com", domain.RoleAdmin)
	_, err := b.ResetUnlessLast(t.Context(), admin.ID)
	fails(t, "the last administrator", err, "last_admin")
	b.signIn("jane@example.com")
	other := b.create("joe@example.com", domain.RoleAdmin)
	if _, err := b.ResetUnlessLast(t.Context(), admin.ID); err != nil {
		t.Error(err)
	}
	if _, err := b.ResetOperator(t.Context(), other.ID); err != nil {
		t.Errorf("by the command: %v", err)
	}
}
