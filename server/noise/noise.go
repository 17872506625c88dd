// Package noise holds the rules of noise thresholds: times of day, what a device must hold, and what noise triggers. It
// is pure: it must not know the database, the clock, or any vendor. Package noisesensor loads the rows, calls it, and
// writes the difference.
package noise

import (
	"time"

	"github.com/google/uuid"
)

// Document is what the server keeps of a noise sensor besides its thresholds.
type Document struct {
	// Observed is what the vendor said last.
	Observed Observed `json:"observed"`
	// Triggering are the thresholds that the noise exceeds.
	Triggering []uuid.UUID `json:"triggering,omitempty"`
	// At is when the rest changed last.
	At time.Time `json:"at,omitzero"`
}

// Observed is what a vendor says of a noise sensor.
type Observed struct {
	// Decibels is the level of noise, and NRS the noise risk score; nil if unknown.
	Decibels *float64 `json:"decibels,omitempty"`
	NRS      *float64 `json:"nrs,omitempty"`
	// Thresholds are all those on the device.
	Thresholds []Found `json:"thresholds,omitempty"`
	// Triggering has the references of those that the noise exceeds.
	Triggering []string `json:"triggering,omitempty"`
}

// Found is a threshold on a device.
type Found struct {
	// Ref is the vendor's identifier, and Key the one that the vendor keeps for us; Key is empty if it keeps none.
	Ref  string `json:"ref"`
	Key  string `json:"key,omitempty"`
	Name string `json:"name"`
	// StartsDaily and EndsDaily are HH:MM:SS in TimeZone, which is empty for that of the device.
	StartsDaily string   `json:"starts_daily"`
	EndsDaily   string   `json:"ends_daily"`
	TimeZone    string   `json:"time_zone,omitempty"`
	Decibels    float64  `json:"decibels"`
	NRS         *float64 `json:"nrs,omitempty"`
}
