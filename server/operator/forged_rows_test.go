package operator_test

import (
	"crypto/sha256"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

// A person who can write to the database gets no further than before.
func TestForgedRows_GrantNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		forge string
		want  string // of the session; empty: it stays
	}{
		"role": {`update operators set roles = '{"*":"admin"}' where email = 'thief@example.com'`, "session_not_found"},
		"email": {
			`update operators set email = 'other@example.com' where email = 'thief@example.com'`,
			"session_not_found",
		},
		"row of another": {`update operators t set roles = a.roles, mac = a.mac from operators a
			where t.email = 'thief@example.com' and a.email = 'admin@example.com'`, "session_not_found"},
		"session of another": {`update operator_sessions set operator_id =
			(select operator_id from operators where email = 'admin@example.com')`, "session_not_found"},
		"lifetime":    {`update operator_sessions set expires_at = expires_at + interval '1 year'`, "session_not_found"},
		"use":         {`update operator_sessions set seen_at = seen_at + interval '1 hour'`, "session_not_found"},
		"sign-in":     {`update operator_sessions set signed_in_at = now() + interval '1 hour'`, "session_not_found"},
		"method":      {`update operator_sessions set method = 'passkey'`, "session_not_found"},
		"only a name": {`update operators set name = 'Thief' where email = 'thief@example.com'`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, operator.Options{})
			b.create("admin@example.com", domain.RoleAdmin)
			b.create("thief@example.com", domain.RoleViewer)
			token, _ := b.signIn("thief@example.com")
			b.write(c.forge)
			s, err := b.Session(t.Context(), token)
			if c.want != "" {
				fails(t, "session", err, c.want)
			} else if err != nil || s.Operator.RoleIn(uuid.Nil) != domain.RoleViewer {
				t.Errorf("%+v %v", s.Operator, err)
			}
		})
	}
}

func TestForgedRows_OpenNoSession(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	admin := b.create("admin@example.com", domain.RoleAdmin)
	b.create("thief@example.com", domain.RoleViewer)
	b.withTOTP(admin)
	b.write(`update operators a set password_hash = t.password_hash from operators t
		where a.email = 'admin@example.com' and t.email = 'thief@example.com'`)
	_, _, err := b.SignIn(t.Context(), "admin@example.com", password, client)
	fails(t, "password of the thief", err, "sign_in_failed")

	hash := sha256.Sum256([]byte("made up"))
	b.write(`insert into operator_sessions (operator_session_id, operator_id, token_hash, method, created_at, seen_at,
		signed_in_at, expires_at, mac) values ($1, $2, $3, 'password', now(), now(), now(), now() + interval '1 day', '\x00')`,
		uuid.New(), admin.ID, hash[:])
	_, err = b.Session(t.Context(), "made up")
	fails(t, "made up session", err, "session_not_found")

	b.write(`insert into operator_links (operator_link_id, operator_id, purpose, token_hash, expires_at, mac)
		values ($1, $2, 'reset', $3, now() + interval '1 day', '\x00')`, uuid.New(), admin.ID, hash[:])
	_, err = b.AcceptLink(t.Context(), "made up", operator.Acceptance{Password: password}, client)
	fails(t, "made up link", err, "link_not_found")
	if err := b.DeleteOperator(t.Context(), admin.ID); err != nil {
		t.Errorf("a forged operator cannot be deleted: %v", err)
	}
}

// Removing the one-time codes in the database lets no person sign in without them.
func TestForgedRows_RemoveNoSecondFactor(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.withTOTP(b.create("admin@example.com", domain.RoleAdmin))
	b.write(`update operators set totp_sealed = null`)
	_, _, err := b.SignIn(t.Context(), "admin@example.com", password, client)
	fails(t, "without codes", err, "sign_in_failed")
}

// A disabled operator stays out, also with a copy of its rows from before.
func TestForgedRows_EnableNoOperator(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("admin@example.com", domain.RoleAdmin)
	thief := b.create("thief@example.com", domain.RoleViewer)
	token, _ := b.signIn("thief@example.com")
	b.write("create table kept as select * from operator_sessions")
	if _, err := b.SetDisabled(t.Context(), thief.ID, true); err != nil {
		t.Fatal(err)
	}
	b.write("insert into operator_sessions select * from kept")
	_, err := b.Session(t.Context(), token)
	fails(t, "restored session", err, "session_not_found")
	b.write("update operators set disabled_at = null where email = 'thief@example.com'")
	_, err = b.Session(t.Context(), token)
	fails(t, "restored session of an operator enabled in the database", err, "session_not_found")
	_, _, err = b.SignIn(t.Context(), "thief@example.com", password, client)
	fails(t, "sign in", err, "sign_in_failed")
}
