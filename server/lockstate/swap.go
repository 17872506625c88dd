package lockstate

import (
	"github.com/google/uuid"
)

// A code whose new PIN is still in use by another code on the device waits until that code releases the PIN. Codes
// whose PINs are exchanged wait for each other in a ring. One code of a ring then steps aside: the server removes it
// from the device, and sets it again with its new PIN after the others. A crash in between loses nothing, because each
// step follows from the rows.

// pinHolder returns the code that has c's desired PIN on the device and is about to release it.
func (l *Lock) pinHolder(c *Code) *Code {
	if c.PIN == "" {
		return nil
	}
	for _, other := range l.codesByPIN()[c.PIN] {
		if other != c && l.releasesPIN(other) {
			return other
		}
	}
	return nil
}

// pinIndex caches the codes by the PIN that each has on the device, because a ring of hundreds is searched once per
// code.
type pinIndex struct {
	codes []pinIndexEntry
	byPIN map[PIN][]*Code
}

type pinIndexEntry struct {
	code *Code
	pin  PIN
}

// codesByPIN returns the codes by the known PIN that each has on the device, in their order.
func (l *Lock) codesByPIN() map[PIN][]*Code {
	was := l.pinIndex
	same := was.byPIN != nil && len(was.codes) == len(l.Codes)
	for i := 0; same && i < len(l.Codes); i++ {
		same = was.codes[i] == pinIndexEntry{l.Codes[i], l.Codes[i].pinOnDevice()}
	}
	if same {
		return was.byPIN
	}
	l.pinIndex = pinIndex{byPIN: map[PIN][]*Code{}}
	for _, c := range l.Codes {
		pin := c.pinOnDevice()
		l.pinIndex.codes = append(l.pinIndex.codes, pinIndexEntry{c, pin})
		if pin != "" {
			l.pinIndex.byPIN[pin] = append(l.pinIndex.byPIN[pin], c)
		}
	}
	return l.pinIndex.byPIN
}

// unseenConflict reports whether the device refuses c's PIN as a duplicate although it shows no code with that PIN.
// Some vendors keep refusing for a moment after a deletion. After some attempts, the refusal is believed.
func (l *Lock) unseenConflict(c *Code, conflict string) bool {
	if !l.caps().PINVisible || !l.caps().ListCodes || c.Attempts+1 >= failureThreshold ||
		l.CodeByRef(conflict) != nil {
		return false
	}
	for _, other := range l.Codes {
		if other != c && other.Ref != "" && (other.PIN == "" || c.PIN != "" && other.pinOnDevice() == c.PIN) {
			return false
		}
	}
	return true
}

// releasesPIN reports whether a code will lose the PIN that it has on the device.
func (l *Lock) releasesPIN(c *Code) bool {
	return c.RemovingSince != nil || (c.Ref != "" && (l.postponed(c) || c.hasPendingChange()))
}

// hasPendingChange reports whether a managed code has a desired state that is neither applied nor refused.
func (c *Code) hasPendingChange() bool {
	return c.Managed && c.AppliedGen < c.DesiredGen && c.BlockedGen < c.DesiredGen
}

// pinOnDevice returns the PIN that a code has on the device, empty if unknown. For a code that was changed at the
// device, that is the observed PIN.
func (c *Code) pinOnDevice() PIN {
	switch {
	case c.AppliedGen == c.DesiredGen || c.RemovingSince != nil && c.AppliedGen == 0:
		return c.PIN
	case c.AppliedGen == 0:
		return c.WritePIN
	case c.Applied == nil:
		return ""
	}
	return c.Applied.PIN
}

// yieldsPIN reports whether a code must leave the device temporarily so that others can have its PIN, or its temporary
// removal has started for any reason (Start).
func (l *Lock) yieldsPIN(c *Code) bool {
	if !c.Managed || c.RemovingSince != nil || c.Ref == "" {
		return false
	}
	return c.removalSent() || l.breaksPINCycle(c)
}

// breaksPINCycle reports whether c is the code of its ring that steps aside. No code does while a write to one of the
// ring is pending.
func (l *Lock) breaksPINCycle(c *Code) bool {
	first := c
	for at, steps := c, 0; steps <= len(l.Codes); steps++ {
		if at.RemovingSince != nil || !at.hasPendingChange() || (at.WriteGen > 0 && at.WriteAccepted) {
			return false
		}
		if before(at.ID, first.ID) {
			first = at
		}
		if at = l.pinHolder(at); at == nil {
			return false
		}
		if at == c {
			return first == c
		}
	}
	return false
}

func before(a, b uuid.UUID) bool { return a.String() < b.String() }
