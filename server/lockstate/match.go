package lockstate

import (
	"slices"
	"time"
)

// owner returns the code that an observed code belongs to, nil if there is none.
func (r *reading) owner(f Found) *Code {
	if c := r.byRef[f.Ref]; c != nil && f.Ref != "" && c.Ref == f.Ref {
		return c
	}
	for _, c := range r.managed {
		if c.Ref != "" && f.Key == c.ID && r.movedTo(c, f) {
			return c
		}
		if c.Ref != "" || c.Offline != "" {
			continue
		}
		// The code's reference was never recorded. The vendor kept our identifier, or the sent PIN matches, or the
		// recorded place of the write does.
		placed := f.PIN == "" && !pinChangedAtDevice(c, f) && f.Ref != "" && c.WriteRef == f.Ref
		sent := f.PIN != "" && (c.WritePIN == f.PIN || c.WriteGen >= c.DesiredGen && c.PIN == f.PIN)
		if f.Key == c.ID || !f.HasKey && c.WriteGen > 0 && (placed || sent) && !r.isKeyed(c) {
			return c
		}
	}
	return nil
}

// isKeyed reports whether the vendor shows a code with the identifier of c.
func (r *reading) isKeyed(c *Code) bool {
	return slices.ContainsFunc(r.Found, func(f Found) bool { return f.Key == c.ID })
}

// movedTo reports whether a code was recreated without a record of it, as happens before an older dump is restored.
func (r *reading) movedTo(c *Code, f Found) bool {
	// During a replacement, the vendor may list both the old and the new code.
	if c.Offline != "" || f.Removing || r.onItsWay(c) || r.staleRead(c) {
		return false
	}
	return !slices.ContainsFunc(r.Found, func(other Found) bool { return other.Ref == c.Ref })
}

// echo is how long after a write a device may report it as a change at its keypad. The device reports to all
// servers, of which only one wrote.
const echo = 15 * time.Second

// pinChangedAtDevice reports whether the device reported a change of a hidden PIN after the last write.
func pinChangedAtDevice(c *Code, f Found) bool {
	for _, ours := range []*time.Time{c.WriteAt, c.AppliedAt} {
		if ours != nil && !f.ChangedAt.After(ours.Add(echo)) {
			return false
		}
	}
	return !f.ChangedAt.IsZero()
}

// same reports whether the observed state of a code equals its desired state, as far as the device shows it.
func (r *reading) same(c *Code, f Found) bool {
	return r.sameAs(c, c.State(), f)
}

// sameAs is same for another state of the code.
func (r *reading) sameAs(c *Code, s State, f Found) bool {
	if f.PIN != "" && s.PIN != f.PIN || pinChangedAtDevice(c, f) || f.Disabled {
		return false
	}
	if !NativeSchedule(c, r.caps()) {
		return true
	}
	// A device that accepts no past start may have got the time of the write instead.
	begun := r.caps().StartsInFuture() && s.StartsAt != nil && f.StartsAt != nil && !s.StartsAt.After(r.Now) &&
		!f.StartsAt.After(r.Now)
	return (begun || sameSecond(s.StartsAt, f.StartsAt)) && sameSecond(s.EndsAt, f.EndsAt)
}

// sameSecond compares times without their fractions, which devices do not keep.
func sameSecond(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}
