package lockstate

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"

// Phase is the state of a code in the state diagram of this package.
type Phase string

// The phases.
const (
	// PhaseGone means that the code has no row.
	PhaseGone Phase = "gone"
	// PhaseWaiting means that the code waits for its programming time or its turn, or for its start on the device.
	PhaseWaiting Phase = "waiting"
	// PhaseSetting means that the server sets the code, or will retry.
	PhaseSetting Phase = "setting"
	// PhaseSet means that the code opens: the desired state, or the confirmed one after a refused change.
	PhaseSet Phase = "set"
	// PhaseUnset means that the device has refused the code, and no confirmed state of it opens.
	PhaseUnset Phase = "unset"
	// PhaseChanged means that the code was changed at the device. The server restores it, or keeps an allowed change.
	PhaseChanged Phase = "changed outside"
	// PhaseRemoving means that the code must leave the device.
	PhaseRemoving Phase = "removing"
	// PhaseUnknown means that the device was removed from its account.
	PhaseUnknown Phase = "unknown"
	// PhaseUnmanaged means that the code was found on the device and is left alone.
	PhaseUnmanaged Phase = "unmanaged"
)

// PhaseOf returns the phase of a code. nil is a code without a row.
func (l *Lock) PhaseOf(c *Code) Phase {
	switch {
	case c == nil:
		return PhaseGone
	case c.RemovingSince != nil:
		return PhaseRemoving
	case !c.Managed:
		return PhaseUnmanaged
	case c.Status == StatusUnknown:
		return PhaseUnknown
	case c.hasWarning(domain.WarnExternal), c.hasPendingChange() && c.hasError(domain.ErrExternal):
		return PhaseChanged
	case c.hasPendingChange() && !c.mayBeOnDevice() && (l.waitsForStart(c) || l.waitsForTurn(c)):
		return PhaseWaiting
	case c.hasPendingChange():
		return PhaseSetting
	case c.Status == StatusSet:
		return PhaseSet
	case c.AppliedGen >= c.DesiredGen:
		return PhaseWaiting
	}
	return PhaseUnset
}
