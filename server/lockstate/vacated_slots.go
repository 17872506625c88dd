package lockstate

// A lock that hides its PINs keeps showing the old code if it refuses a change. So the server vacates the slot of a
// code before it writes the new one. The new write may be refused or lost in a crash. RecordPlace therefore records the
// vacated slot as the place of the write, until the code is applied or a read shows that the slot was not vacated.

// vacated reports whether the server removed a code that its device does not show, for a change that has not arrived.
func (l *Lock) vacated(c *Code) bool {
	return c.Managed && c.AppliedGen > 0 && c.AppliedGen < c.DesiredGen && c.Ref != "" && c.WriteRef == c.Ref
}

// recreateVacated schedules the recreation of a code that was removed for a change. The error of the change stays until
// the recreation has ended.
func (l *Lock) recreateVacated(c *Code) {
	c.Ref, c.AppliedGen, c.WriteRef = "", 0, ""
	c.clearWrite()
	l.forgetPIN(c)
	if c.BlockedGen >= c.DesiredGen { // the refused change was of a code that is gone
		c.BlockedGen = 0
	}
	c.Status = StatusSetting
	l.emit(Event{Type: "access_code.removed_from_device"}, c)
}
