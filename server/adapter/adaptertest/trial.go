package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// trial is one check with its bed.
type trial struct {
	*testing.T
	Bed
	caps capability.Set
	pins pins
	// specs counts the calls of spec, for names that differ.
	specs int
}

// between is the interval between two evaluations of a condition.
const between = 2 * time.Millisecond

// openTrial returns a trial of an online device of any kind.
func openTrial(t *testing.T, b Bed) *trial {
	t.Helper()
	if b.Timeout == 0 {
		b.Timeout = testenv.Timeout(testenv.WaitTimeout)
	}
	c := &trial{T: t, Bed: b}
	t.Cleanup(func() {
		if err := b.Adapter.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	device, err := b.Adapter.Device(c.ctx(), b.Device)
	if err != nil {
		t.Fatalf("read the device: %v", err)
	}
	if !device.Online {
		t.Fatal("the device is not online")
	}
	c.caps = device.Capabilities
	return c
}

// newTrial returns a trial of a lock.
func newTrial(t *testing.T, b Bed) *trial {
	t.Helper()
	c := openTrial(t, b)
	c.pins = newPINs(c.caps, b.PIN)
	for _, code := range c.read().Codes {
		c.pins.exclude(code.PIN)
	}
	if b.Memory != nil {
		for _, code := range b.Memory(t) {
			c.pins.exclude(code.PIN)
		}
	}
	return c
}

// need skips the check when able is false.
func (c *trial) need(able bool, what string) {
	c.Helper()
	if !able {
		c.Skipf("the bed or the device cannot %s", what)
	}
}

// ctx returns a context with the maximum duration of a call.
func (c *trial) ctx() context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), c.Timeout)
	c.Cleanup(cancel)
	return ctx
}

// until waits until missing returns "". Otherwise missing describes the unmet condition.
func (c *trial) until(missing func() string) {
	c.Helper()
	deadline := time.Now().Add(c.Timeout)
	for {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("after %s: %s", c.Timeout, what)
		}
		c.pause(between)
	}
}

func (c *trial) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.Context().Done():
	}
}

// spec returns a code that the device accepts.
func (c *trial) spec(key string) adapter.CodeSpec {
	c.specs++
	spec := adapter.CodeSpec{Key: key, Name: fmt.Sprintf("Guest %d %s", c.specs, key)}
	for _, k := range c.caps.Constraints {
		if k.Type == "name_length" && k.MaxLength > 0 {
			spec.Name = spec.Name[:min(len(spec.Name), k.MaxLength)]
		}
	}
	if !c.caps.ProviderPIN {
		spec.PIN = c.pins.next(c.caps.CodeLengths[0])
	}
	return spec
}

// write repeats a write while its error is retryable.
func (c *trial) write(do func() error) error {
	c.Helper()
	deadline := time.Now().Add(c.Timeout)
	for {
		err := do()
		if err == nil || !adapter.ClassOf(err).Retryable() || time.Now().After(deadline) {
			return err
		}
		e, _ := errors.AsType[*adapter.Error](err)
		c.pause(max(between, e.RetryAfter))
	}
}

func (c *trial) tryPut(spec adapter.CodeSpec) (result adapter.PutResult, err error) {
	c.Helper()
	err = c.write(func() error {
		result, err = c.Adapter.PutCode(c.ctx(), c.Device, spec)
		return err
	})
	c.typed(err, spec.PIN)
	return result, err
}

// put writes a code and waits until it is on the device.
func (c *trial) put(spec adapter.CodeSpec) adapter.PutResult {
	c.Helper()
	result, err := c.tryPut(spec)
	if err != nil {
		c.Fatalf("PutCode: %v", err)
	}
	if result.Ref == "" {
		c.Fatal("PutCode: the result has no ref")
	}
	c.settled(result.Ref)
	return result
}

// settled waits until the code is confirmed, and returns it.
func (c *trial) settled(ref adapter.CodeRef) adapter.Code {
	c.Helper()
	var code adapter.Code
	c.until(func() string {
		var ok bool
		code, ok = find(c.read(), ref)
		switch {
		case !ok:
			return "the code is not read back"
		case code.Failed != nil:
			return "the code failed: " + code.Failed.Error()
		case code.State != adapter.Confirmed:
			return "the code is not confirmed"
		}
		return ""
	})
	return code
}

// delete deletes a code and waits until it is no more listed.
func (c *trial) delete(ref adapter.CodeRef) {
	c.Helper()
	if err := c.write(func() error {
		_, err := c.Adapter.DeleteCode(c.ctx(), c.Device, ref)
		return err
	}); err != nil {
		c.Fatalf("DeleteCode: %v", err)
	}
	c.gone(ref)
}

func (c *trial) gone(ref adapter.CodeRef) {
	c.Helper()
	c.until(func() string {
		if _, ok := find(c.read(), ref); ok {
			return "the code is still listed"
		}
		return ""
	})
}

// read returns the codes as read from the device itself.
func (c *trial) read() adapter.Codes {
	c.Helper()
	var codes adapter.Codes
	err := c.write(func() (err error) {
		codes, err = c.Adapter.Codes(c.ctx(), c.Device, true)
		return err
	})
	if err != nil {
		c.Fatalf("Codes: %v", err)
	}
	return codes
}

// refused requires that a write fails with class, in its response or later on the device.
func (c *trial) refused(spec adapter.CodeSpec, class adapter.Class, why string) *adapter.Error {
	c.Helper()
	result, err := c.tryPut(spec)
	failed, _ := errors.AsType[*adapter.Error](err)
	if err == nil && result.State == adapter.Accepted {
		c.until(func() string {
			code, ok := find(c.read(), result.Ref)
			if failed = code.Failed; failed == nil && ok && code.State == adapter.Accepted {
				return why + " is still on its way"
			}
			return ""
		})
	}
	if failed == nil {
		c.Fatalf("%s was accepted", why)
	}
	if failed.Class != class {
		c.Fatalf("%s: class %s, want %s (%v)", why, failed.Class, class, failed)
	}
	return failed
}

// fails requires that err has the class.
func (c *trial) fails(err error, class adapter.Class, what string) {
	c.Helper()
	c.typed(err, "")
	if err == nil {
		c.Fatalf("%s succeeded, want %s", what, class)
	}
	if got := adapter.ClassOf(err); got != class {
		c.Fatalf("%s: class %s, want %s (%v)", what, got, class, err)
	}
}

// typed requires that err is an *adapter.Error that does not contain the PIN.
func (c *trial) typed(err error, pin string) {
	c.Helper()
	if err == nil {
		return
	}
	if _, ok := errors.AsType[*adapter.Error](err); !ok {
		c.Fatalf("the error is not an *adapter.Error: %v", err)
	}
	if pin != "" && strings.Contains(err.Error(), pin) {
		c.Fatal("the error carries the PIN")
	}
}

// awaitEvent waits for an event of one of the kinds about the device or the account, or for a Resync.
func (c *trial) awaitEvent(kinds ...adapter.EventKind) {
	c.Helper()
	deadline := time.After(c.Timeout)
	for {
		select {
		case e, ok := <-c.Adapter.Events():
			if !ok {
				c.Fatal("the events ended")
			}
			if e.Kind == adapter.Resync {
				return
			}
			for _, kind := range kinds {
				if e.Kind == kind && (e.Device == c.Device || e.Device == "") {
					return
				}
			}
		case <-deadline:
			c.Fatalf("after %s: no event of %v", c.Timeout, kinds)
		}
	}
}

// onDevice returns the code in the device's memory.
func (c *trial) onDevice(ref adapter.CodeRef) (OnDevice, bool) {
	c.Helper()
	for _, code := range c.Memory(c.T) {
		if code.Ref == ref {
			return code, true
		}
	}
	return OnDevice{}, false
}

func find(codes adapter.Codes, ref adapter.CodeRef) (adapter.Code, bool) {
	for _, code := range codes.Codes {
		if code.Ref == ref {
			return code, true
		}
	}
	return adapter.Code{}, false
}
