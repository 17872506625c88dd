package lockstate

import "time"

// reason is why a code that is not in its desired state is not being worked on now.
type reason struct {
	kind reasonKind
	// until is when the reason ends without another cause; nil: unknown.
	until *time.Time
}

type reasonKind string

const (
	// waitsForDevice means that the device is offline, removed, or unmanaged.
	waitsForDevice reasonKind = "device"
	// waitsForSubscription means that the vendor sets no codes without a subscription.
	waitsForSubscription reasonKind = "subscription"
	// waitsForStartTime means that the programming time has not come.
	waitsForStartTime reasonKind = "start"
	// waitsForBackoff means that a failure or a drift pauses the code.
	waitsForBackoff reasonKind = "backoff"
	// waitsForPIN means that another code on the device still has the PIN.
	waitsForPIN reasonKind = "PIN of another code"
	// waitsForRemoval means that another code must leave first.
	waitsForRemoval reasonKind = "removal of another code"
	// waitsForConfirmation means that a pending operation has not shown yet.
	waitsForConfirmation reasonKind = "confirmation"
	// isRefusedFinally means that the device refuses the desired state, or that an allowed deletion is kept. The server
	// retries after a request or a change of the device's other codes.
	isRefusedFinally reasonKind = "refusal"
)

// waitsFor returns why a code waits.
func (l *Lock) waitsFor(c *Code) reason {
	if c.RemovingSince == nil && (!c.Managed || c.AppliedGen >= c.DesiredGen) {
		return reason{}
	}
	unreachable := l.Device.Removed || !l.Device.Managed && !c.InPool
	switch {
	case c.Offline != "" && c.BlockedGen >= c.DesiredGen:
		return reason{kind: isRefusedFinally}
	case unreachable:
		return reason{kind: waitsForDevice}
	case c.Offline != "":
		if _, due := l.issue(c); due != nil {
			return reason{waitsForBackoff, due}
		}
		return reason{}
	}
	recreate := l.needsRecreate(c)
	leaving := l.leaving(c) || recreate
	action, due := l.next(c, leaving)
	sends := action == Put || action == Delete || action == Find
	switch {
	case action == Nothing && c.hasPendingChange() && l.waitsForStart(c):
		return reason{waitsForStartTime, due}
	case action == Nothing && !leaving && !c.hasPendingChange():
		return reason{kind: isRefusedFinally}
	case action == Nothing:
		return reason{waitsForBackoff, due}
	case action == Await:
		return reason{waitsForConfirmation, due}
	case sends && l.Device.SubscriptionMissing:
		return reason{kind: waitsForSubscription}
	case sends && !l.Device.Online:
		return reason{kind: waitsForDevice}
	case action == Put && (l.pinHolder(c) != nil || l.waitsForTurn(c)):
		return reason{kind: waitsForPIN}
	case action == Put && c.Ref == "" && l.anyLeaving(c):
		return reason{kind: waitsForRemoval}
	}
	return reason{}
}

// anyLeaving reports whether a code other than c must leave the device.
func (l *Lock) anyLeaving(c *Code) bool {
	for _, other := range l.Codes {
		if other != c && other.Offline == "" && (l.leaving(other) || l.needsRecreate(other)) {
			return true
		}
	}
	return false
}
