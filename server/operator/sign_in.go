package operator

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

const secondFactorPurpose = "second factor"

// pendingSignIn is the state of a sign-in that needs a one-time code.
type pendingSignIn struct {
	Operator uuid.UUID `json:"o"`
	Version  string    `json:"v"` // of the operator's row, so that a new password ends the sign-in
}

// version names the state of an operator's row that sign-ins depend on.
func (r record) version() string {
	_, content := r.hashed()
	return fmt.Sprintf("%x", hashToken(string(content)))
}

// SignIn signs a person in with a password. It returns the token of a new session, or in pending the state for
// SecondFactor if the operator has one-time codes. It fails with Unauthorized, at the same cost for every reason, and
// with Forbidden where local sign-in is off.
func (s *Service) SignIn(ctx context.Context, email, password string, c Client) (token, pending string, err error) {
	if err := s.localOff(); err != nil {
		return "", "", err
	}
	r, err := s.byEmail(ctx, email)
	if err != nil {
		return "", "", err
	}
	ok, err := s.passwords.matches(ctx, domain.Value(r.row.PasswordHash), password)
	if err != nil {
		return "", "", err
	}
	if !ok || r.row.DisabledAt != nil {
		return "", "", unauthorized("sign_in_failed", "The email address or the password is wrong.")
	}
	if len(r.totp) > 0 {
		pending, err = s.sealChallenge(secondFactorPurpose, pendingSignIn{r.row.OperatorID, r.version()})
		return "", pending, err
	}
	ctx = acting(ctx, r.operator(), c, signInOperation)
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		token, err = s.startSession(ctx, tx, signIn{operator: r, method: ByPassword, client: c})
		return err
	})
	return token, "", domain.Wrap(err, "sign in with a password")
}

// byEmail returns the operator of an email address. If there is none, or its row was forged, it returns an empty
// record, which matches no password.
func (s *Service) byEmail(ctx context.Context, email string) (record, error) {
	if len(email) > maxEmail || email != domain.Storable(email) {
		email = ""
	}
	row, err := s.db.GetOperatorByEmail(ctx, email)
	if store.IsNoRows(err) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("look up the operator: %w", err)
	}
	r, err := s.openRecord(row.Operator, row.Passkeys)
	if err != nil {
		s.opt.Log.Warn("refused a sign-in", "error", err)
		return record{}, nil
	}
	return r, nil
}

// SecondFactor ends a sign-in with a one-time code. It returns the token of a new session. It fails with Unauthorized,
// and with TooMany after many wrong codes.
func (s *Service) SecondFactor(ctx context.Context, pending, totp string, c Client) (token string, err error) {
	if err := s.localOff(); err != nil {
		return "", err
	}
	var p pendingSignIn
	challenge, err := s.openChallenge(secondFactorPurpose, pending, &p)
	if err != nil {
		return "", err
	}
	r, err := s.get(ctx, p.Operator)
	if e, ok := domain.AsError(err); ok && e.Kind == domain.NotFound {
		return "", signInExpired()
	}
	if err != nil {
		return "", err
	}
	if r.row.DisabledAt != nil || r.version() != p.Version {
		return "", signInExpired()
	}
	if err := s.acceptTOTP(ctx, r, totp); err != nil {
		return "", err
	}
	ctx = acting(ctx, r.operator(), c, signInOperation)
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := s.useChallenge(ctx, tx.Queries, challenge); err != nil {
			return err
		}
		token, err = s.startSession(ctx, tx, signIn{operator: r, method: ByPassword, client: c})
		return err
	})
	return token, domain.Wrap(err, "sign in with a one-time code")
}
