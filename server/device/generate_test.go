package device

import (
	"testing"
)

// Vendors report the length of PINs, so it may be absurd.
func TestRandomPIN_Length(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]bool{-1: false, 0: false, 1: true, 32: true, 33: false, 1 << 40: false} {
		pin, err := randomPIN(length)
		if (err == nil) != want || want && len(pin) != length {
			t.Errorf("length %d: %d digits, %v", length, len(pin), err)
		}
	}
}
