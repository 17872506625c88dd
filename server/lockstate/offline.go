package lockstate

import "time"

// The vendor's cloud generates offline codes, and the device validates them by their digits and its clock, without a
// message. They are available immediately, even if the device is unreachable, but cannot be chosen, changed, or
// revoked. Their rules are those of the published API for igloohome, whose codes are the only ones that it documents
// (developers.igloohome.co, algoPIN).

// OfflineKind is the kind of validity of an offline code; empty for an online code.
type OfflineKind string

// The offline kinds.
const (
	// OfflineHourly is valid for 1 to 672 hours.
	OfflineHourly OfflineKind = "hourly"
	// OfflineDaily is valid for 29 to 367 days.
	OfflineDaily OfflineKind = "daily"
	// OfflineOneTime opens once, within 24 hours.
	OfflineOneTime OfflineKind = "one_time"
)

// issue returns the operation of an offline code that must be issued now, and otherwise when to look again.
func (l *Lock) issue(c *Code) (*Operation, *time.Time) {
	switch {
	case c.AppliedGen >= c.DesiredGen && !c.hasStarted(l.Now):
		return nil, c.StartsAt
	case c.AppliedGen >= c.DesiredGen, c.BlockedGen >= c.DesiredGen:
		return nil, c.EndsAt
	case c.NextAttemptAt != nil && c.NextAttemptAt.After(l.Now):
		return nil, c.NextAttemptAt
	}
	return &Operation{
		Code:     c.ID,
		Action:   Issue,
		Gen:      c.DesiredGen,
		Offline:  c.Offline,
		StartsAt: c.StartsAt,
		EndsAt:   c.EndsAt,
	}, nil
}

// recordIssued records the outcome of the issuance of an offline code.
func (l *Lock) recordIssued(c *Code, op Operation, o Outcome) {
	if c.AppliedGen >= op.Gen {
		return
	}
	if o.Failure == nil {
		o.Failure = l.claimIssued(c, o)
	}
	if o.Failure != nil {
		l.recordFailure(c, op.Gen, *o.Failure)
		return
	}
	first := c.PIN == "" // otherwise its device has returned
	c.setPIN(o.PIN)
	c.Ref, c.AppliedGen, c.AppliedAt = o.Ref, op.Gen, new(l.Now)
	c.Attempts, c.NextAttemptAt = 0, nil
	c.Error, c.Warning = nil, nil
	l.settle(c, op.Gen, Succeeded, "", "")
	l.recordConfirmed(c, changedByRequest)
	c.Status = StatusUnset
	if first { // Plan emits the event of its start
		l.emitWithPIN("access_code.issued", c, c.PIN)
	}
}

// claimIssued ensures that no other code has the reference of an offline code that was just issued, or returns the
// failure. A vendor that lists offline codes may have shown this one as unmanaged before its response. A vendor that
// derives codes from their hours returns the same code for two requests.
func (l *Lock) claimIssued(c *Code, o Outcome) *Failure {
	for _, other := range l.Codes {
		if other == c || o.Ref == "" || other.Ref != o.Ref {
			continue
		}
		if other.Managed || other.PIN != "" && other.PIN != o.PIN {
			return &Failure{Class: FailedUnsupported, Message: "The vendor has answered with the reference of " +
				"another code of this device, because it generates a single code for the same hours. " +
				"Use that one, or create an access code of other hours."}
		}
		l.deleteCode(other)
		return nil
	}
	return nil
}
