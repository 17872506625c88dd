package noise

import (
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// MaxThresholds is how many thresholds the server keeps for a device.
const MaxThresholds = 100

// Bounds of levels.
const (
	maxDecibels = 200
	maxNRS      = 1000
)

// State is what a threshold is set to.
type State struct {
	Name string `json:"name"`
	Window
	// Decibels is the level; with NRS, what the device makes of it, and 0 if unknown.
	Decibels float64 `json:"decibels"`
	// NRS is the level as a noise risk score; nil if it is in decibels.
	NRS *float64 `json:"nrs,omitempty"`
}

// Vendors round levels. Names and zones that a vendor does not keep are empty in its answers.
const (
	decibelTolerance = 0.5
	nrsTolerance     = 0.05
)

// shows reports whether a device that shows found has the state s.
func (s State) shows(found State) bool {
	level := math.Abs(s.Decibels-found.Decibels) <= decibelTolerance
	if s.NRS != nil {
		level = found.NRS != nil && math.Abs(*s.NRS-*found.NRS) <= nrsTolerance
	}
	return level && (found.Name == "" || found.Name == s.Name) && s.Starts == found.Starts && s.Ends == found.Ends &&
		(s.Zone == "" || s.Zone == found.Zone)
}

func (s State) equal(other State) bool {
	nrs := s.NRS == other.NRS || s.NRS != nil && other.NRS != nil && *s.NRS == *other.NRS
	return nrs && s.Name == other.Name && s.Window == other.Window && s.Decibels == other.Decibels
}

// State returns what a found threshold is set to.
func (f Found) State() State {
	return State{
		Name:     f.Name,
		Window:   Window{Starts: f.StartsDaily, Ends: f.EndsDaily, Zone: f.TimeZone},
		Decibels: f.Decibels,
		NRS:      f.NRS,
	}
}

// Threshold is a threshold of a noise sensor: the desired state, the observed state, and the way from one to the other.
type Threshold struct {
	ID uuid.UUID
	// Ref is the vendor's identifier; empty if the threshold is not known to be on the device.
	Ref     string
	Desired State
	// Observed is what the last read found; nil: the threshold is not on the device.
	Observed *State
	// Managed means that a client has set the desired state. Otherwise, the desired state follows the device.
	Managed bool
	// Deleting means that the threshold must leave the device.
	Deleting bool
	// Tries is the number of consecutive operations that had no effect yet.
	Tries int
	// NextAt is when to look again; nil: at once.
	NextAt *time.Time
	// AwaitUntil is until when a read may not show the last operation; nil: it must show.
	AwaitUntil *time.Time
}

// settled reports whether the device shows the desired state.
func (t *Threshold) settled() bool {
	return !t.Deleting && t.Observed != nil && t.Desired.shows(*t.Observed)
}

// awaits reports whether the device may not show the last operation yet.
func (t *Threshold) awaits(now time.Time) bool { return t.AwaitUntil != nil && t.AwaitUntil.After(now) }

func (t *Threshold) rest() { t.Tries, t.NextAt, t.AwaitUntil = 0, nil, nil }

// CheckLevel fails with Invalid unless exactly one level is given that a device of these capabilities accepts.
func CheckLevel(decibels, nrs *float64, caps capability.NoiseSensor) error {
	switch {
	case decibels == nil && nrs == nil:
		return domain.Invalidf("", "Specify noise_threshold_decibels or noise_threshold_nrs")
	case decibels != nil && nrs != nil:
		return domain.Invalidf("", "Specify only one of noise_threshold_decibels and noise_threshold_nrs")
	case nrs != nil && !caps.NRS:
		return domain.Invalidf("noise_threshold_nrs",
			"Only NoiseAware sensors accept a Noise Risk Score. Specify noise_threshold_decibels")
	case decibels != nil && !within(*decibels, maxDecibels):
		return domain.Invalidf("noise_threshold_decibels", "Must be from 0 to %d", maxDecibels)
	case nrs != nil && !within(*nrs, maxNRS):
		return domain.Invalidf("noise_threshold_nrs", "Must be from 0 to %d", maxNRS)
	}
	return nil
}

func within(v, limit float64) bool { return v >= 0 && v <= limit } // false for NaN

// CheckRoom fails with Invalid if a device with these thresholds accepts no further one.
func CheckRoom(all []*Threshold, caps capability.NoiseSensor) error {
	limit := MaxThresholds
	if caps.MaxThresholds > 0 {
		limit = min(limit, caps.MaxThresholds)
	}
	switch {
	case caps.Fixed:
		return domain.Invalidf("device_id", "The thresholds of this sensor are fixed. Update one of them")
	case len(all) >= limit:
		return domain.Invalidf(
			"device_id",
			"The sensor has %d thresholds, as many as it holds. Delete one first",
			len(all),
		)
	}
	return nil
}

// CheckDisjoint fails with Invalid if the desired window of a threshold overlaps another one on a device that does not
// accept that. zone is that of the device.
func CheckDisjoint(
	all []*Threshold, id uuid.UUID, w Window, caps capability.NoiseSensor, now time.Time, zone *time.Location,
) error {
	if !caps.Disjoint {
		return nil
	}
	i := slices.IndexFunc(all, func(t *Threshold) bool {
		return t.ID != id && !t.Deleting && t.Desired.Overlaps(w, now, zone)
	})
	if i < 0 {
		return nil
	}
	d := all[i].Desired
	return domain.Invalidf("starts_daily_at",
		"The thresholds of this sensor must not overlap, and %q holds from %s to %s. Choose other times",
		d.Name, d.StartsAt(), d.EndsAt())
}
