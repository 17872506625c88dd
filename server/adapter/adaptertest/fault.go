package adaptertest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func duplicateRefused(c *trial) {
	c.need(c.caps.OnlineCodes && !c.caps.ProviderPIN, "choose a PIN")
	spec := c.spec("first")
	ref := c.put(spec).Ref
	spec.Key = "second"
	if e := c.refused(spec, adapter.Duplicate, "a duplicate PIN"); e.Conflict != "" && e.Conflict != ref {
		c.Fatalf("the conflict is with %s, want %s", e.Conflict, ref)
	}
}

func duplicateForeign(c *trial) {
	c.need(c.AddForeign != nil && c.caps.OnlineCodes && !c.caps.ProviderPIN, "add a code at the keypad")
	spec := c.spec("ours")
	c.AddForeign(c.T, "Neighbour", spec.PIN)
	_ = c.refused(spec, adapter.Duplicate, "a PIN that is on the device")
}

func fullRefuses(c *trial) {
	c.need(c.Fill != nil && c.caps.OnlineCodes, "fill the device")
	c.Fill(c.T)
	_ = c.refused(c.spec("more"), adapter.Full, "a code for a full device")
}

func unknownDevice(c *trial) {
	c.notFound(c.Device + "0")
}

func removedDevice(c *trial) {
	c.need(c.Remove != nil, "remove the device")
	c.Remove(c.T)
	c.notFound(c.Device)
	devices, err := c.Adapter.Devices(c.ctx())
	if err != nil {
		c.Fatalf("Devices: %v", err)
	}
	for _, d := range devices {
		if d.Ref == c.Device {
			c.Fatal("the removed device is listed")
		}
	}
}

func (c *trial) notFound(device adapter.DeviceRef) {
	c.Helper()
	_, err := c.Adapter.Device(c.ctx(), device)
	c.fails(err, adapter.NotFound, "Device")
	_, err = c.Adapter.Codes(c.ctx(), device, false)
	c.fails(err, adapter.NotFound, "Codes")
	_, err = c.Adapter.PutCode(c.ctx(), device, c.spec("nowhere"))
	c.fails(err, adapter.NotFound, "PutCode")
}

func offlineRefuses(c *trial) {
	c.need(c.SetOnline != nil && c.caps.OnlineCodes, "take the device offline")
	ref := c.put(c.spec("before")).Ref
	c.SetOnline(c.T, false)
	c.until(func() string {
		d, err := c.Adapter.Device(c.ctx(), c.Device)
		if err != nil || d.Online {
			return "the device is not shown as offline"
		}
		return ""
	})
	spec := c.spec("offline")
	_, err := c.Adapter.PutCode(c.ctx(), c.Device, spec)
	c.fails(err, adapter.Offline, "PutCode")
	_, err = c.Adapter.DeleteCode(c.ctx(), c.Device, ref)
	c.fails(err, adapter.Offline, "DeleteCode")
	_, err = c.Adapter.Codes(c.ctx(), c.Device, true)
	c.fails(err, adapter.Offline, "Codes, fresh")
	codes, err := c.Adapter.Codes(c.ctx(), c.Device, false)
	if err != nil {
		c.fails(err, adapter.Offline, "Codes")
	} else if !codes.Stale {
		c.Fatal("codes of an offline device are not stale")
	}

	c.SetOnline(c.T, true)
	c.put(spec)
	c.delete(ref)
}

func revokedTold(c *trial) {
	c.need(c.Revoke != nil, "revoke the account")
	c.Revoke(c.T)
	// A gateway that has closed the connection reports the reason on reconnection.
	c.until(func() string {
		if _, err := c.Adapter.Devices(c.ctx()); err != nil && adapter.ClassOf(err) == adapter.GatewayDown {
			return "the gateway has not reported why it closed the connection"
		}
		return ""
	})
	_, err := c.Adapter.Devices(c.ctx())
	c.fails(err, adapter.AuthRevoked, "Devices")
	_, err = c.Adapter.Codes(c.ctx(), c.Device, true)
	c.fails(err, adapter.AuthRevoked, "Codes")
	_, err = c.Adapter.PutCode(c.ctx(), c.Device, c.spec("revoked"))
	c.fails(err, adapter.AuthRevoked, "PutCode")
	_, err = c.Adapter.DeleteCode(c.ctx(), c.Device, "any")
	c.fails(err, adapter.AuthRevoked, "DeleteCode")
}

func droppedSeen(c *trial) {
	c.need(c.DropNext != nil && c.caps.OnlineCodes, "drop a write")
	c.DropNext(c.T)
	spec := c.spec("dropped")
	result, err := c.Adapter.PutCode(c.ctx(), c.Device, spec)
	if err != nil { // the adapter detected it
		c.fails(err, adapter.Unconfirmed, "PutCode")
	} else {
		c.gone(result.Ref)
	}
	c.put(spec)
}

func droppedDeleteSeen(c *trial) {
	c.need(c.DropNext != nil && c.caps.OnlineCodes, "drop a write")
	ref := c.put(c.spec("kept")).Ref
	c.DropNext(c.T)
	if _, err := c.Adapter.DeleteCode(c.ctx(), c.Device, ref); err != nil { // the adapter detected it
		c.fails(err, adapter.Unconfirmed, "DeleteCode")
	}
	c.until(func() string {
		if code, ok := find(c.read(), ref); !ok || code.Removing {
			return "the code is not read back as staying"
		}
		return ""
	})
	c.delete(ref)
}

func brokenSeen(c *trial) {
	c.need(c.BreakNext != nil && c.Heal != nil && c.caps.OnlineCodes, "break a write")
	c.BreakNext(c.T)
	spec := c.spec("broken")
	result, err := c.Adapter.PutCode(c.ctx(), c.Device, spec)
	c.Heal(c.T)
	if err == nil {
		c.until(func() string {
			if code, ok := find(c.read(), result.Ref); ok && code.Failed == nil {
				return "the failed code is read back as on its way"
			}
			return ""
		})
	}
	c.put(spec)
}

func cutUnconfirmed(c *trial) {
	c.need(c.CutNext != nil && c.Heal != nil && c.caps.OnlineCodes, "lose an answer")
	before := len(c.read().Codes)
	spec := c.spec("cut")
	c.CutNext(c.T)
	_, err := c.Adapter.PutCode(c.ctx(), c.Device, spec)
	c.fails(err, adapter.Unconfirmed, "PutCode")
	c.Heal(c.T)
	c.put(spec)
	if got := len(c.read().Codes); got != before+1 {
		c.Fatalf("got %d more codes, want 1", got-before)
	}
}

// strangerKept loses the response to a creation that the vendor must refuse.
func strangerKept(c *trial) {
	c.need(c.CutNext != nil, "lose an answer")
	c.need(c.AddForeign != nil && c.caps.OnlineCodes && !c.caps.ProviderPIN, "add a code at the keypad")
	spec := c.spec("ours")
	name := spec.Name
	if slices.Contains(c.caps.Constraints, capability.Constraint{Type: "name_must_be_unique"}) {
		name = "Neighbour"
	}
	there := c.stranger(name, spec.PIN)
	c.lost(spec, c.CutNext)
	c.stands(there, spec)
}

// laterStrangerKept loses a creation. Another person takes the PIN before the creation is repeated.
func laterStrangerKept(c *trial) {
	c.need(c.LoseNext != nil, "lose a creation")
	c.need(c.AddForeign != nil && c.caps.OnlineCodes && !c.caps.ProviderPIN, "add a code at the keypad")
	spec := c.spec("ours")
	c.lost(spec, c.LoseNext)
	c.stands(c.stranger("Neighbour", spec.PIN), spec)
}

// stranger is a code of another person.
type stranger struct {
	listed adapter.Code
	kept   OnDevice // some devices hide its PIN
}

// stranger adds a code at the keypad, and returns it when it is listed.
func (c *trial) stranger(name, pin string) (s stranger) {
	c.Helper()
	ref := c.AddForeign(c.T, name, pin)
	c.shows(ref, pin)
	s.listed, _ = find(c.read(), ref)
	if c.Memory != nil {
		s.kept, _ = c.onDevice(ref)
	}
	return s
}

// lost tries a creation once, while lose is in effect.
func (c *trial) lost(spec adapter.CodeSpec, lose func(testing.TB)) {
	c.Helper()
	lose(c.T)
	result, err := c.Adapter.PutCode(c.ctx(), c.Device, spec)
	c.typed(err, spec.PIN)
	if err == nil && result.State == adapter.Confirmed {
		c.Fatal("a lost creation is confirmed")
	}
	c.Heal(c.T)
}

// stands requires that a creation of spec is refused, and that the code of another person with its PIN stays unchanged.
func (c *trial) stands(s stranger, spec adapter.CodeSpec) {
	c.Helper()
	e := c.refused(spec, adapter.Duplicate, "a PIN of another person")
	if e.Conflict != "" && e.Conflict != s.listed.Ref {
		c.Errorf("the conflict is with %s, want %s", e.Conflict, s.listed.Ref)
	}
	code, ok := find(c.read(), s.listed.Ref)
	if !ok || code.Name != s.listed.Name || code.PIN != s.listed.PIN || code.Removing {
		c.Errorf("the code of another person has changed (listed %v)", ok)
	}
	if c.Memory == nil {
		return
	}
	if kept, ok := c.onDevice(s.listed.Ref); !ok || kept.PIN != s.kept.PIN || kept.Name != s.kept.Name {
		c.Errorf("the device has lost or changed the code of another person (found %v)", ok)
	}
}

func faultsClassified(c *trial) {
	c.need(c.FailNext != nil && c.Heal != nil && c.caps.OnlineCodes, "make calls fail")
	spec := c.spec("fails")
	ref := c.put(c.spec("there")).Ref
	for _, class := range []adapter.Class{
		adapter.Transient, adapter.Offline, adapter.Duplicate, adapter.Full, adapter.Invalid, adapter.AuthRevoked,
	} {
		c.FailNext(c.T, class)
		_, err := c.Adapter.PutCode(c.ctx(), c.Device, spec)
		c.fails(err, class, "PutCode")
		if class == adapter.Transient || class == adapter.AuthRevoked {
			_, err = c.Adapter.Codes(c.ctx(), c.Device, true)
			c.fails(err, class, "Codes")
			_, err = c.Adapter.DeleteCode(c.ctx(), c.Device, ref)
			c.fails(err, class, "DeleteCode")
		}
		c.Heal(c.T)
	}
	c.put(spec)
}

func reconnected(c *trial) {
	c.need(c.Disconnect != nil && c.caps.OnlineCodes, "cut connections")
	spec := c.spec("before")
	c.put(spec)
	c.Disconnect(c.T)
	c.until(func() string {
		if _, err := c.Adapter.Codes(c.ctx(), c.Device, true); err != nil {
			return "the device cannot be read: " + err.Error()
		}
		return ""
	})
	c.put(c.spec("after"))
}

// promptly is the longest time that a call may continue after its context has ended.
const promptly = 15 * time.Second

func contextEnds(c *trial) {
	c.need(c.Stall != nil && c.caps.OnlineCodes, "leave calls without an answer")
	spec := c.spec("stalled")
	c.Stall(c.T)
	for what, call := range map[string]func(context.Context) error{
		"Devices": func(ctx context.Context) error { _, err := c.Adapter.Devices(ctx); return err },
		"Codes":   func(ctx context.Context) error { _, err := c.Adapter.Codes(ctx, c.Device, true); return err },
		"PutCode": func(ctx context.Context) error { _, err := c.Adapter.PutCode(ctx, c.Device, spec); return err },
	} {
		// The request is sent within this timeout.
		ctx, cancel := context.WithTimeout(c.Context(), testenv.Timeout(time.Second))
		start := time.Now()
		err := call(ctx)
		cancel()
		c.typed(err, spec.PIN)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			c.Errorf("%s: %v, want the context's error wrapped", what, err)
		}
		if took := time.Since(start); took > testenv.Timeout(promptly) {
			c.Errorf("%s continued for %s", what, took)
		}
		if what != "PutCode" || errors.Is(err, adapter.ErrNotSent) {
			continue // a read by the adapter may occupy the line
		}
		if class := adapter.ClassOf(err); class != adapter.Unconfirmed {
			c.Errorf("%s: class %s, want %s", what, class, adapter.Unconfirmed)
		}
	}
}

func nothingSent(c *trial) {
	c.need(c.caps.OnlineCodes, "put codes")
	there := c.put(c.spec("there"))
	c.settled(there.Ref)
	before := c.read().Codes
	ended, lose := context.WithCancelCause(c.ctx())
	ctx := adapter.WithLeaseCheck(ended, func() error {
		lost := errors.New("another server has the lease")
		lose(lost)
		return lost
	})
	spec := c.spec("too late")
	calls := map[string]func() error{
		"PutCode":    func() error { _, err := c.Adapter.PutCode(ctx, c.Device, spec); return err },
		"DeleteCode": func() error { _, err := c.Adapter.DeleteCode(ctx, c.Device, there.Ref); return err },
	}
	if l, ok := c.Adapter.(adapter.Locker); ok && c.caps.Lock && c.caps.Unlock {
		calls["Lock"] = func() error { _, err := l.Lock(ctx, c.Device); return err }
		calls["Unlock"] = func() error { _, err := l.Unlock(ctx, c.Device); return err }
	}
	for what, call := range calls {
		err := call()
		c.typed(err, spec.PIN)
		if class := adapter.ClassOf(err); err == nil || class != adapter.Transient && class != adapter.Unconfirmed {
			c.Errorf("%s: %v, want %s, or %s if something may have been sent earlier", what, err, adapter.Transient,
				adapter.Unconfirmed)
		}
	}
	if after := c.read().Codes; len(after) != len(before) {
		c.Errorf("got %d codes, want %d", len(after), len(before))
	}
	if _, ok := c.onDevice(there.Ref); c.Memory != nil && !ok {
		c.Error("a code was deleted")
	}
}

func stoppedTold(c *trial) {
	c.need(c.Stop != nil, "stop what the adapter calls")
	c.Stop(c.T)
	_, err := c.Adapter.Devices(c.ctx())
	c.fails(err, adapter.GatewayDown, "Devices")
	_, err = c.Adapter.PutCode(c.ctx(), c.Device, c.spec("stopped"))
	c.fails(err, adapter.GatewayDown, "PutCode")
}
