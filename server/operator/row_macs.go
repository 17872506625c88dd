package operator

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Every row has a keyed hash of what it allows, as in package auth. So writing to the database makes no operator, widens
// no role, and opens no session. The hash of an operator covers the secret of its one-time codes instead of the sealed
// value, because a rotation of the keys seals it again.

// record is an operator with its secrets.
type record struct {
	row      dbsqlc.Operator
	roles    map[uuid.UUID]domain.Role
	totp     []byte // the secret of one-time codes; empty: none
	passkeys int
}

// openRecord checks the hash of an operator, and opens its secrets.
func (s *Service) openRecord(row dbsqlc.Operator, passkeys int32) (record, error) {
	r := record{row: row, passkeys: int(passkeys)}
	var err error
	if r.roles, err = decodeRoles(row.Roles); err != nil {
		return record{}, err
	}
	if len(row.TotpSealed) > 0 {
		if r.totp, err = s.keys.Open(totpPlace(row.OperatorID), row.TotpSealed); err != nil {
			return record{}, fmt.Errorf("open the one-time codes of operator %s: %w", row.OperatorID, err)
		}
	}
	if !s.keys.Match(row.Mac, s.keys.MAC(r.hashed())) {
		return record{}, fmt.Errorf("operator %s was changed in the database: delete it", row.OperatorID)
	}
	return r, nil
}

func totpPlace(id uuid.UUID) string { return "operators.totp/" + id.String() }

// hashed is what the hash of an operator covers.
func (r record) hashed() (scope string, content []byte) {
	totp := ""
	if len(r.totp) > 0 {
		totp = fmt.Sprintf("%x", sha256.Sum256(r.totp))
	}
	return "operators.mac/" + r.row.OperatorID.String(), fmt.Appendf(nil, "%q|%s|%q|%s|%q|%q|%s",
		r.row.Email, encodeRoles(r.roles), domain.Value(r.row.PasswordHash), totp,
		domain.Value(r.row.Issuer), domain.Value(r.row.Subject), micros(r.row.DisabledAt))
}

// operator returns what others see of a record.
func (r record) operator() Operator {
	return Operator{
		ID:           r.row.OperatorID,
		Email:        r.row.Email,
		Name:         r.row.Name,
		Roles:        r.roles,
		HasPassword:  r.row.PasswordHash != nil,
		HasTOTP:      len(r.totp) > 0,
		Passkeys:     r.passkeys,
		Issuer:       domain.Value(r.row.Issuer),
		CreatedAt:    r.row.CreatedAt,
		DisabledAt:   r.row.DisabledAt,
		LastSignInAt: r.row.LastSignInAt,
	}
}

func hashedSession(r dbsqlc.OperatorSession) (scope string, content []byte) {
	return "operator_sessions.mac/" + r.OperatorSessionID.String(), fmt.Appendf(nil, "%s|%x|%s|%s|%s|%s|%s",
		r.OperatorID, r.TokenHash, r.Method, micros(&r.CreatedAt), micros(&r.SeenAt), micros(&r.SignedInAt),
		micros(&r.ExpiresAt))
}

func hashedPasskey(r dbsqlc.OperatorPasskey) (scope string, content []byte) {
	return "operator_passkeys.mac/" + r.OperatorPasskeyID.String(), fmt.Appendf(nil, "%s|%x|%s",
		r.OperatorID, r.WebauthnID, r.Credential)
}

func hashedLink(r dbsqlc.OperatorLink) (scope string, content []byte) {
	return "operator_links.mac/" + r.OperatorLinkID.String(), fmt.Appendf(nil, "%s|%s|%x|%s",
		domain.Value(r.OperatorID), r.Purpose, r.TokenHash, micros(&r.ExpiresAt))
}

// micros formats a time as precisely as the database stores it.
func micros(t *time.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprint(t.UnixMicro())
}
