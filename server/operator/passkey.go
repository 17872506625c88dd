package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Passkey is a WebAuthn credential of an operator.
type Passkey struct {
	ID         uuid.UUID
	Name       string
	CreatedAt  time.Time
	LastUsedAt *time.Time
}

// maxPasskeys is the maximum number of passkeys of an operator.
const maxPasskeys = 20

const (
	registrationPurpose = "passkey registration"
	passkeyPurpose      = "passkey sign-in"
)

// CanUsePasskeys reports whether browsers allow passkeys at an origin: by HTTPS or on the same machine, and with a name
// instead of an address.
func CanUsePasskeys(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	_, notAnAddress := netip.ParseAddr(u.Hostname())
	return notAnAddress != nil && (u.Scheme == "https" || u.Hostname() == "localhost")
}

// relyingParty returns the relying party of an origin such as https://locks.example.com. It fails with Invalid.
func relyingParty(origin string) (*webauthn.WebAuthn, error) {
	if !CanUsePasskeys(origin) {
		return nil, domain.Invalidf("", "Passkeys need HTTPS and a host name. Open the console by its name.")
	}
	u, err := url.Parse(origin)
	if err != nil {
		return nil, fmt.Errorf("read the origin of the console: %w", err)
	}
	verified := protocol.VerificationRequired
	limit := webauthn.TimeoutConfig{Enforce: true, Timeout: challengeTTL, TimeoutUVD: challengeTTL}
	return webauthn.New(&webauthn.Config{
		RPID:                  u.Hostname(),
		RPDisplayName:         totpIssuer,
		RPOrigins:             []string{u.Scheme + "://" + u.Host},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey:      protocol.ResidentKeyRequirementRequired,
			UserVerification: verified,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: limit, Registration: limit},
	})
}

// webauthnUser is an operator as package webauthn sees it.
type webauthnUser struct {
	record
	passkeys []dbsqlc.OperatorPasskey
	decoded  []webauthn.Credential
}

func (u webauthnUser) WebAuthnID() []byte                         { return u.row.OperatorID[:] }
func (u webauthnUser) WebAuthnName() string                       { return u.row.Email }
func (u webauthnUser) WebAuthnDisplayName() string                { return u.row.Email }
func (u webauthnUser) WebAuthnCredentials() []webauthn.Credential { return u.decoded }

// webauthnUser reads an operator with its passkeys. It leaves out those that were changed in the database.
func (s *Service) webauthnUser(ctx context.Context, q *dbsqlc.Queries, id uuid.UUID) (webauthnUser, error) {
	r, err := s.read(ctx, q, id)
	if err != nil {
		return webauthnUser{}, err
	}
	u := webauthnUser{record: r}
	rows, err := q.ListOperatorPasskeys(ctx, id)
	if err != nil {
		return u, fmt.Errorf("read the passkeys: %w", err)
	}
	for _, row := range rows {
		var c webauthn.Credential
		if !s.keys.Match(row.Mac, s.keys.MAC(hashedPasskey(row))) || json.Unmarshal([]byte(row.Credential), &c) != nil {
			s.opt.Log.Warn("ignoring a passkey that was changed in the database: delete it", "operator_id", id)
			continue
		}
		u.passkeys, u.decoded = append(u.passkeys, row), append(u.decoded, c)
	}
	return u, nil
}

// ListPasskeys lists the passkeys of an operator, oldest first.
func (s *Service) ListPasskeys(ctx context.Context, operatorID uuid.UUID) ([]Passkey, error) {
	rows, err := s.db.ListOperatorPasskeys(ctx, operatorID)
	if err != nil {
		return nil, fmt.Errorf("list the passkeys: %w", err)
	}
	out := make([]Passkey, len(rows))
	for i, r := range rows {
		out[i] = Passkey{r.OperatorPasskeyID, r.Name, r.CreatedAt, r.LastUsedAt}
	}
	return out, nil
}

// BeginRegistration starts the registration of a passkey at an origin. It returns the options of
// navigator.credentials.create as JSON, and the state for FinishRegistration.
func (s *Service) BeginRegistration(
	ctx context.Context,
	operatorID uuid.UUID,
	origin string,
) (options []byte, state string, err error) {
	if err := s.localOff(); err != nil {
		return nil, "", err
	}
	party, err := relyingParty(origin)
	if err != nil {
		return nil, "", err
	}
	u, err := s.webauthnUser(ctx, s.db.Queries, operatorID)
	if err != nil {
		return nil, "", err
	}
	known := make([]protocol.CredentialDescriptor, len(u.decoded))
	for i, c := range u.decoded {
		known[i] = c.Descriptor()
	}
	creation, session, err := party.BeginRegistration(u, webauthn.WithExclusions(known))
	if err != nil {
		return nil, "", fmt.Errorf("begin the registration of a passkey: %w", err)
	}
	if options, err = json.Marshal(creation); err != nil {
		return nil, "", err
	}
	state, err = s.sealChallenge(registrationPurpose, session)
	return options, state, err
}

// NewPasskey is the end of a registration.
type NewPasskey struct {
	Name   string // by which the operator knows it
	Origin string // as for BeginRegistration
	State  string // of BeginRegistration
	Answer []byte // of navigator.credentials.create, as JSON
}

// FinishRegistration stores the passkey of an answer of the browser, and ends the operator's links. It fails with
// Invalid, and with Unauthorized for a state that has expired.
func (s *Service) FinishRegistration(ctx context.Context, operatorID uuid.UUID, n NewPasskey) error {
	if err := domain.CheckLabel("name", n.Name); err != nil {
		return err
	}
	party, err := relyingParty(n.Origin)
	if err != nil {
		return err
	}
	var session webauthn.SessionData
	challenge, err := s.openChallenge(registrationPurpose, n.State, &session)
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(n.Answer)
	if err != nil {
		return badPasskey()
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		u, err := s.webauthnUser(ctx, tx.Queries, operatorID)
		if err != nil {
			return err
		}
		if len(u.passkeys) >= maxPasskeys {
			return domain.Invalidf("", "You have %d passkeys, which is the maximum. Remove one first.", maxPasskeys)
		}
		credential, err := party.CreateCredential(u, session, parsed)
		if err != nil {
			s.opt.Log.Info("refused the registration of a passkey", "operator_id", operatorID, "error", err)
			return badPasskey()
		}
		if err := s.useChallenge(ctx, tx.Queries, challenge); err != nil {
			return err
		}
		if err := tx.DeleteLinksOfOperator(ctx, &operatorID); err != nil {
			return err
		}
		return s.insertPasskey(ctx, tx, operatorID, n.Name, credential)
	})
	return domain.Wrap(err, "register a passkey")
}

func (s *Service) insertPasskey(
	ctx context.Context,
	tx store.Tx,
	operatorID uuid.UUID,
	name string,
	credential *webauthn.Credential,
) error {
	credential.Attestation = webauthn.CredentialAttestation{} // it is not verified later
	row := dbsqlc.OperatorPasskey{
		OperatorPasskeyID: domain.NewID(),
		OperatorID:        operatorID,
		WebauthnID:        credential.ID,
		Name:              name,
		Credential:        string(domain.MustJSON(credential)),
	}
	return tx.InsertOperatorPasskey(ctx, dbsqlc.InsertOperatorPasskeyParams{
		OperatorPasskeyID: row.OperatorPasskeyID,
		OperatorID:        row.OperatorID,
		WebauthnID:        row.WebauthnID,
		Name:              row.Name,
		Credential:        row.Credential,
		Mac:               s.keys.MAC(hashedPasskey(row)),
	})
}

func badPasskey() error {
	return domain.Invalidf("", "The passkey could not be registered. Try again, or use another device.")
}

// BeginPasskeySignIn starts a sign-in with a passkey at an origin. It returns the options of
// navigator.credentials.get as JSON, and the state for FinishPasskeySignIn. It fails with Forbidden where local
// sign-in is off.
func (s *Service) BeginPasskeySignIn(_ context.Context, origin string) (options []byte, state string, err error) {
	if err := s.localOff(); err != nil {
		return nil, "", err
	}
	party, err := relyingParty(origin)
	if err != nil {
		return nil, "", err
	}
	assertion, session, err := party.BeginDiscoverableLogin(
		webauthn.WithUserVerification(protocol.VerificationRequired),
	)
	if err != nil {
		return nil, "", fmt.Errorf("begin a sign-in with a passkey: %w", err)
	}
	if options, err = json.Marshal(assertion); err != nil {
		return nil, "", err
	}
	state, err = s.sealChallenge(passkeyPurpose, session)
	return options, state, err
}

// PasskeyAnswer is the end of a sign-in with a passkey.
type PasskeyAnswer struct {
	Origin string // as for BeginPasskeySignIn
	State  string // of BeginPasskeySignIn
	Answer []byte // of navigator.credentials.get, as JSON
}

// FinishPasskeySignIn signs in the operator whose passkey has answered. It returns the token of a new session. It fails
// with Unauthorized.
func (s *Service) FinishPasskeySignIn(ctx context.Context, a PasskeyAnswer, c Client) (token string, err error) {
	if err := s.localOff(); err != nil {
		return "", err
	}
	var session webauthn.SessionData
	challenge, err := s.openChallenge(passkeyPurpose, a.State, &session)
	if err != nil {
		return "", err
	}
	u, credential, err := s.checkPasskey(ctx, a, session)
	if err != nil {
		return "", err
	}
	ctx = acting(ctx, u.operator(), c, signInOperation)
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := s.useChallenge(ctx, tx.Queries, challenge); err != nil {
			return err
		}
		if token, err = s.startSession(ctx, tx, signIn{operator: u.record, method: ByPasskey, client: c}); err != nil {
			return err
		}
		return s.savePasskey(ctx, tx, credential)
	})
	return token, domain.Wrap(err, "sign in with a passkey")
}

// checkPasskey returns the operator and the passkey of an answer. It fails with Unauthorized.
func (s *Service) checkPasskey(
	ctx context.Context,
	a PasskeyAnswer,
	session webauthn.SessionData,
) (u webauthnUser, credential *webauthn.Credential, err error) {
	refused := unauthorized("sign_in_failed", "This passkey is not known here. Sign in another way.")
	party, err := relyingParty(a.Origin)
	if err != nil {
		return u, nil, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(a.Answer)
	if err != nil {
		return u, nil, refused
	}
	id, err := uuid.FromBytes(parsed.Response.UserHandle)
	if err != nil {
		return u, nil, refused
	}
	u, err = s.webauthnUser(ctx, s.db.Queries, id)
	if e, ok := domain.AsError(err); ok && e.Kind == domain.NotFound {
		return u, nil, refused
	}
	if err != nil {
		return u, nil, err
	}
	_, credential, err = party.ValidatePasskeyLogin(
		func(_, _ []byte) (webauthn.User, error) { return u, nil }, session, parsed,
	)
	if err != nil || u.row.DisabledAt != nil || credential.Authenticator.CloneWarning {
		s.opt.Log.Info("refused a passkey", "operator_id", id, "error", err)
		return u, nil, refused
	}
	return u, credential, nil
}

// savePasskey stores the sign counter of a used passkey. It fails with Unauthorized if another sign-in has stored a
// higher one, or the passkey was removed.
func (s *Service) savePasskey(ctx context.Context, tx store.Tx, credential *webauthn.Credential) error {
	row, err := tx.LockOperatorPasskey(ctx, credential.ID)
	if store.IsNoRows(err) {
		return signInExpired()
	}
	if err != nil {
		return err
	}
	var stored webauthn.Credential
	if !s.keys.Match(row.Mac, s.keys.MAC(hashedPasskey(row))) {
		return errors.New("a passkey was changed in the database: delete it")
	}
	if err := json.Unmarshal([]byte(row.Credential), &stored); err != nil {
		return fmt.Errorf("read a passkey: %w", err)
	}
	count := credential.Authenticator.SignCount
	if count > 0 && count <= stored.Authenticator.SignCount {
		return signInExpired()
	}
	row.Credential = string(domain.MustJSON(credential))
	now := s.opt.Now()
	return tx.UpdateOperatorPasskey(ctx, dbsqlc.UpdateOperatorPasskeyParams{
		OperatorPasskeyID: row.OperatorPasskeyID,
		Credential:        row.Credential,
		LastUsedAt:        &now,
		Mac:               s.keys.MAC(hashedPasskey(row)),
	})
}

// RemovePasskey removes a passkey of an operator. It fails with NotFound, and with Conflict where the last
// administrator could not sign in without it.
func (s *Service) RemovePasskey(ctx context.Context, operatorID, passkeyID uuid.UUID) error {
	_, err := s.change(ctx, operatorID, func(tx store.Tx, _ *record) error {
		n, err := tx.DeleteOperatorPasskey(
			ctx,
			dbsqlc.DeleteOperatorPasskeyParams{OperatorID: operatorID, OperatorPasskeyID: passkeyID},
		)
		if err == nil && n == 0 {
			err = &domain.Error{
				Kind:    domain.NotFound,
				Type:    "passkey_not_found",
				Message: "There is no such passkey.",
			}
		}
		return err
	})
	return domain.Wrap(err, "remove a passkey")
}
