package adaptertest

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// locker returns the adapter as an adapter.Locker. It skips the check if the device cannot be moved remotely.
func (c *trial) locker() adapter.Locker {
	c.Helper()
	c.need(c.caps.Lock && c.caps.Unlock, "be locked and unlocked remotely")
	l, ok := c.Adapter.(adapter.Locker)
	if !ok {
		c.Fatal("the device can be locked remotely, but the adapter does not implement adapter.Locker")
	}
	return l
}

// move moves the bolt and waits until the device shows the new position.
func (c *trial) move(locked bool) {
	c.Helper()
	l := c.locker()
	act, what := l.Unlock, "Unlock"
	if locked {
		act, what = l.Lock, "Lock"
	}
	var state adapter.State
	if err := c.write(func() (err error) { state, err = act(c.ctx(), c.Device); return err }); err != nil {
		c.Fatalf("%s: %v", what, err)
	}
	if state != adapter.Accepted && state != adapter.Confirmed {
		c.Fatalf("%s: state %q", what, state)
	}
	c.bolt(locked)
}

// bolt waits until the device shows the position of the bolt.
func (c *trial) bolt(locked bool) {
	c.Helper()
	c.until(func() string {
		d, err := c.Adapter.Device(c.ctx(), c.Device)
		switch {
		case err != nil:
			return "the device cannot be read: " + err.Error()
		case d.Locked == nil:
			return "the device does not show the position of the bolt"
		case *d.Locked != locked:
			return "the device shows the old position of the bolt"
		}
		return ""
	})
}

// operated waits for an event of the kind about the device for which is returns true, and skips other events.
func (c *trial) operated(kind adapter.EventKind, is func(adapter.Event) bool) {
	c.Helper()
	events := c.Adapter.Events()
	ctx := c.ctx()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				c.Fatal("the events ended")
			}
			if e.Kind == kind && e.Device == c.Device && is(e) {
				return
			}
		case <-ctx.Done():
			c.Fatalf("after %s: no such event of kind %s", c.Timeout, kind)
		}
	}
}

func lockMoved(c *trial) {
	for _, locked := range []bool{false, true, true, false} { // including repeated commands
		c.move(locked)
	}
}

func lockTold(c *trial) {
	for _, locked := range []bool{false, true} {
		c.move(locked)
		c.operated(adapter.LockOperated, func(e adapter.Event) bool {
			return e.Operation.Locked == locked && e.Operation.Method == adapter.Remotely
		})
	}
}

func lockUnsupported(c *trial) {
	l, ok := c.Adapter.(adapter.Locker)
	c.need(ok && (!c.caps.Lock || !c.caps.Unlock), "lack remote locking")
	for what, call := range map[string]struct {
		able bool
		act  func(context.Context, adapter.DeviceRef) (adapter.State, error)
	}{"Lock": {c.caps.Lock, l.Lock}, "Unlock": {c.caps.Unlock, l.Unlock}} {
		if !call.able {
			_, err := call.act(c.ctx(), c.Device)
			c.fails(err, adapter.NotSupported, what)
		}
	}
}

func lockUnknown(c *trial) {
	_, err := c.locker().Unlock(c.ctx(), c.Device+"0")
	c.fails(err, adapter.NotFound, "Unlock of an unknown device")
}

func lockOffline(c *trial) {
	c.need(c.SetOnline != nil, "take the device offline")
	l := c.locker()
	c.SetOnline(c.T, false)
	c.until(func() string {
		if d, err := c.Adapter.Device(c.ctx(), c.Device); err != nil || d.Online {
			return "the device is not shown as offline"
		}
		return ""
	})
	_, err := l.Unlock(c.ctx(), c.Device)
	c.fails(err, adapter.Offline, "Unlock of an offline device")
	_, err = l.Lock(c.ctx(), c.Device)
	c.fails(err, adapter.Offline, "Lock of an offline device")
}

func jamTold(c *trial) {
	c.need(c.Jam != nil, "jam the bolt")
	l := c.locker()
	c.move(true)
	c.Jam(c.T)
	if _, err := l.Unlock(c.ctx(), c.Device); err != nil {
		c.typed(err, "")
		return // the vendor reports the jam in the response
	}
	c.operated(adapter.Jammed, func(e adapter.Event) bool { return !e.Operation.Locked })
}

func codeUseTold(c *trial) {
	c.need(c.Enter != nil && c.caps.OnlineCodes, "open the door with a code")
	spec := c.spec("used")
	result := c.put(spec)
	pin := spec.PIN
	if c.caps.ProviderPIN {
		pin = result.PIN
	}
	c.Enter(c.T, pin)
	c.operated(adapter.LockOperated, func(e adapter.Event) bool {
		return !e.Operation.Locked && e.Operation.Method == adapter.ByKeycode && (e.Code == result.Ref || e.Code == "")
	})
}

func wrongCodeTold(c *trial) {
	c.need(c.EnterWrong != nil, "be refused at the door")
	c.EnterWrong(c.T, c.pins.next(c.caps.CodeLengths[0]))
	c.operated(adapter.AccessDenied, func(adapter.Event) bool { return true })
}

func handTold(c *trial) {
	c.need(c.LockByHand != nil, "be locked by hand")
	c.LockByHand(c.T)
	c.operated(adapter.LockOperated, func(e adapter.Event) bool {
		return e.Operation.Locked && e.Operation.Method == adapter.ByHand
	})
	c.bolt(true)
}
