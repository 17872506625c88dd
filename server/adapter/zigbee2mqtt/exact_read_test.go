package zigbee2mqtt_test

import (
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// Between the read of a slot and its write, a code is added on a lock that does not report it. An unrelated report
// arrives before the lock's response.
func TestReportIsNotMistakenForResponse(t *testing.T) {
	t.Parallel()
	for _, profile := range []zigbee.Profile{zigbee.Plain, zigbee.Hidden, zigbee.Masked} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			b.codes()
			b.lock.Hold(t, true)
			frames := b.lock.State(t).Frames
			type outcome struct {
				adapter.PutResult
				err error
			}
			put := make(chan outcome, 1)
			go func() {
				result, err := b.PutCode(t.Context(), b.ref, adapter.CodeSpec{Key: "ours", PIN: "60216021"})
				put <- outcome{result, err}
			}()
			b.until("the slot is read", func() bool { return b.lock.State(t).Frames > frames })
			b.lock.ProgramSilently(t, 3, "70317031")
			b.lock.Report(t)
			b.lock.LockByHand(t)
			for e := range b.Events() { // earlier events are consumed as well
				if e.Kind == adapter.LockOperated {
					break
				}
			}
			b.lock.Hold(t, false)
			got := <-put
			if got.err != nil {
				t.Fatal(got.err)
			}
			codes := b.lock.State(t).Codes
			if codes[3] != "70317031" {
				t.Error("the stranger's code was overwritten")
			}
			if got.Ref == "3" || codes[4] != "60216021" {
				t.Errorf("the code is at %s", got.Ref)
			}
		})
	}
}

func TestDisabledCodeIsEnabledByPutCode(t *testing.T) {
	t.Parallel()
	for _, profile := range []zigbee.Profile{zigbee.Plain, zigbee.Hidden, zigbee.Masked} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			ref := b.put("ours", "60216021")
			isDisabled := func() bool {
				codes, err := b.Codes(t.Context(), b.ref, true)
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(codes.Codes, func(c adapter.Code) bool { return c.Ref == ref })
				return i >= 0 && codes.Codes[i].Disabled
			}
			if isDisabled() {
				t.Fatal("it is shown as disabled at first")
			}
			b.lock.Disable(t, 3)
			b.until("it is shown as disabled", isDisabled)
			if _, err := b.PutCode(t.Context(), b.ref,
				adapter.CodeSpec{Ref: ref, Key: "ours", PIN: "60216021"}); err != nil {
				t.Fatal(err)
			}
			if s := b.lock.State(t); len(s.Disabled) > 0 || s.Codes[3] != "60216021" {
				t.Errorf("disabled on the lock are %v", s.Disabled)
			}
			if isDisabled() {
				t.Error("it is still shown as disabled")
			}
		})
	}
}

// A user without permission for requests behaves like an old version without these requests.
func TestCodesWithoutExactReads(t *testing.T) {
	t.Parallel()
	for _, profile := range []zigbee.Profile{zigbee.Plain, zigbee.Hidden} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, profile)
			config := b.config
			config.Username, config.Password = zigbee.Limited, b.gateway.Password(zigbee.Limited)
			a, err := zigbee2mqtt.New(config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = a.Close() })
			d, err := a.Device(t.Context(), b.ref)
			if err != nil || d.Capabilities.MaxCodes != zigbee.Slots-1 ||
				!slices.Equal(d.Capabilities.CodeLengths, []int{4, 5, 6, 7, 8}) {
				t.Fatalf(
					"the lock's limits are %d codes of %v digits, %v",
					d.Capabilities.MaxCodes,
					d.Capabilities.CodeLengths,
					err,
				)
			}
			result, err := a.PutCode(t.Context(), b.ref, adapter.CodeSpec{Key: "ours", PIN: "60216021"})
			if err != nil || result.Ref != "3" || b.lock.State(t).Codes[3] != "60216021" {
				t.Fatalf("a code is put: %v", err)
			}
			if _, err := a.DeleteCode(t.Context(), b.ref, result.Ref); err != nil || len(b.lock.State(t).Codes) != 2 {
				t.Errorf("it is deleted: %v", err)
			}
		})
	}
}
