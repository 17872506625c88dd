package provider

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// sharedPIN chooses a PIN that all these locks accept and none of them has yet. The PIN is as short as the locks
// allow, like a server's. Locks that the server does not know are ignored, because they get no code. The error names
// the locks whose rules exclude each other.
func sharedPIN(ctx context.Context, client *api.Client, devices []string) (string, error) {
	rules := pinRules{digits: "0123456789"}
	for _, id := range devices {
		device, err := deviceByID(ctx, client, id)
		if api.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read the lock %s: %w", id, err)
		}
		if err := rules.add(device); err != nil {
			return "", err
		}
		taken, err := pinsOn(ctx, client, id)
		if err != nil {
			return "", fmt.Errorf("read the codes of the lock %s: %w", id, err)
		}
		rules.taken = append(rules.taken, taken...)
	}
	return rules.choose()
}

// pinsOn returns the PINs on a lock that the server returns.
func pinsOn(ctx context.Context, client *api.Client, deviceID string) (pins []string, err error) {
	managed, err := managedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	unmanaged, err := unmanagedCodes(ctx, client, deviceID)
	if err != nil {
		return nil, err
	}
	for _, code := range managed {
		if code.Code != nil {
			pins = append(pins, *code.Code)
		}
	}
	for _, code := range unmanaged {
		if code.Code != nil {
			pins = append(pins, *code.Code)
		}
	}
	return pins, nil
}

// pinRules are the combined rules of several locks.
type pinRules struct {
	digits  string   // allowed digits
	lengths []int    // allowed lengths; nil means any
	locks   []string // allowed lengths of each lock, for errors
	taken   []string // PINs on the locks
	prefix  bool     // the first four digits must be unique
}

// add adds the rules of a lock. It fails if no PIN remains.
func (r *pinRules) add(device *api.Device) error {
	for _, constraint := range device.Properties.CodeConstraints {
		switch constraint.ConstraintType {
		case "cannot_specify_pin_code":
			return fmt.Errorf("the lock %q (%s) chooses its PINs itself, so it cannot share one with other locks. "+
				"Remove it from `device_ids`, and declare its code with "+
				"deviceaccess_access_code", device.DisplayName, device.DeviceID)
		case "no_zeros":
			r.without("0")
		case "cannot_contain_089":
			r.without("089")
		case "cannot_contain_0789":
			r.without("0789")
		case "unique_first_four_digits":
			r.prefix = true
		}
	}
	lengths := device.Properties.SupportedCodeLengths
	if len(lengths) == 0 {
		return nil
	}
	r.locks = append(r.locks, fmt.Sprintf("%q (%s) accepts %v", device.DisplayName, device.DeviceID, lengths))
	if r.lengths == nil {
		r.lengths = slices.Sorted(slices.Values(lengths))
	}
	r.lengths = slices.DeleteFunc(r.lengths, func(length int) bool { return !slices.Contains(lengths, length) })
	if len(r.lengths) == 0 {
		return errors.New("no number of digits works on all locks: " + strings.Join(r.locks, "; ") + ". Declare a " +
			"shared code for each kind of lock")
	}
	return nil
}

func (r *pinRules) without(digits string) {
	r.digits = strings.Map(func(digit rune) rune {
		if strings.ContainsRune(digits, digit) {
			return -1
		}
		return digit
	}, r.digits)
}

// choose generates PINs until one satisfies the rules.
func (r *pinRules) choose() (string, error) {
	const attempts = 10_000
	length := 4
	if len(r.lengths) > 0 {
		length = r.lengths[0]
	}
	for range attempts {
		pin := make([]byte, length)
		for i := range pin {
			at, err := rand.Int(rand.Reader, big.NewInt(int64(len(r.digits))))
			if err != nil {
				return "", fmt.Errorf("generate a PIN: %w", err)
			}
			pin[i] = r.digits[at.Int64()]
		}
		if r.allow(string(pin)) {
			return string(pin), nil
		}
	}
	return "", fmt.Errorf("no PIN of %d digits is free on all locks. Write one into `code`", length)
}

// allow reports whether a PIN is free and hard to guess. It applies the vendors' rules against easily guessed PINs to
// all locks.
func (r *pinRules) allow(pin string) bool {
	for _, taken := range r.taken {
		if taken == pin || r.prefix && len(taken) >= 4 && strings.HasPrefix(pin, taken[:4]) {
			return false
		}
	}
	different := map[byte]bool{pin[0]: true}
	ascending, descending := true, true
	for i := 1; i < len(pin); i++ {
		different[pin[i]] = true
		ascending = ascending && pin[i] == pin[i-1]+1
		descending = descending && pin[i] == pin[i-1]-1
		if i > 1 && pin[i] == pin[i-1] && pin[i] == pin[i-2] {
			return false
		}
	}
	return len(different) >= 3 && !ascending && !descending && !strings.HasPrefix(pin, "12")
}
