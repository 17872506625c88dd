package device

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// toLockCode returns a row as package lockstate knows it, without its PINs and its confirmed state.
func toLockCode(r dbsqlc.AccessCode) lockstate.Code {
	c := lockstate.Code{
		ID:                          r.AccessCodeID,
		Managed:                     r.IsManaged,
		Status:                      lockstate.Status(r.Status),
		Name:                        r.Name,
		VendorName:                  r.VendorName,
		StartsAt:                    r.StartsAt,
		EndsAt:                      r.EndsAt,
		ExternalModificationAllowed: r.ExternalModificationAllowed,
		PreferNativeScheduling:      r.PreferNativeScheduling,
		CommonCodeKey:               domain.Value(r.CommonCodeKey),
		Offline:                     lockstate.OfflineKind(domain.Value(r.OfflineKind)),
		UsesBackupPool:              r.UsesBackupPool,
		IsBackup:                    r.IsBackup,
		InPool:                      r.InPool,
		PulledBackup:                domain.Value(r.PulledBackupCodeID),
		DesiredGen:                  r.DesiredGen,
		DesiredAt:                   r.DesiredAt,
		Ref:                         domain.Value(r.VendorRef),
		AppliedGen:                  r.AppliedGen,
		AppliedAt:                   r.AppliedAt,
		BlockedGen:                  r.BlockedGen,
		WriteGen:                    r.WriteGen,
		WriteAt:                     r.WriteAt,
		WriteAccepted:               r.WriteAccepted,
		WriteRef:                    domain.Value(r.WriteRef),
		Attempts:                    int(r.Attempts),
		NextAttemptAt:               r.NextAttemptAt,
		RemovingSince:               r.RemovingSince,
		DriftCount:                  int(r.DriftCount),
		DriftedAt:                   r.DriftedAt,
		ExternalChange:              domain.Value(r.ExternalChange),
	}
	if r.ErrorCode != nil {
		c.Error = &lockstate.Problem{
			Code:    *r.ErrorCode,
			Message: domain.Value(r.ErrorMessage),
			At:      domain.Value(r.ErrorAt),
			Other:   domain.Value(r.ErrorCodeID),
		}
	}
	if r.WarningCode != nil {
		c.Warning = &lockstate.Problem{
			Code:    *r.WarningCode,
			Message: domain.Value(r.WarningMessage),
			At:      domain.Value(r.WarningAt),
		}
	}
	return c
}

// pinDigits finds the digits of the PINs of one device, which package lockstate only compares.
type pinDigits struct {
	s      *Service
	device uuid.UUID
	hashes encryption.Hashes
	known  map[lockstate.PIN]string
	sealed map[lockstate.PIN]dbsqlc.AccessCode
}

// pinsOn returns a pinDigits that knows the generations of the given hashes.
func (s *Service) pinsOn(device uuid.UUID, macs ...[]byte) pinDigits {
	return pinDigits{
		s:      s,
		device: device,
		hashes: s.keys.HashesFor(macs...),
		known:  map[lockstate.PIN]string{},
		sealed: map[lockstate.PIN]dbsqlc.AccessCode{},
	}
}

// ofMAC returns the PIN of a keyed hash. It is the same for the hashes of all generations of keys.
func (p pinDigits) ofMAC(mac []byte) lockstate.PIN {
	if len(mac) == 0 {
		return ""
	}
	return lockstate.PIN(p.hashes.Lift(mac))
}

// of returns the PIN of digits; empty digits have the empty PIN.
func (p pinDigits) of(digits string) lockstate.PIN {
	if digits == "" {
		return ""
	}
	pin := lockstate.PIN(p.hashes.MAC(pinScope(p.device), []byte(digits)))
	p.known[pin] = digits
	return pin
}

// digits returns the digits of a PIN; empty: unknown.
func (p pinDigits) digits(pin lockstate.PIN) (string, error) {
	if pin == "" {
		return "", nil
	}
	if digits, ok := p.known[pin]; ok {
		return digits, nil
	}
	row, ok := p.sealed[pin]
	if !ok {
		return "", nil
	}
	digits, err := p.s.pinOf(row)
	if err == nil {
		p.known[pin] = digits
	}
	return digits, err
}

// mac returns the keyed hash of a PIN, in its stored form.
func (p pinDigits) mac(pin lockstate.PIN) ([]byte, error) {
	digits, err := p.digits(pin)
	switch {
	case err != nil || pin == "":
		return nil, err
	case digits == "":
		return []byte(pin), nil
	}
	return p.s.keys.MAC(pinScope(p.device), []byte(digits)), nil
}

// load returns a row with its PINs. It opens the confirmed state only if that can differ from the desired one.
func (p pinDigits) load(r dbsqlc.AccessCode) (lockstate.Code, error) {
	c := toLockCode(r)
	c.PIN, c.WritePIN = p.ofMAC(r.PinMac), p.ofMAC(r.WritePinMac)
	if r.PinSealed != nil && c.PIN != "" {
		p.sealed[c.PIN] = r
	}
	switch {
	case r.AppliedSealed == nil:
	case r.IsManaged && r.AppliedGen >= r.DesiredGen:
		c.Applied = new(c.State())
	default:
		has, err := p.s.appliedOf(r)
		if err != nil {
			return c, err
		}
		c.Applied = &lockstate.State{
			Name:       has.Name,
			PIN:        p.of(domain.Value(has.PIN)),
			StartsAt:   has.StartsAt,
			EndsAt:     has.EndsAt,
			VendorName: has.VendorName,
		}
	}
	return c, nil
}

// codeState is the stored form of a lockstate.State, and the one that clients see.
type codeState struct {
	Name       *string    `json:"name"`
	PIN        *string    `json:"code"`
	StartsAt   *time.Time `json:"starts_at"`
	EndsAt     *time.Time `json:"ends_at"`
	VendorName *string    `json:"vendor_name,omitempty"`
}

// state returns a state with its digits.
func (p pinDigits) state(s lockstate.State) (codeState, error) {
	digits, err := p.digits(s.PIN)
	return codeState{
		Name:       s.Name,
		PIN:        domain.NonEmpty(digits),
		StartsAt:   utc(s.StartsAt),
		EndsAt:     utc(s.EndsAt),
		VendorName: s.VendorName,
	}, err
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

func appliedPlace(code uuid.UUID) string { return "access_codes.applied/" + code.String() }

// appliedOf returns the state of a code that its device has confirmed, nil if unknown.
func (s *Service) appliedOf(c dbsqlc.AccessCode) (*codeState, error) {
	if c.AppliedSealed == nil {
		return nil, nil
	}
	opened, err := s.keys.Open(appliedPlace(c.AccessCodeID), c.AppliedSealed)
	if err != nil {
		return nil, fmt.Errorf("open the confirmed state of access code %s: %w", c.AccessCodeID, err)
	}
	var state codeState
	if json.Unmarshal(opened, &state) != nil {
		// The error may quote a PIN, so it is not wrapped.
		return nil, fmt.Errorf("read the confirmed state of access code %s", c.AccessCodeID)
	}
	return &state, nil
}

// sealPINs returns the encrypted columns of a code. before and row are the code as it was loaded; both are nil for a
// new code.
func (p pinDigits) sealPINs(
	c *lockstate.Code,
	before *lockstate.Code,
	row dbsqlc.AccessCode,
) (dbsqlc.AccessCode, error) {
	if before == nil {
		before = &lockstate.Code{}
	}
	if c.PIN != before.PIN {
		digits, err := p.digits(c.PIN)
		if err != nil {
			return row, err
		}
		row.AccessCodeID, row.DeviceID = c.ID, p.device
		p.s.setPIN(&row, digits)
	}
	if c.WritePIN != before.WritePIN {
		mac, err := p.mac(c.WritePIN)
		if err != nil {
			return row, err
		}
		row.WritePinMac = mac
	}
	switch {
	case c.Applied == nil:
		row.AppliedSealed = nil
	case c.Applied != before.Applied:
		state, err := p.state(*c.Applied)
		if err != nil {
			return row, err
		}
		row.AppliedSealed = p.s.keys.Seal(appliedPlace(c.ID), domain.MustJSON(state))
	}
	return row, nil
}

// columns of a problem.
func problemColumns(p *lockstate.Problem) (code, message *string, at *time.Time, other *uuid.UUID) {
	if p == nil {
		return nil, nil, nil, nil
	}
	if p.Other != uuid.Nil {
		other = &p.Other
	}
	return &p.Code, &p.Message, &p.At, other
}

// updateOf returns the row of a changed code with its encrypted columns.
func updateOf(c *lockstate.Code, sealed dbsqlc.AccessCode) dbsqlc.UpdateAccessCodeParams {
	u := dbsqlc.UpdateAccessCodeParams{
		AccessCodeID:                c.ID,
		IsManaged:                   c.Managed,
		Name:                        c.Name,
		VendorName:                  c.VendorName,
		PinSealed:                   sealed.PinSealed,
		PinMac:                      sealed.PinMac,
		StartsAt:                    c.StartsAt,
		EndsAt:                      c.EndsAt,
		Status:                      string(c.Status),
		ExternalModificationAllowed: c.ExternalModificationAllowed,
		VendorRef:                   domain.NonEmpty(c.Ref),
		DesiredGen:                  c.DesiredGen,
		AppliedGen:                  c.AppliedGen,
		AppliedAt:                   c.AppliedAt,
		BlockedGen:                  c.BlockedGen,
		WriteGen:                    c.WriteGen,
		WriteRef:                    domain.NonEmpty(c.WriteRef),
		WritePinMac:                 sealed.WritePinMac,
		WriteAt:                     c.WriteAt,
		WriteAccepted:               c.WriteAccepted,
		Attempts:                    int32(c.Attempts), //nolint:gosec // grows by one per failure
		NextAttemptAt:               c.NextAttemptAt,
		RemovingSince:               c.RemovingSince,
		DriftCount:                  int32(c.DriftCount), //nolint:gosec // grows by one per drift
		DriftedAt:                   c.DriftedAt,
		ExternalChange:              domain.NonEmpty(c.ExternalChange),
		DesiredAt:                   c.DesiredAt,
		AppliedSealed:               sealed.AppliedSealed,
		CommonCodeKey:               domain.NonEmpty(c.CommonCodeKey),
		IsBackup:                    c.IsBackup,
		InPool:                      c.InPool,
	}
	if c.PulledBackup != uuid.Nil {
		u.PulledBackupCodeID = &c.PulledBackup
	}
	u.ErrorCode, u.ErrorMessage, u.ErrorAt, u.ErrorCodeID = problemColumns(c.Error)
	u.WarningCode, u.WarningMessage, u.WarningAt, _ = problemColumns(c.Warning)
	return u
}

// insertOf returns the row of a new code with its encrypted columns.
func insertOf(d dbsqlc.Device, c *lockstate.Code, sealed dbsqlc.AccessCode) dbsqlc.InsertAccessCodeParams {
	return dbsqlc.InsertAccessCodeParams{
		AccessCodeID:                c.ID,
		WorkspaceID:                 d.WorkspaceID,
		DeviceID:                    d.DeviceID,
		IsManaged:                   c.Managed,
		Name:                        c.Name,
		PinSealed:                   sealed.PinSealed,
		PinMac:                      sealed.PinMac,
		StartsAt:                    c.StartsAt,
		EndsAt:                      c.EndsAt,
		Status:                      string(c.Status),
		ExternalModificationAllowed: c.ExternalModificationAllowed,
		PreferNativeScheduling:      c.PreferNativeScheduling,
		VendorRef:                   domain.NonEmpty(c.Ref),
		DesiredAt:                   c.DesiredAt,
		CommonCodeKey:               domain.NonEmpty(c.CommonCodeKey),
		UsesBackupPool:              c.UsesBackupPool,
		IsBackup:                    c.IsBackup,
		InPool:                      c.InPool,
		OfflineKind:                 domain.NonEmpty(string(c.Offline)),
	}
}

// inserted returns a new code as its insertion stores it.
func inserted(c *lockstate.Code) *lockstate.Code {
	return &lockstate.Code{
		ID:                          c.ID,
		Managed:                     c.Managed,
		Name:                        c.Name,
		PIN:                         c.PIN,
		StartsAt:                    c.StartsAt,
		EndsAt:                      c.EndsAt,
		Status:                      c.Status,
		ExternalModificationAllowed: c.ExternalModificationAllowed,
		PreferNativeScheduling:      c.PreferNativeScheduling,
		Ref:                         c.Ref,
		DesiredGen:                  1,
		DesiredAt:                   c.DesiredAt,
		CommonCodeKey:               c.CommonCodeKey,
		UsesBackupPool:              c.UsesBackupPool,
		IsBackup:                    c.IsBackup,
		InPool:                      c.InPool,
		Offline:                     c.Offline,
	}
}
