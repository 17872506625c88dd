package operator_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

const origin = "https://locks.example.com"

// authenticator is a security key with one discoverable credential.
type authenticator struct {
	*testing.T
	key    *ecdsa.PrivateKey
	id     []byte
	user   []byte
	origin string // as the browser reports it
	count  uint32
}

func newAuthenticator(t *testing.T) *authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 16)
	rand.Read(id)
	return &authenticator{T: t, key: key, id: id, origin: origin}
}

var b64 = base64.RawURLEncoding

// answer returns the options' challenge as client data, and the authenticator data with flags.
func (a *authenticator) answer(kind, challenge, rp string, flags byte) (client, data []byte) {
	a.Helper()
	client, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin})
	if err != nil {
		a.Fatal(err)
	}
	hash := sha256.Sum256([]byte(rp))
	a.count++
	return client, binary.BigEndian.AppendUint32(append(hash[:], flags), a.count)
}

const userPresentAndVerified = 0x05

// register answers the options of a registration.
func (a *authenticator) register(options []byte) []byte {
	a.Helper()
	var o struct {
		PublicKey struct {
			Challenge string
			RP        struct{ ID string }
			User      struct{ ID string }
		}
	}
	if err := json.Unmarshal(options, &o); err != nil {
		a.Fatal(err)
	}
	user, err := b64.DecodeString(o.PublicKey.User.ID)
	if err != nil {
		a.Fatal(err)
	}
	a.user = user
	client, data := a.answer("webauthn.create", o.PublicKey.Challenge, o.PublicKey.RP.ID, userPresentAndVerified|0x40)
	point, err := a.key.PublicKey.Bytes()
	if err != nil {
		a.Fatal(err)
	}
	public, err := webauthncbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]})
	if err != nil {
		a.Fatal(err)
	}
	data = append(data, make([]byte, 16)...) // AAGUID
	data = append(binary.BigEndian.AppendUint16(data, uint16(len(a.id))), a.id...)
	data = append(data, public...)
	attestation, err := webauthncbor.Marshal(
		map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data},
	)
	if err != nil {
		a.Fatal(err)
	}
	return a.credential(map[string]any{
		"clientDataJSON":    b64.EncodeToString(client),
		"attestationObject": b64.EncodeToString(attestation),
	})
}

// sign answers the options of a sign-in.
func (a *authenticator) sign(options []byte) []byte {
	a.Helper()
	var o struct {
		PublicKey struct {
			Challenge string
			RPID      string `json:"rpId"`
		}
	}
	if err := json.Unmarshal(options, &o); err != nil {
		a.Fatal(err)
	}
	client, data := a.answer("webauthn.get", o.PublicKey.Challenge, o.PublicKey.RPID, userPresentAndVerified)
	clientHash := sha256.Sum256(client)
	hash := sha256.Sum256(append(data[:len(data):len(data)], clientHash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, hash[:])
	if err != nil {
		a.Fatal(err)
	}
	return a.credential(map[string]any{
		"clientDataJSON":    b64.EncodeToString(client),
		"authenticatorData": b64.EncodeToString(data),
		"signature":         b64.EncodeToString(signature),
		"userHandle":        b64.EncodeToString(a.user),
	})
}

func (a *authenticator) credential(response map[string]any) []byte {
	return domain.MustJSON(map[string]any{
		"id":       b64.EncodeToString(a.id),
		"rawId":    b64.EncodeToString(a.id),
		"type":     "public-key",
		"response": response,
	})
}

// withPasskey registers an authenticator.
func (b *bed) withPasskey(o operator.Operator) *authenticator {
	b.Helper()
	a := newAuthenticator(b.T)
	options, state, err := b.BeginRegistration(b.Context(), o.ID, origin)
	if err != nil {
		b.Fatal(err)
	}
	n := operator.NewPasskey{Name: "Key", Origin: origin, State: state, Answer: a.register(options)}
	if err := b.FinishRegistration(b.Context(), o.ID, n); err != nil {
		b.Fatalf("%v: %s", err, b.log.String())
	}
	fails(b.T, "the same again", b.FinishRegistration(b.Context(), o.ID, n), "sign_in_expired")
	return a
}

// usePasskey signs in with an authenticator.
func (b *bed) usePasskey(a *authenticator) (string, error) {
	b.Helper()
	options, state, err := b.BeginPasskeySignIn(b.Context(), origin)
	if err != nil {
		b.Fatal(err)
	}
	return b.FinishPasskeySignIn(
		b.Context(),
		operator.PasskeyAnswer{Origin: origin, State: state, Answer: a.sign(options)},
		client,
	)
}

func TestPasskey_SignsIn(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	o := b.create("jane@example.com", domain.RoleAdmin)
	a := b.withPasskey(o)
	token, err := b.usePasskey(a)
	if err != nil {
		t.Fatalf("%v: %s", err, b.log.String())
	}
	if s := b.session(token); s.Operator.ID != o.ID || s.Operator.Passkeys != 1 || s.Method != operator.ByPasskey {
		t.Errorf("%+v", s)
	}
	listed, err := b.ListPasskeys(t.Context(), o.ID)
	if err != nil || len(listed) != 1 || listed[0].Name != "Key" || listed[0].LastUsedAt == nil {
		t.Fatalf("%+v %v", listed, err)
	}
	fails(t, "of another", b.RemovePasskey(t.Context(), uuid.New(), listed[0].ID), "operator_not_found")
	if err := b.RemovePasskey(t.Context(), o.ID, listed[0].ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.usePasskey(a)
	fails(t, "removed", err, "sign_in_failed")
}

func TestPasskey_Refuses(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.create("admin@example.com", domain.RoleAdmin)
	o := b.create("jane@example.com", domain.RoleViewer)
	a := b.withPasskey(o)
	try := func(name, want string, change func(a *authenticator)) {
		t.Helper()
		changed := *a
		change(&changed)
		_, err := b.usePasskey(&changed)
		fails(t, name, err, want)
	}
	try("another origin", "sign_in_failed", func(a *authenticator) { a.origin = "https://locks.example.org" })
	try("another user", "sign_in_failed", func(a *authenticator) { a.user = make([]byte, 16) })
	try("another key", "sign_in_failed", func(a *authenticator) { a.key = newAuthenticator(t).key })
	if _, err := b.usePasskey(a); err != nil {
		t.Fatal(err)
	}
	try("lower counter", "sign_in_failed", func(a *authenticator) { a.count = 0 })

	options, state, err := b.BeginPasskeySignIn(t.Context(), origin)
	if err != nil {
		t.Fatal(err)
	}
	answer := operator.PasskeyAnswer{Origin: origin, State: state, Answer: a.sign(options)}
	if _, err := b.FinishPasskeySignIn(t.Context(), answer, client); err != nil {
		t.Fatal(err)
	}
	_, err = b.FinishPasskeySignIn(t.Context(), answer, client)
	if err == nil {
		t.Error("an answer is accepted twice")
	}
	answer.State = "AAAA"
	_, err = b.FinishPasskeySignIn(t.Context(), answer, client)
	fails(t, "forged state", err, "sign_in_expired")

	if _, err := b.SetDisabled(t.Context(), o.ID, true); err != nil {
		t.Fatal(err)
	}
	try("disabled operator", "sign_in_failed", func(*authenticator) {})
}

// A passkey of an attacker does not become one of another operator by writing to the database.
func TestForgedRows_MovePasskeysNowhere(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	admin := b.create("admin@example.com", domain.RoleAdmin)
	a := b.withPasskey(b.create("thief@example.com", domain.RoleViewer))
	b.write("update operator_passkeys set operator_id = $1", admin.ID)
	a.user = admin.ID[:]
	_, err := b.usePasskey(a)
	fails(t, "moved passkey", err, "sign_in_failed")
}

// The last administrator who has only a passkey keeps it.
func TestRemovePasskey_KeepsLastWayIn(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	o, _, err := b.CreateOperator(
		t.Context(),
		operator.NewOperator{Email: "admin@example.com", Roles: roles(domain.RoleAdmin)},
	)
	if err != nil {
		t.Fatal(err)
	}
	b.withPasskey(o)
	listed, err := b.ListPasskeys(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	fails(t, "the only way", b.RemovePasskey(t.Context(), o.ID, listed[0].ID), "last_admin")
}

// Only a passkey of the operator renews its session, once.
func TestConfirm_WithPasskey(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	a := b.withPasskey(b.create("jane@example.com", domain.RoleAdmin))
	other := b.withPasskey(b.create("joe@example.com", domain.RoleAdmin))
	token, err := b.usePasskey(a)
	if err != nil {
		t.Fatal(err)
	}
	b.pass(time.Hour)
	s := b.session(token)
	begin := func(with *authenticator) operator.PasskeyAnswer {
		options, state, err := b.BeginPasskeyConfirm(t.Context(), s, origin)
		if err != nil {
			t.Fatal(err)
		}
		return operator.PasskeyAnswer{Origin: origin, State: state, Answer: with.sign(options)}
	}
	fails(t, "another's", b.FinishPasskeyConfirm(t.Context(), s, begin(other)), "sign_in_failed")
	ofAnother := *other
	ofAnother.user = a.user
	fails(t, "another's", b.FinishPasskeyConfirm(t.Context(), s, begin(&ofAnother)), "sign_in_failed")
	_, elsewhere := b.signIn("jane@example.com")
	fails(t, "another session", b.FinishPasskeyConfirm(t.Context(), elsewhere, begin(a)), "sign_in_expired")
	answer := begin(a)
	if err := b.FinishPasskeyConfirm(t.Context(), s, answer); err != nil {
		t.Fatalf("%v: %s", err, b.log.String())
	}
	if now := b.session(token); !now.SignedInAt.Equal(b.clock()) {
		t.Errorf("signed in at %s", now.SignedInAt)
	}
	if b.FinishPasskeyConfirm(t.Context(), s, answer) == nil {
		t.Error("an answer is accepted twice")
	}
	_, err = b.FinishPasskeySignIn(t.Context(), begin(a), client)
	fails(t, "as a sign-in", err, "sign_in_expired")
}
