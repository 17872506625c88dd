package adaptertest

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// shows waits until Codes returns the code with the PIN.
func (c *trial) shows(ref adapter.CodeRef, pin string) {
	c.Helper()
	c.until(func() string {
		code, ok := find(c.read(), ref)
		switch {
		case !ok:
			return "the code is not listed"
		case c.caps.PINVisible && code.PIN != pin:
			return "the listed PIN differs"
		}
		c.showsPIN(code, pin)
		return ""
	})
}

func foreignAdded(c *trial) {
	c.need(c.AddForeign != nil, "add a code at the keypad")
	pin := c.pins.next(c.caps.CodeLengths[0])
	ref := c.AddForeign(c.T, "Neighbour", pin)
	c.awaitEvent(adapter.CodesChanged)
	c.shows(ref, pin)
}

func foreignChanged(c *trial) {
	c.need(c.ChangeForeign != nil && c.caps.OnlineCodes, "change a code at the keypad")
	ref := c.put(c.spec("changed")).Ref
	// Consume the event of the write.
	c.awaitEvent(adapter.CodesChanged)
	pin := c.pins.next(c.caps.CodeLengths[0])
	c.ChangeForeign(c.T, ref, pin)
	c.awaitEvent(adapter.CodesChanged)
	c.shows(ref, pin)
}

func foreignDeleted(c *trial) {
	c.need(c.DeleteForeign != nil && c.caps.OnlineCodes, "delete a code at the keypad")
	ref := c.put(c.spec("deleted")).Ref
	// Consume the event of the write.
	c.awaitEvent(adapter.CodesChanged)
	c.DeleteForeign(c.T, ref)
	c.awaitEvent(adapter.CodesChanged)
	c.gone(ref)
}

func offlineChanges(c *trial) {
	c.need(c.SetOnline != nil && c.AddForeign != nil, "add a code at the keypad while offline")
	c.SetOnline(c.T, false)
	c.awaitEvent(adapter.DeviceOffline)
	pin := c.pins.next(c.caps.CodeLengths[0])
	ref := c.AddForeign(c.T, "Neighbour", pin)
	c.SetOnline(c.T, true)
	c.awaitEvent(adapter.DeviceOnline, adapter.CodesChanged)
	c.shows(ref, pin)
}

func connectionTold(c *trial) {
	c.need(c.SetOnline != nil, "take the device offline")
	for _, online := range []bool{false, true} {
		c.SetOnline(c.T, online)
		kind := adapter.DeviceOffline
		if online {
			kind = adapter.DeviceOnline
		}
		c.awaitEvent(kind)
		c.until(func() string {
			d, err := c.Adapter.Device(c.ctx(), c.Device)
			if err != nil || d.Online != online {
				return "the device shows another connection state"
			}
			return ""
		})
	}
}

func removalTold(c *trial) {
	c.need(c.Remove != nil, "remove the device")
	c.Remove(c.T)
	c.awaitEvent(adapter.DeviceListed)
}

func closed(c *trial) {
	for range 2 {
		if err := c.Adapter.Close(); err != nil {
			c.Fatalf("Close: %v", err)
		}
	}
	deadline := time.After(c.Timeout)
	for {
		select {
		case _, ok := <-c.Adapter.Events():
			if !ok {
				return
			}
		case <-deadline:
			c.Fatal("the channel of events is open after Close")
		}
	}
}
