package lockstate

import "time"

// PINReuseMargin is the least time between two time frames that share a PIN on one lock. It covers the difference of
// the vendor's clock, the removal of the first code, and the programming of the second.
const PINReuseMargin = 15 * time.Minute

// Frame is the time in which a code may be on its lock. A nil bound is unknown or absent.
type Frame struct{ StartsAt, EndsAt *time.Time }

// IsBounded reports whether the frame has a start and an end.
func (f Frame) IsBounded() bool { return f.StartsAt != nil && f.EndsAt != nil }

// Apart reports whether codes with these frames may have the same PIN on one lock: both frames are bounded, and one
// ends at least PINReuseMargin before the other starts.
func (f Frame) Apart(other Frame) bool { return f.precedes(other) || other.precedes(f) }

// precedes reports whether f ends at least PINReuseMargin before other starts.
func (f Frame) precedes(other Frame) bool {
	return f.IsBounded() && other.IsBounded() && !f.EndsAt.Add(PINReuseMargin).After(*other.StartsAt)
}
