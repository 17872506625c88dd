package access

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// GenerateCode makes a PIN that the device would take now; nothing is created.
// It fails with NotFound, and with Invalid where the vendor chooses the PINs or no PIN is left.
func (s *Service) GenerateCode(ctx context.Context, p Principal, deviceID string) (Device, string, error) {
	d, err := s.GetDevice(ctx, p, deviceID, "")
	if err != nil {
		return d, "", err
	}
	taken, err := s.db.TakenOnDevice(ctx, d.ID)
	if err != nil {
		return d, "", fmt.Errorf("read the codes of device %s: %w", d.ID, err)
	}
	pin, err := s.generatePIN(d.ID, d.Capabilities, taken, 0)
	return d, pin, err
}

// generatePIN makes a PIN that obeys the device and is not on it: of the preferred length if the device
// takes that, else of the shortest it takes. It fails with Invalid.
func (s *Service) generatePIN(device uuid.UUID, caps Capabilities, taken []dbsqlc.TakenOnDeviceRow, preferred int) (string, error) {
	if caps.ProviderPIN {
		return "", invalid("device_id", "The vendor of this device chooses the PINs; create one without `code`")
	}
	length := 4
	if len(caps.CodeLengths) > 0 {
		length = caps.CodeLengths[0]
	}
	if preferred > 0 && preferred <= 12 && slices.Contains(caps.CodeLengths, preferred) {
		length = preferred
	}
	there := pinsOf(taken)
	for range 1000 {
		pin, err := randomPIN(length)
		if err != nil || fits(pin, caps) && !there[s.pinOn(device, pin)] {
			return pin, err
		}
	}
	return "", invalid("code", "No free code was found for this device; give one")
}

// longestRandom is how many digits a PIN may have that is made here: vendors say what their locks take.
const longestRandom = 32

func randomPIN(length int) (string, error) {
	if length < 1 || length > longestRandom {
		return "", invalid("code", "No code of %d digits can be made for this device; give one", length)
	}
	pin := make([]byte, length)
	for i := range pin {
		n, err := rand.Int(rand.Reader, big.NewInt(10))
		if err != nil {
			return "", fmt.Errorf("make a random code: %w", err)
		}
		pin[i] = '0' + byte(n.Int64())
	}
	return string(pin), nil
}

// fits says whether a PIN that was made here may be given to a device.
func fits(pin string, caps Capabilities) bool {
	return differentDigits(pin) > 1 && checkPIN(pin, caps) == nil
}

// pinOn stands for a PIN on a device, and pinsOf are those that it has.
func (s *Service) pinOn(device uuid.UUID, pin string) string {
	return string(s.keys.MAC(pinScope(device), []byte(pin)))
}

func pinsOf(taken []dbsqlc.TakenOnDeviceRow) map[string]bool {
	there := make(map[string]bool, len(taken))
	for _, c := range taken {
		there[string(c.PinMac)] = true
	}
	return there
}
