package adaptertest

import (
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

func putReadBack(c *trial) {
	c.need(c.caps.OnlineCodes, "put codes")
	spec := c.spec("one")
	result := c.put(spec)
	pin := spec.PIN
	if c.caps.ProviderPIN {
		if pin = result.PIN; len(pin) != c.caps.CodeLengths[0] {
			c.Fatalf("the vendor's PIN has %d digits", len(pin))
		}
	} else if result.PIN != "" {
		c.Fatal("the result carries a PIN that the caller chose")
	}
	code := c.settled(result.Ref)
	if code.Name != spec.Name && code.Name != "" {
		c.Fatalf("read back as %q, put as %q", code.Name, spec.Name)
	}
	if code.Key != spec.Key && code.Key != "" {
		c.Fatalf("read back with key %q, put with %q", code.Key, spec.Key)
	}
	c.showsPIN(code, pin)
	if c.Memory != nil {
		if kept, ok := c.onDevice(result.Ref); !ok || kept.PIN != pin {
			c.Fatalf("the device has another code (found %v)", ok)
		}
	}
}

// showsPIN requires that code has the PIN, or none when PINs are hidden.
func (c *trial) showsPIN(code adapter.Code, pin string) {
	c.Helper()
	switch {
	case c.caps.PINVisible && code.PIN != pin:
		c.Fatal("another PIN is read back")
	case !c.caps.PINVisible && code.PIN != "":
		c.Fatal("a PIN is read back though PINs are hidden")
	}
}

func putOnce(c *trial) {
	c.need(c.caps.OnlineCodes, "put codes")
	spec := c.spec("once")
	before := len(c.read().Codes)
	first, err := c.tryPut(spec)
	if err != nil {
		c.Fatalf("PutCode: %v", err)
	}
	onTheWay, err := c.tryPut(spec)
	if err != nil {
		c.Fatalf("PutCode again: %v", err)
	}
	c.settled(first.Ref)
	again := c.put(spec)
	if onTheWay.Ref != first.Ref || again.Ref != first.Ref {
		c.Fatalf("one key gave the codes %s, %s and %s", first.Ref, onTheWay.Ref, again.Ref)
	}
	if got := len(c.read().Codes); got != before+1 {
		c.Fatalf("got %d more codes, want 1", got-before)
	}
}

func putAgain(c *trial) {
	c.need(c.caps.OnlineCodes, "put codes")
	spec := c.spec("again")
	c.delete(c.put(spec).Ref)
	ref := c.put(spec).Ref
	if c.Memory != nil {
		if _, ok := c.onDevice(ref); !ok {
			c.Fatal("the code is not on the device")
		}
	}
}

func overwritten(c *trial) {
	c.need(c.caps.OnlineCodes, "put codes")
	spec := c.spec("old")
	result := c.put(spec)
	before := len(c.read().Codes)
	pin := result.PIN
	spec.Ref, spec.Name = result.Ref, "Other guest"
	if !c.caps.ProviderPIN {
		pin = c.pins.next(c.caps.CodeLengths[0])
		spec.PIN = pin
	}
	if !c.caps.ModifyInPlace {
		_ = c.refused(spec, adapter.NotSupported, "a change in place")
		return
	}
	changed := c.put(spec)
	c.until(func() string {
		code := c.settled(changed.Ref)
		if code.Name != spec.Name && code.Name != "" || c.caps.PINVisible && code.PIN != pin {
			return "the old name or PIN is read back"
		}
		return ""
	})
	if got := len(c.read().Codes); got != before {
		c.Fatalf("got %d codes, want %d", got, before)
	}
	if c.Memory != nil {
		if kept, _ := c.onDevice(changed.Ref); kept.PIN != pin {
			c.Fatal("the device has another PIN")
		}
	}
}

func overwrittenTimed(c *trial) {
	c.need(c.caps.ModifyInPlace && c.caps.NativeSchedule, "change a code with a time frame")
	spec := timed(c.spec("timed"), 24*time.Hour)
	spec.Ref = c.put(spec).Ref
	spec.Name = "Other guest"
	c.put(spec)
	c.hasTimeFrame(spec.Ref, spec)

	spec.StartsAt, spec.EndsAt = nil, nil
	c.put(spec)
	c.until(func() string {
		if code := c.settled(spec.Ref); code.StartsAt != nil || code.EndsAt != nil {
			return "the time frame is still set"
		}
		return ""
	})
}

func overwriteAbsent(c *trial) {
	c.need(c.caps.ModifyInPlace, "change codes")
	spec := c.spec("absent")
	spec.Ref = c.put(spec).Ref
	c.delete(spec.Ref)
	_, err := c.tryPut(spec)
	c.fails(err, adapter.NotFound, "PutCode of a deleted ref")
}

func deleted(c *trial) {
	c.need(c.caps.OnlineCodes, "put codes")
	spec := c.spec("deleted")
	ref := c.put(spec).Ref
	c.delete(ref)
	if c.Memory != nil {
		if _, ok := c.onDevice(ref); ok {
			c.Fatal("the code is still on the device")
		}
	}
	if !c.caps.ProviderPIN {
		c.put(adapter.CodeSpec{Key: "next", Name: "Next guest", PIN: spec.PIN})
	}
}

func deleteAbsent(c *trial) {
	c.need(c.caps.OnlineCodes, "put codes")
	ref := c.put(c.spec("absent")).Ref
	c.delete(ref)
	state, err := c.Adapter.DeleteCode(c.ctx(), c.Device, ref)
	if err != nil || state != adapter.Confirmed {
		c.Fatalf("DeleteCode of an absent code: %q, %v", state, err)
	}
}

func deleteForeign(c *trial) {
	c.need(c.AddForeign != nil, "add a code at the keypad")
	ref := c.AddForeign(c.T, "Neighbour", c.pins.next(c.caps.CodeLengths[0]))
	c.until(func() string {
		if _, ok := find(c.read(), ref); !ok {
			return "the foreign code is not listed"
		}
		return ""
	})
	if !c.caps.DeleteUnmanaged {
		_, err := c.Adapter.DeleteCode(c.ctx(), c.Device, ref)
		c.fails(err, adapter.NotSupported, "DeleteCode of a foreign code")
		return
	}
	c.delete(ref)
}

func convertForeign(c *trial) {
	converter, ok := c.Adapter.(adapter.Converter)
	c.need(ok && c.AddForeign != nil && c.caps.Convertible(), "convert codes")
	pin := c.pins.next(c.caps.CodeLengths[0])
	ref := c.AddForeign(c.T, "Neighbour", pin)
	c.shows(ref, pin)
	if code, _ := find(c.read(), ref); !code.Unconverted {
		c.Fatal("the code is converted already")
	}
	if _, err := converter.ConvertCode(c.ctx(), c.Device, ref); err != nil {
		c.Fatalf("ConvertCode: %v", err)
	}
	c.until(func() string {
		if code, ok := find(c.read(), ref); !ok || code.Unconverted {
			return "the code is not converted"
		}
		return ""
	})
	c.shows(ref, pin)
}
