package lockstate

import (
	"slices"
	"time"
)

// onDeviceRemoved ends the attempts of a removed device. Its codes stay, in case the device comes back, but can be
// deleted immediately. Leaving codes stay, too, if they may be on the device.
func (l *Lock) onDeviceRemoved() {
	all := func(Attempt) bool { return true }
	const message = "The device was removed from its vendor account."
	returns := !l.Device.Detached
	if returns {
		l.endAll(all, Failed, "device_removed", message)
	}
	for _, c := range slices.Clone(l.Codes) {
		if c.expires() && c.hasEnded(l.Now) { // the device may come back with it
			l.expire(c)
		}
		stays := c.InPool || c.RemovingSince == nil || returns && c.mayBeOnDevice()
		if !c.Managed || !stays { // a code of the pool is recognized wherever it shows
			l.deleteCode(c)
			continue
		}
		c.WriteAccepted = false // the other fields are needed to recognize it
		if c.RemovingSince == nil || c.InPool {
			c.Status, c.AppliedGen = StatusUnknown, 0
		}
	}
	l.endAll(all, Failed, "device_removed", message)
}

// nextEnd returns the next end time among the codes of a removed device.
func (l *Lock) nextEnd() (next *time.Time) {
	for _, c := range l.Codes {
		if c.expires() {
			next = earlier(next, *c.EndsAt)
		}
	}
	return next
}

// expires reports whether a code has an end time at which it is removed.
func (c *Code) expires() bool { return c.Managed && c.RemovingSince == nil && c.EndsAt != nil }

// Forget deletes the codes of a device whose record is deleted, except those of its backup pool. They still open.
func (l *Lock) Forget() {
	l.Device.Removed = true
	for _, c := range slices.Clone(l.Codes) {
		if !c.InPool {
			l.deleteCode(c)
		}
	}
}

// needsTombstone reports whether a deleted code was sent but never observed, so that its vendor may deliver it after
// every timeout. A code on a removed device gets no tombstone: it counts as unmanaged when the device returns.
func (l *Lock) needsTombstone(c *Code) bool {
	sent := c.WriteGen > 0 || c.WritePIN != "" || c.VendorName != nil
	observed := c.Ref != "" && c.AppliedGen > 0
	return c.Managed && c.Offline == "" && sent && !observed && !l.Device.Removed
}
