package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// An act that needs a recent sign-in asks the operator to confirm: with the password, with a passkey, or at the OpenID
// Connect provider (see OIDCRequest). A confirmation sets Session.SignedInAt.

// Confirm checks the password, and the one-time code where the operator has those. It fails with Unauthorized.
func (s *Service) Confirm(ctx context.Context, session Session, password, totp string) error {
	if err := s.localOff(); err != nil {
		return err
	}
	ctx = audit.Unasked(ctx)
	r, err := s.get(ctx, session.Operator.ID)
	if err != nil {
		return err
	}
	ok, err := s.passwords.matches(ctx, domain.Value(r.row.PasswordHash), password)
	if err != nil {
		return err
	}
	if !ok {
		return unauthorized("sign_in_failed", "The password is wrong.")
	}
	if len(r.totp) > 0 {
		if err := s.acceptTOTP(ctx, r, totp); err != nil {
			return err
		}
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		return s.renewSession(ctx, tx, r.row.OperatorID, session.ID, s.opt.Now())
	})
	return domain.Wrap(err, "confirm a session")
}

// renewSession records that the operator of a session has proved who it is. It fails with Unauthorized if the session
// has ended.
func (s *Service) renewSession(ctx context.Context, tx store.Tx, operatorID, id uuid.UUID, at time.Time) error {
	row, err := tx.GetOperatorSession(
		ctx,
		dbsqlc.GetOperatorSessionParams{OperatorID: operatorID, OperatorSessionID: id},
	)
	if store.IsNoRows(err) {
		return signInExpired()
	}
	if err != nil {
		return err
	}
	if !s.keys.Match(row.Mac, s.keys.MAC(hashedSession(row))) {
		return errors.New("the session was changed in the database")
	}
	now := s.opt.Now()
	row.SeenAt = now
	if at.After(now) {
		at = now
	}
	if at.After(row.SignedInAt) {
		row.SignedInAt = at
	}
	return s.saveSession(ctx, tx.Queries, row)
}

const passkeyConfirmPurpose = "passkey confirmation"

// passkeyConfirmation is the state of a confirmation with a passkey.
type passkeyConfirmation struct {
	Session  uuid.UUID            `json:"c"`
	WebAuthn webauthn.SessionData `json:"w"`
}

// BeginPasskeyConfirm starts the confirmation of a session with a passkey of its operator. It returns the options of
// navigator.credentials.get as JSON, and the state for FinishPasskeyConfirm. It fails with Invalid for an operator
// without passkeys, and with Forbidden where local sign-in is off.
func (s *Service) BeginPasskeyConfirm(
	ctx context.Context,
	session Session,
	origin string,
) (options []byte, state string, err error) {
	if err := s.localOff(); err != nil {
		return nil, "", err
	}
	party, err := relyingParty(origin)
	if err != nil {
		return nil, "", err
	}
	u, err := s.webauthnUser(ctx, s.db.Queries, session.Operator.ID)
	if err != nil {
		return nil, "", err
	}
	if len(u.decoded) == 0 {
		return nil, "", domain.Invalidf("", "You have no passkey. Confirm another way.")
	}
	assertion, data, err := party.BeginLogin(u, webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, "", fmt.Errorf("begin a confirmation with a passkey: %w", err)
	}
	if options, err = json.Marshal(assertion); err != nil {
		return nil, "", err
	}
	state, err = s.sealChallenge(passkeyConfirmPurpose, passkeyConfirmation{Session: session.ID, WebAuthn: *data})
	return options, state, err
}

// FinishPasskeyConfirm ends a confirmation with the answer of a passkey. It fails with Unauthorized.
func (s *Service) FinishPasskeyConfirm(ctx context.Context, session Session, a PasskeyAnswer) error {
	if err := s.localOff(); err != nil {
		return err
	}
	var begun passkeyConfirmation
	challenge, err := s.openChallenge(passkeyConfirmPurpose, a.State, &begun)
	if err != nil {
		return err
	}
	if begun.Session != session.ID {
		return signInExpired()
	}
	refused := unauthorized("sign_in_failed", "This passkey is not one of yours. Confirm another way.")
	party, err := relyingParty(a.Origin)
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(a.Answer)
	if err != nil {
		return refused
	}
	ctx = audit.Unasked(ctx)
	u, err := s.webauthnUser(ctx, s.db.Queries, session.Operator.ID)
	if err != nil {
		return err
	}
	credential, err := party.ValidateLogin(u, begun.WebAuthn, parsed)
	if err != nil || credential.Authenticator.CloneWarning {
		s.opt.Log.Info("refused a passkey", "operator_id", session.Operator.ID, "error", err)
		return refused
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := s.useChallenge(ctx, tx.Queries, challenge); err != nil {
			return err
		}
		if err := s.renewSession(ctx, tx, session.Operator.ID, session.ID, s.opt.Now()); err != nil {
			return err
		}
		return s.savePasskey(ctx, tx, credential)
	})
	return domain.Wrap(err, "confirm a session with a passkey")
}
