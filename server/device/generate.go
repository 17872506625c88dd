package device

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// GenerateCode returns a random PIN that the device would accept now. It creates no code.
// It fails with NotFound, and with Invalid if the vendor chooses the PINs or no free PIN was found.
func (s *Service) GenerateCode(ctx context.Context, p domain.Principal, deviceID string) (Device, string, error) {
	d, err := s.GetDevice(ctx, p, deviceID, "")
	if err != nil {
		return d, "", err
	}
	rows, err := s.db.ListOccupiedPINs(ctx, d.ID)
	if err != nil {
		return d, "", fmt.Errorf("read the codes of device %s: %w", d.ID, err)
	}
	pin, err := generatePIN(d.Capabilities, 0, s.placeOf(dbsqlc.Device{DeviceID: d.ID}, rows).isTaken)
	return d, pin, err
}

// generatePIN returns a random PIN that obeys the rules of a device and is not taken on it. Its length is the
// preferred one if the device supports it, else the shortest supported one. It fails with Invalid.
func generatePIN(caps capability.Set, preferred int, taken func(digits string) bool) (string, error) {
	if caps.ProviderPIN {
		return "", domain.Invalidf("device_id", "The vendor of this device chooses the PINs; create one without `code`")
	}
	length := 4
	if len(caps.CodeLengths) > 0 {
		length = caps.CodeLengths[0]
	}
	if preferred > 0 && preferred <= 12 && slices.Contains(caps.CodeLengths, preferred) {
		length = preferred
	}
	for range 1000 {
		pin, err := randomPIN(length)
		if err != nil || fits(pin, caps) && !taken(pin) {
			return pin, err
		}
	}
	return "", domain.Invalidf("code", "No free code was found for this device; specify one")
}

// longestRandom is the maximum length of a generated PIN. Vendors report the supported lengths, so they need a limit.
const longestRandom = 32

func randomPIN(length int) (string, error) {
	if length < 1 || length > longestRandom {
		return "", domain.Invalidf("code", "No code of %d digits can be generated for this device; specify one", length)
	}
	pin := make([]byte, length)
	for i := range pin {
		n, err := rand.Int(rand.Reader, big.NewInt(10))
		if err != nil {
			return "", fmt.Errorf("generate a random code: %w", err)
		}
		pin[i] = '0' + byte(n.Int64())
	}
	return string(pin), nil
}

// fits reports whether a generated PIN suits a device.
func fits(pin string, caps capability.Set) bool {
	return differentDigits(pin) > 1 && checkPIN(pin, caps) == nil
}

// isTaken reports whether one of the codes at the place has a PIN.
func (at place) isTaken(digits string) bool {
	pin := at.pins.of(digits)
	return slices.ContainsFunc(at.taken, func(o lockstate.Occupant) bool { return o.PIN == pin })
}

// placeOf returns the place of a new code on a device with these codes.
func (s *Service) placeOf(d dbsqlc.Device, rows []dbsqlc.ListOccupiedPINsRow) place {
	macs := make([][]byte, len(rows))
	for i, r := range rows {
		macs[i] = r.PinMac
	}
	at := place{device: d, pins: s.pinsOn(d.DeviceID, macs...), taken: make([]lockstate.Occupant, len(rows))}
	for i, r := range rows {
		at.taken[i] = lockstate.Occupant{
			ID:                     r.AccessCodeID,
			Managed:                r.IsManaged,
			Removing:               r.Removing,
			InPool:                 r.InPool,
			IsBackup:               r.IsBackup,
			Offline:                r.OfflineKind != nil,
			PreferNativeScheduling: r.PreferNativeScheduling,
			OnDevice:               r.OnDevice,
			PIN:                    at.pins.ofMAC(r.PinMac),
			StartsAt:               r.StartsAt,
			EndsAt:                 r.EndsAt,
		}
	}
	return at
}
