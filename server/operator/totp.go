package operator

import (
	"context"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	totpPeriod = 30 // seconds
	totpDigits = otp.DigitsSix
	totpIssuer = "Device Access"
	totpSkew   = 1 // steps before and after the current one
)

// Limits of wrong one-time codes of an operator. They apply to all clients together, unlike those of addresses.
const (
	maxTOTPFailures = 10
	totpWindow      = 15 * time.Minute
)

// matchTOTP returns the step of a code, in the order in which they are most likely. It returns 0 if the code is of none
// of the steps around a time.
func matchTOTP(secret, code string, at time.Time) (step int64) {
	code = strings.Join(strings.Fields(code), "")
	now := at.Unix() / totpPeriod
	for _, step := range []int64{now, now - totpSkew, now + totpSkew} {
		ok, err := hotp.ValidateCustom(
			code,
			uint64(step),
			secret,
			hotp.ValidateOpts{ //nolint:gosec // a time after 1970
				Digits:    totpDigits,
				Algorithm: otp.AlgorithmSHA1,
			},
		)
		if err == nil && ok {
			return step
		}
	}
	return 0
}

// acceptTOTP accepts a one-time code of an operator, once. It counts the attempt before it checks the code. It fails
// with Unauthorized, and with TooMany after too many wrong codes.
func (s *Service) acceptTOTP(ctx context.Context, r record, code string) error {
	ctx = audit.Unasked(ctx)
	now := s.opt.Now()
	counted, err := s.db.CountTOTPAttempt(ctx, dbsqlc.CountTOTPAttemptParams{
		OperatorID:  r.row.OperatorID,
		WindowStart: now.Add(-totpWindow),
		FailedAt:    now,
		MaxFailures: maxTOTPFailures,
	})
	if err != nil {
		return fmt.Errorf("count a one-time code: %w", err)
	}
	if counted == 0 {
		return &domain.Error{
			Kind:    domain.TooMany,
			Type:    "too_many_codes",
			Message: "Too many wrong codes. Try again in 15 minutes.",
		}
	}
	if step := matchTOTP(string(r.totp), code, now); step > 0 {
		n, err := s.db.AcceptTOTPStep(ctx, dbsqlc.AcceptTOTPStepParams{OperatorID: r.row.OperatorID, Step: step})
		if err != nil {
			return fmt.Errorf("accept a one-time code: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
	return unauthorized("sign_in_failed", "The code is wrong or was used already. Wait for the next one.")
}

// base32Secret is the encoding of secrets in authenticator apps.
var base32Secret = base32.StdEncoding.WithPadding(base32.NoPadding)

const totpPurpose = "one-time codes"

// totpSetup is the state of the setup of one-time codes.
type totpSetup struct {
	Operator uuid.UUID `json:"o"`
	Secret   string    `json:"s"`
}

// TOTPSetup is what a person enters into an authenticator app.
type TOTPSetup struct {
	Secret string // in base32
	URL    string // otpauth://, for a QR code
	State  string // for ConfirmTOTP
}

// BeginTOTP returns a new secret of one-time codes. It takes effect with ConfirmTOTP.
func (s *Service) BeginTOTP(ctx context.Context, operatorID uuid.UUID) (TOTPSetup, error) {
	o, err := s.GetOperator(ctx, operatorID)
	if err != nil {
		return TOTPSetup{}, err
	}
	key, err := totp.Generate(totp.GenerateOpts{
		Issuer:      totpIssuer,
		AccountName: o.Email,
		Period:      totpPeriod,
		Digits:      totpDigits,
		Algorithm:   otp.AlgorithmSHA1, // what all authenticator apps support
	})
	if err != nil {
		return TOTPSetup{}, fmt.Errorf("create one-time codes: %w", err)
	}
	state, err := s.sealChallenge(totpPurpose, totpSetup{operatorID, key.Secret()})
	return TOTPSetup{Secret: key.Secret(), URL: key.URL(), State: state}, err
}

// TOTPSetupOf returns the setup of a state again, for a page that is shown again.
func (s *Service) TOTPSetupOf(ctx context.Context, operatorID uuid.UUID, state string) (TOTPSetup, error) {
	o, err := s.GetOperator(ctx, operatorID)
	if err != nil {
		return TOTPSetup{}, err
	}
	var setup totpSetup
	if _, err := s.openChallenge(totpPurpose, state, &setup); err != nil {
		return TOTPSetup{}, err
	}
	if setup.Operator != operatorID {
		return TOTPSetup{}, signInExpired()
	}
	secret, err := base32Secret.DecodeString(setup.Secret)
	if err != nil {
		return TOTPSetup{}, fmt.Errorf("read the secret of one-time codes: %w", err)
	}
	key, err := totp.Generate(totp.GenerateOpts{
		Issuer:      totpIssuer,
		AccountName: o.Email,
		Period:      totpPeriod,
		Digits:      totpDigits,
		Algorithm:   otp.AlgorithmSHA1,
		Secret:      secret,
	})
	if err != nil {
		return TOTPSetup{}, fmt.Errorf("read the setup of one-time codes: %w", err)
	}
	return TOTPSetup{Secret: key.Secret(), URL: key.URL(), State: state}, nil
}

// ConfirmTOTP sets the one-time codes of BeginTOTP, proven by a code. From then on, signing in with a password needs
// one. It ends the operator's links. It fails with Invalid for a wrong code.
func (s *Service) ConfirmTOTP(ctx context.Context, operatorID uuid.UUID, state, code string) error {
	var setup totpSetup
	challenge, err := s.openChallenge(totpPurpose, state, &setup)
	if err != nil {
		return err
	}
	if setup.Operator != operatorID {
		return signInExpired()
	}
	step := matchTOTP(setup.Secret, code, s.opt.Now())
	if step == 0 {
		return domain.Invalidf("code", "The code is wrong. Check the clock of the device, and enter the current code.")
	}
	_, err = s.change(ctx, operatorID, func(tx store.Tx, r *record) error {
		if err := s.useChallenge(ctx, tx.Queries, challenge); err != nil {
			return err
		}
		if err := tx.DeleteLinksOfOperator(ctx, &operatorID); err != nil {
			return err
		}
		r.totp = []byte(setup.Secret)
		_, err := tx.AcceptTOTPStep(ctx, dbsqlc.AcceptTOTPStepParams{OperatorID: operatorID, Step: step})
		return err
	})
	return domain.Wrap(err, "set one-time codes")
}

// RemoveTOTP removes the one-time codes of an operator.
func (s *Service) RemoveTOTP(ctx context.Context, operatorID uuid.UUID) error {
	_, err := s.change(ctx, operatorID, func(_ store.Tx, r *record) error {
		r.totp = nil
		return nil
	})
	return domain.Wrap(err, "remove one-time codes")
}
