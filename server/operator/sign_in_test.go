package operator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

func TestSignIn_WithPassword(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	o := b.create("Jane@example.com", domain.RoleViewer)
	token, s := b.signIn("jane@EXAMPLE.com")
	if s.Operator.ID != o.ID || s.Method != operator.ByPassword || s.Agent != "Firefox" || s.CSRF == "" ||
		s.CSRF == token {
		t.Errorf("the session is %+v", s)
	}
	p, ok := b.Principal(s, uuid.New())
	if !ok || p.Kind != domain.OperatorAccount || p.CredentialID != o.ID || p.Role != domain.RoleViewer ||
		p.Name != "Jane@example.com" {
		t.Errorf("the principal is %+v", p)
	}
	for name, try := range map[string][2]string{
		"wrong password":   {"jane@example.com", password + "x"},
		"unknown person":   {"joe@example.com", password},
		"empty":            {"", ""},
		"null character":   {"jane@example.com\x00", password},
		"long password":    {"jane@example.com", strings.Repeat("x", 10_000)},
		"person unchecked": {strings.Repeat("j", 10_000), password},
	} {
		_, _, err := b.SignIn(t.Context(), try[0], try[1], client)
		fails(t, name, err, "sign_in_failed")
	}
	if n := b.count("select count(*) from operator_sessions"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// A client cannot tell by the work of the server whether an email address is known.
func TestSignIn_UnknownPersonCostsSameWork(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("jane@example.com", domain.RoleAdmin)
	if _, _, err := b.CreateOperator(
		t.Context(),
		operator.NewOperator{Email: "invited@example.com", Roles: roles(domain.RoleViewer)},
	); err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"jane@example.com", "unknown@example.com", "invited@example.com"} {
		before := b.Hashes()
		if _, _, err := b.SignIn(t.Context(), email, "wrong password", client); err == nil {
			t.Fatal("signed in")
		}
		if n := b.Hashes() - before; n != 1 {
			t.Errorf("%s costs %d hashes", email, n)
		}
	}
}

func TestSession_EndsWhenIdleOrOld(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("jane@example.com", domain.RoleAdmin)
	idle, _ := b.signIn("jane@example.com")
	used, _ := b.signIn("jane@example.com")
	for range 14 {
		b.pass(operator.IdleTimeout - time.Minute)
		b.session(used)
	}
	b.pass(operator.IdleTimeout - time.Minute)
	for name, token := range map[string]string{"idle": idle, "old": used, "unknown": "x", "empty": ""} {
		_, err := b.Session(t.Context(), token)
		fails(t, name, err, "session_not_found")
	}
	if err := b.DropExpired(t.Context()); err != nil || b.count("select count(*) from operator_sessions") != 0 {
		t.Errorf("expired sessions stay: %v", err)
	}
}

func TestFindSession_DoesNotExtend(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("jane@example.com", domain.RoleAdmin)
	token, first := b.signIn("jane@example.com")
	b.pass(operator.IdleTimeout - time.Minute)
	found, err := b.FindSession(t.Context(), token)
	if err != nil || found.ID != first.ID || found.CSRF != first.CSRF || !found.SeenAt.Equal(first.SeenAt) {
		t.Errorf("found %+v, %v", found, err)
	}
	b.pass(time.Minute)
	_, err = b.FindSession(t.Context(), token)
	fails(t, "after the idle limit", err, "session_not_found")
}

func TestSession_RecordsUseOnceAMinute(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("jane@example.com", domain.RoleAdmin)
	token, first := b.signIn("jane@example.com")
	b.pass(50 * time.Second)
	if s := b.session(token); !s.SeenAt.Equal(first.SeenAt) {
		t.Errorf("seen at %s", s.SeenAt)
	}
	b.pass(10 * time.Second)
	b.session(token)
	if s := b.session(token); !s.SeenAt.Equal(first.SeenAt.Add(time.Minute)) {
		t.Errorf("seen at %s", s.SeenAt)
	}
}

func TestSession_ListAndEnd(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	jane, joe := b.create("jane@example.com", domain.RoleAdmin), b.create("joe@example.com", domain.RoleAdmin)
	first, one := b.signIn("jane@example.com")
	b.pass(time.Second)
	second, two := b.signIn("jane@example.com")
	listed, err := b.ListSessions(t.Context(), jane.ID)
	if err != nil || len(listed) != 2 || listed[0].ID != two.ID || listed[1].ID != one.ID || listed[0].CSRF != "" {
		t.Fatalf("%+v %v", listed, err)
	}
	fails(t, "of another", b.EndSession(t.Context(), joe.ID, one.ID), "session_not_found")
	if err := b.EndSession(t.Context(), jane.ID, one.ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.Session(t.Context(), first)
	fails(t, "ended", err, "session_not_found")
	b.session(second)
	if err := b.EndSessionsOf(t.Context(), jane.ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.Session(t.Context(), second)
	fails(t, "ended", err, "session_not_found")
}

// withTOTP gives an operator one-time codes, and returns their secret.
func (b *bed) withTOTP(o operator.Operator) (secret string) {
	b.Helper()
	setup, err := b.BeginTOTP(b.Context(), o.ID)
	if err != nil {
		b.Fatal(err)
	}
	again, err := b.TOTPSetupOf(b.Context(), o.ID, setup.State)
	if err != nil || again != setup {
		b.Fatalf("%+v %v, want %+v", again, err, setup)
	}
	fails(b.T, "wrong code", b.ConfirmTOTP(b.Context(), o.ID, setup.State, "000000"), "invalid_input")
	if err := b.ConfirmTOTP(b.Context(), o.ID, setup.State, b.code(setup.Secret)); err != nil {
		b.Fatal(err)
	}
	return setup.Secret
}

func (b *bed) code(secret string) string {
	b.Helper()
	code, err := totp.GenerateCode(secret, b.clock())
	if err != nil {
		b.Fatal(err)
	}
	return code
}

func TestSecondFactor_AcceptsEachCodeOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	secret := b.withTOTP(b.create("jane@example.com", domain.RoleAdmin))
	begin := func() string {
		token, pending, err := b.SignIn(t.Context(), "jane@example.com", password, client)
		if err != nil || token != "" || pending == "" {
			t.Fatalf("a password alone: %q %v", token, err)
		}
		return pending
	}
	_, err := b.SecondFactor(t.Context(), begin(), b.code(secret), client)
	fails(t, "the code of the setup", err, "sign_in_failed")
	b.pass(30 * time.Second)
	code, pending := b.code(secret), begin()
	token, err := b.SecondFactor(t.Context(), pending, " "+code[:3]+" "+code[3:], client)
	if err != nil {
		t.Fatal(err)
	}
	b.session(token)
	_, err = b.SecondFactor(t.Context(), begin(), code, client)
	fails(t, "replayed code", err, "sign_in_failed")
	b.pass(30 * time.Second)
	_, err = b.SecondFactor(t.Context(), pending, b.code(secret), client)
	fails(t, "replayed sign-in", err, "sign_in_expired")
	pending = begin()
	b.pass(5 * time.Minute)
	_, err = b.SecondFactor(t.Context(), pending, b.code(secret), client)
	fails(t, "late code", err, "sign_in_expired")
	_, err = b.SecondFactor(t.Context(), "AAAA", b.code(secret), client)
	fails(t, "forged sign-in", err, "sign_in_expired")
}

func TestSecondFactor_LimitsWrongCodes(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	secret := b.withTOTP(b.create("jane@example.com", domain.RoleAdmin))
	b.pass(time.Minute)
	_, pending, err := b.SignIn(t.Context(), "jane@example.com", password, client)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		_, err := b.SecondFactor(t.Context(), pending, "12345", client)
		fails(t, "wrong code", err, "sign_in_failed")
	}
	_, err = b.SecondFactor(t.Context(), pending, b.code(secret), client)
	fails(t, "after wrong codes", err, "too_many_codes")
	b.pass(15 * time.Minute)
	if _, pending, err = b.SignIn(t.Context(), "jane@example.com", password, client); err != nil {
		t.Fatal(err)
	}
	if _, err = b.SecondFactor(t.Context(), pending, b.code(secret), client); err != nil {
		t.Error(err)
	}
}

// A new password ends a sign-in that waits for its code.
func TestSecondFactor_EndsWithPassword(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	o := b.create("jane@example.com", domain.RoleAdmin)
	_, s := b.signIn("jane@example.com")
	secret := b.withTOTP(o)
	b.pass(time.Minute)
	_, pending, err := b.SignIn(t.Context(), "jane@example.com", password, client)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.ChangePassword(t.Context(), s, password, "another long password"); err != nil {
		t.Fatal(err)
	}
	_, err = b.SecondFactor(t.Context(), pending, b.code(secret), client)
	fails(t, "after the change", err, "sign_in_expired")
}

func TestConfirm_RenewsSignIn(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	o := b.create("jane@example.com", domain.RoleAdmin)
	token, s := b.signIn("jane@example.com")
	b.pass(time.Hour)
	fails(t, "wrong password", b.Confirm(t.Context(), s, "wrong password", ""), "sign_in_failed")
	if err := b.Confirm(t.Context(), s, password, ""); err != nil {
		t.Fatal(err)
	}
	if now := b.session(token); !now.SignedInAt.Equal(b.clock()) {
		t.Errorf("signed in at %s", now.SignedInAt)
	}
	secret := b.withTOTP(o)
	b.pass(time.Minute)
	fails(t, "without a code", b.Confirm(t.Context(), s, password, ""), "sign_in_failed")
	if err := b.Confirm(t.Context(), s, password, b.code(secret)); err != nil {
		t.Error(err)
	}
}

func TestSignIn_LocalOff(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{NoLocalSignIn: true})
	b.create("jane@example.com", domain.RoleAdmin)
	_, _, err := b.SignIn(t.Context(), "jane@example.com", password, client)
	fails(t, "password", err, "local_sign_in_disabled")
	_, _, err = b.BeginPasskeySignIn(t.Context(), "https://locks.example.com")
	fails(t, "passkey", err, "local_sign_in_disabled")
	_, err = b.OpenLink(t.Context(), "x")
	fails(t, "link", err, "local_sign_in_disabled")
	if token, err := b.FirstRunLink(t.Context()); err != nil || token != "" {
		t.Errorf("%q %v", token, err)
	}
}

// Each sign-in and each change of an operator is in the audit log, the use of a session is not.
func TestOperators_AreAudited(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	ctx := audit.ActingByCommand(t.Context(), "root", "operators create")
	o, _, err := b.CreateOperator(
		ctx,
		operator.NewOperator{Email: "jane@example.com", Roles: roles(domain.RoleAdmin), Password: password},
	)
	if err != nil {
		t.Fatal(err)
	}
	token, s := b.signIn("jane@example.com")
	p, _ := b.Principal(s, uuid.Nil)
	ctx = audit.Acting(t.Context(), audit.Act{Principal: p, Operation: "/console/profile"})
	b.pass(time.Minute)
	if _, err := b.Session(ctx, token); err != nil {
		t.Fatal(err)
	}
	if _, err := b.SetName(ctx, o.ID, "Jane"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"command_line root operators create",
		"operator jane@example.com /console/sign-in",
		"operator jane@example.com /console/profile",
	}
	var got []string
	for e, err := range audit.New(b.db, audit.Options{}).Audit(t.Context(), audit.Filter{OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join([]string{e.ActorKind, e.ActorName, e.Operation}, " "))
		if len(e.Subjects) == 0 || e.Subjects[0] != (audit.Subject{Kind: "operator_id", ID: o.ID}) {
			t.Errorf("%s names %v", e.Operation, e.Subjects)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}
