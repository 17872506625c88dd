package lockrules

import "time"

// PINReuseMargin is the least time that the server requires between two time frames that share a PIN on one lock.
const PINReuseMargin = 15 * time.Minute

// Frame is a time frame. A nil bound is absent or unknown.
type Frame struct{ StartsAt, EndsAt *time.Time }

// IsBounded reports whether the frame has a start and an end.
func (f Frame) IsBounded() bool { return f.StartsAt != nil && f.EndsAt != nil }

// Apart reports whether codes with these frames may have the same PIN on one lock: both frames are bounded, and one
// ends at least PINReuseMargin before the other starts.
func (f Frame) Apart(other Frame) bool { return f.precedes(other) || other.precedes(f) }

func (f Frame) precedes(other Frame) bool {
	return f.IsBounded() && other.IsBounded() && !f.EndsAt.Add(PINReuseMargin).After(*other.StartsAt)
}

// canTakeTurns reports whether the server removes the code at its end, so that another code can have its PIN then.
func (c HeldCode) canTakeTurns() bool {
	return c.IsManaged && !c.IsOffline && (c.FrameIsUnknown || Frame{c.StartsAt, c.EndsAt}.IsBounded())
}

// mayTakeTurnsWith reports whether the server may let the lock have both codes of one PIN, one after the other. It
// programs the later one when the earlier one has left.
func (c HeldCode) mayTakeTurnsWith(code Code) bool {
	planned := Frame{code.StartsAt, code.EndsAt}
	if !c.canTakeTurns() || !code.FrameIsUnknown && !planned.IsBounded() {
		return false
	}
	if c.FrameIsUnknown || code.FrameIsUnknown {
		return true
	}
	return Frame{c.StartsAt, c.EndsAt}.Apart(planned) && (!c.IsOnLock || c.StartsAt.Before(*code.StartsAt))
}

// checkNextStay warns about the code of the same PIN into whose time frame the code moves. Codes that cannot take turns
// are in the way already.
func checkNextStay(lock Lock, code Code) []Problem {
	for i, held := range lock.Codes {
		if held.PIN == code.KeptPIN && held.canTakeTurns() && !held.mayTakeTurnsWith(code) {
			return []Problem{{
				Subject:   SubjectFrame,
				Kind:      KindPINTaken,
				IsWarning: true,
				Summary:   "PIN is already on the lock at that time",
				Fact:      "another code has this PIN",
				Holder:    &lock.Codes[i],
				IsOfTimes: true,
			}}
		}
	}
	return nil
}
