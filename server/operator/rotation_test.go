package operator_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

// Operators, their sessions, passkeys, one-time codes, and links stay valid when the encryption keys are rotated.
func TestRotation_KeepsOperators(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	if err := keyrotation.FollowKeys(t.Context(), b.db, b.keys, true); err != nil {
		t.Fatal(err)
	}
	o := b.create("jane@example.com", domain.RoleAdmin)
	token, _ := b.signIn("jane@example.com")
	_, link, err := b.CreateOperator(
		t.Context(),
		operator.NewOperator{Email: "joe@example.com", Roles: roles(domain.RoleViewer)},
	)
	if err != nil {
		t.Fatal(err)
	}
	a, secret := b.withPasskey(o), b.withTOTP(o)
	rotation := keyrotation.New(b.db, b.keys, keyrotation.Options{RotationWait: time.Millisecond})
	if err := rotation.RotateEncryption(t.Context(), func(keyrotation.Rotation) {}); err != nil {
		t.Fatal(err)
	}
	b.session(token)
	if _, err := b.usePasskey(a); err != nil {
		t.Errorf("passkey: %v", err)
	}
	b.pass(time.Minute)
	_, pending, err := b.SignIn(t.Context(), "jane@example.com", password, client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.SecondFactor(t.Context(), pending, b.code(secret), client); err != nil {
		t.Errorf("one-time code: %v", err)
	}
	if _, err := b.AcceptLink(t.Context(), link, operator.Acceptance{Password: password}, client); err != nil {
		t.Errorf("link: %v", err)
	}
}

// With another master key, as after a restore into another installation, no session is valid.
func TestAnotherMasterKey_OpensNoSession(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("jane@example.com", domain.RoleAdmin)
	token, _ := b.signIn("jane@example.com")
	master := make([]byte, encryption.KeySize)
	rand.Read(master)
	keys, err := encryption.New(master)
	if err != nil {
		t.Fatal(err)
	}
	_, err = operator.New(b.db, keys, operator.Options{}).Session(t.Context(), token)
	fails(t, "session", err, "session_not_found")
}
