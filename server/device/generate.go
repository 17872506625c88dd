package device

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// GenerateCode returns a random PIN that the device would accept now. It creates no code.
// It fails with NotFound, and with Invalid if the vendor chooses the PINs or no free PIN was found.
func (s *Service) GenerateCode(ctx context.Context, p domain.Principal, deviceID string) (Device, string, error) {
	d, err := s.GetDevice(ctx, p, deviceID, "")
	if err != nil {
		return d, "", err
	}
	taken, err := s.db.ListOccupiedPINs(ctx, d.ID)
	if err != nil {
		return d, "", fmt.Errorf("read the codes of device %s: %w", d.ID, err)
	}
	pin, err := s.generatePIN(d.ID, d.Capabilities, taken, 0)
	return d, pin, err
}

// generatePIN returns a random PIN that obeys the rules of the device and is not in use on it. Its length is the
// preferred one if the device supports it, else the shortest supported one. It fails with Invalid.
func (s *Service) generatePIN(
	device uuid.UUID, caps capability.Set, taken []dbsqlc.ListOccupiedPINsRow, preferred int,
) (string, error) {
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
	there := s.pinsOf(taken)
	for range 1000 {
		pin, err := randomPIN(length)
		if err != nil || fits(pin, caps) && !there[s.pinOn(device, pin)] {
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

// pinOn returns the MAC of a PIN on a device.
func (s *Service) pinOn(device uuid.UUID, pin string) string {
	return string(s.keys.Lift(s.keys.MAC(pinScope(device), []byte(pin))))
}

// pinsOf returns the MACs of the PINs of codes.
func (s *Service) pinsOf(taken []dbsqlc.ListOccupiedPINsRow) map[string]bool {
	there := make(map[string]bool, len(taken))
	for _, c := range taken {
		there[string(s.keys.Lift(c.PinMac))] = true
	}
	return there
}
