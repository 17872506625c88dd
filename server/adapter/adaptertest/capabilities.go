package adaptertest

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

func listedAsRead(c *trial) {
	devices, err := c.Adapter.Devices(c.ctx())
	if err != nil {
		c.Fatalf("Devices: %v", err)
	}
	read, err := c.Adapter.Device(c.ctx(), c.Device)
	if err != nil {
		c.Fatalf("Device: %v", err)
	}
	i := slices.IndexFunc(devices, func(d adapter.Device) bool { return d.Ref == c.Device })
	if i < 0 {
		c.Fatal("the device is not listed")
	}
	if !reflect.DeepEqual(devices[i], read) {
		c.Fatalf("listed as %+v, read as %+v", devices[i], read)
	}
	if read.Name == "" || read.Type == "" || read.Provider == "" {
		c.Fatalf("name, type and provider are needed: %+v", read)
	}
	if b := read.BatteryLevel; b != nil && (*b < 0 || *b > 1) {
		c.Fatalf("the battery level %v is not between 0 and 1", *b)
	}
}

func capsAgree(c *trial) {
	switch {
	case !slices.IsSorted(c.caps.CodeLengths) || c.caps.OnlineCodes && len(c.caps.CodeLengths) == 0:
		c.Fatalf("code lengths %v", c.caps.CodeLengths)
	case c.caps.Convert == capability.ConvertAdopt && !c.caps.PINVisible:
		c.Fatal("codes can be adopted though their PINs are hidden")
	case !slices.Contains([]capability.Convert{capability.ConvertAdopt, capability.ConvertRewrite, capability.ConvertNever},
		c.caps.Convert):
		c.Fatalf("convert %q", c.caps.Convert)
	case !slices.Contains([]capability.Confirm{capability.ConfirmSync, capability.ConfirmReadBack}, c.caps.Confirm):
		c.Fatalf("confirm %q", c.caps.Confirm)
	case c.caps.ProviderPIN != slices.ContainsFunc(c.caps.Constraints, func(k capability.Constraint) bool {
		return k.Type == "cannot_specify_pin_code"
	}):
		c.Fatal("ProviderPIN and the constraint cannot_specify_pin_code go together")
	}
}

func lengthsAccepted(c *trial) {
	c.need(c.caps.OnlineCodes && !c.caps.ProviderPIN, "choose a PIN")
	for _, length := range c.caps.CodeLengths {
		spec := c.spec("")
		spec.PIN = c.pins.next(length)
		c.put(spec)
	}
}

func lengthsRefused(c *trial) {
	c.need(c.caps.OnlineCodes && !c.caps.ProviderPIN, "choose a PIN")
	spec := c.spec("")
	shortest, longest := c.caps.CodeLengths[0], c.caps.CodeLengths[len(c.caps.CodeLengths)-1]
	for why, pin := range map[string]string{
		"no PIN":             "",
		"a PIN too short":    c.pins.next(shortest)[1:],
		"a PIN too long":     c.pins.next(longest) + "5",
		"a PIN with letters": "a" + c.pins.next(shortest)[1:],
	} {
		spec.PIN = pin
		_ = c.refused(spec, adapter.Invalid, why)
	}
}

func constraintsKept(c *trial) {
	c.need(c.caps.OnlineCodes && len(c.caps.Constraints) > 0, "constrain PINs")
	tried := false
	for _, k := range c.caps.Constraints {
		spec := c.spec("")
		if k.Type == "cannot_specify_pin_code" {
			tried = true
			spec.PIN = c.pins.next(c.caps.CodeLengths[0])
			_ = c.refused(spec, adapter.Invalid, "a PIN that the vendor chooses")
		}
		for _, pin := range broken(k.Type, c.caps.CodeLengths[0]) {
			tried = true
			spec.PIN = pin
			_ = c.refused(spec, adapter.Invalid, "a PIN that breaks "+k.Type)
		}
	}
	c.need(tried, "constrain single PINs")
}

func namesKept(c *trial) {
	i := slices.IndexFunc(c.caps.Constraints, func(k capability.Constraint) bool { return k.Type == "name_length" })
	c.need(c.caps.OnlineCodes && i >= 0, "constrain names")
	least, most := c.caps.Constraints[i].MinLength, c.caps.Constraints[i].MaxLength
	letter := "é"
	if c.caps.NameCharacters == capability.NamesAlphanumeric {
		letter = "e"
	}
	for _, length := range []int{max(least, 1), most} {
		if length > 0 {
			spec := c.spec("")
			spec.Name = strings.Repeat(letter, length)
			c.put(spec)
		}
	}
	spec := c.spec("")
	if most > 0 {
		spec.Name = strings.Repeat(letter, most+1)
		_ = c.refused(spec, adapter.Invalid, "a name too long")
	}
	if least > 0 {
		spec.Name = strings.Repeat(letter, least-1)
		_ = c.refused(spec, adapter.Invalid, "a name too short")
	}
}

func nameCharactersKept(c *trial) {
	c.need(c.caps.OnlineCodes && c.caps.NameCharacters == capability.NamesAlphanumeric, "restrict characters of names")
	spec := c.spec("")
	c.put(spec)
	for _, name := range []string{"Zoé", "A.B", "Жанна"} {
		spec := c.spec("")
		spec.Name = name
		_ = c.refused(spec, adapter.Invalid, "a name with other characters")
	}
}

func namesUnique(c *trial) {
	unique := slices.Contains(c.caps.Constraints, capability.Constraint{Type: "name_must_be_unique"})
	c.need(c.caps.OnlineCodes && unique, "require unique names")
	first, second := c.spec("first"), c.spec("second")
	second.Name = first.Name
	first.Ref = c.put(first).Ref
	_ = c.refused(second, adapter.Invalid, "a name that another code has")
	c.put(first) // its own name
}

// timed returns spec with a time frame of full minutes, because some devices store no seconds.
func timed(spec adapter.CodeSpec, from time.Duration) adapter.CodeSpec {
	starts := time.Now().Add(from).Truncate(time.Minute).UTC()
	ends := starts.Add(48 * time.Hour)
	spec.StartsAt, spec.EndsAt = &starts, &ends
	return spec
}

func timeFrameKept(c *trial) {
	c.need(c.caps.OnlineCodes, "put codes")
	spec := timed(c.spec("timed"), 24*time.Hour)
	if !c.caps.NativeSchedule {
		_ = c.refused(spec, adapter.NotSupported, "a time frame")
		return
	}
	ref := c.put(spec).Ref
	c.hasTimeFrame(ref, spec)
}

// hasTimeFrame requires that Codes and the device show the time frame of spec.
func (c *trial) hasTimeFrame(ref adapter.CodeRef, spec adapter.CodeSpec) {
	c.Helper()
	code := c.settled(ref)
	if !same(code.StartsAt, spec.StartsAt) || !same(code.EndsAt, spec.EndsAt) {
		c.Fatalf("read back from %v to %v, want %v to %v", code.StartsAt, code.EndsAt, spec.StartsAt, spec.EndsAt)
	}
	if c.Memory == nil {
		return
	}
	if kept, _ := c.onDevice(ref); !same(kept.StartsAt, spec.StartsAt) || !same(kept.EndsAt, spec.EndsAt) {
		c.Fatalf("the device has from %v to %v, want %v to %v", kept.StartsAt, kept.EndsAt, spec.StartsAt, spec.EndsAt)
	}
}

func same(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

func timeFrameHalf(c *trial) {
	c.need(c.caps.OnlineCodes && c.caps.NativeSchedule, "keep time frames")
	spec := timed(c.spec("half"), 24*time.Hour)
	spec.EndsAt = nil
	_ = c.refused(spec, adapter.Invalid, "a time frame without end")
	spec = timed(spec, 24*time.Hour)
	spec.StartsAt = nil
	_ = c.refused(spec, adapter.Invalid, "a time frame without start")
	spec = timed(spec, 24*time.Hour)
	spec.StartsAt, spec.EndsAt = spec.EndsAt, spec.StartsAt
	_ = c.refused(spec, adapter.Invalid, "a time frame that ends before it starts")
}

func timeFramePast(c *trial) {
	required := slices.ContainsFunc(c.caps.Constraints,
		func(k capability.Constraint) bool { return k.Type == "start_date_in_future" })
	c.need(c.caps.NativeSchedule && required, "require a start in the future")
	_ = c.refused(timed(c.spec("past"), -24*time.Hour), adapter.Invalid, "a start in the past")
}
