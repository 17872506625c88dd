package zwavejs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	lab "github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
)

// kill -9 before or after the write arrives loses no code and creates no duplicate, even if the lock hides PINs.
func TestGatewayKilledDuringWrite(t *testing.T) {
	t.Parallel()
	g := lab.Start(t, lab.Plain, lab.Masked)
	for _, profile := range []lab.Profile{lab.Plain, lab.Masked} {
		h := newHouse(t, g.Lease(t, profile), g.URL)
		for _, when := range []string{"before", "after"} {
			code := spec(when, map[string]string{"before": "864209", "after": "975310"}[when])
			had := len(h.State(t).Codes)
			h.Fault(t, lab.Faults{Die: when})
			_, err := h.adapter.PutCode(t.Context(), h.device, code)
			failsAs(t, err, adapter.Unconfirmed)
			g.Ended()
			g.Restart(t)
			var codes adapter.Codes
			until(t, "the gateway is reached again", func() bool {
				codes, err = h.adapter.Codes(t.Context(), h.device, true)
				return err == nil
			})
			known := false
			for _, c := range codes.Codes {
				known = known || c.Key == when
			}
			if known != (when == "after") {
				t.Fatalf("%s, killed %s: known to be there: %v", profile, when, known)
			}
			if _, err := h.adapter.PutCode(t.Context(), h.device, code); err != nil {
				t.Fatal(err)
			}
			times := 0
			for _, c := range h.State(t).Codes {
				if c.PIN == code.PIN {
					times++
				}
			}
			if has := len(h.State(t).Codes); times != 1 || has != had+1 {
				t.Fatalf("%s, killed %s: the code is there %d times, among %d", profile, when, times, has)
			}
		}
	}
}

// Until its driver is ready, zwave-js-server closes connections with 1013.
func TestStartingGatewayIsAwaited(t *testing.T) {
	t.Parallel()
	h := sharedHouse(t, lab.Plain)
	h.relay.set(func(r *relay) { r.starts = true })
	h.relay.disconnect()
	until(t, "it is reported", func() bool {
		_, err := h.adapter.Codes(t.Context(), h.device, true)
		return err != nil && adapter.ClassOf(err) == adapter.GatewayDown &&
			strings.Contains(err.Error(), "not ready yet")
	})
	h.ProgramSilently(t, 7, "975310")
	h.relay.set(func(r *relay) { r.starts = false })
	until(t, "it is used again, and its lock is read again", func() bool {
		codes, err := h.adapter.Codes(t.Context(), h.device, true)
		return err == nil && slices.ContainsFunc(codes.Codes, func(c adapter.Code) bool { return c.Ref == "7" })
	})
}

// keymaster #589, batteries drained by reads every minute: an idle lock is not read, and each slot is read once after
// a disconnection.
func TestIdleLockIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, profile := range []lab.Profile{lab.Plain, lab.Masked, lab.Users} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			h := sharedHouse(t, profile)
			look := func() {
				t.Helper()
				if _, err := h.adapter.Devices(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := h.adapter.Device(t.Context(), h.device); err != nil {
					t.Fatal(err)
				}
				for _, fresh := range []bool{false, true} {
					if _, err := h.adapter.Codes(t.Context(), h.device, fresh); err != nil {
						t.Fatal(err)
					}
				}
			}
			look()
			asked := h.State(t).Frames
			for range 60 { // an hour with one listing per minute
				look()
			}
			if n := h.State(t).Frames - asked; n != 0 {
				t.Fatalf("an idle lock was sent %d frames in an hour", n)
			}
			h.relay.disconnect()
			h.ProgramSilently(t, 7, "975310")
			until(t, "it is connected again", func() bool {
				codes, err := h.adapter.Codes(t.Context(), h.device, true)
				return err == nil && len(codes.Codes) == 1 && codes.Codes[0].Ref == "7"
			})
			resynced := h.State(t).Frames - asked
			if resynced > lab.Slots+2 {
				t.Fatalf("a resync caused %d frames", resynced)
			}
			look()
			if n := h.State(t).Frames - asked; n != resynced {
				t.Fatalf("after the resync it was sent %d frames more", n-resynced)
			}
		})
	}
}

// A lock that the gateway considers dead, and that returns silently, is pinged.
func TestLockThatReturnsSilently(t *testing.T) {
	t.Parallel()
	h := sharedHouse(t, lab.Plain)
	h.SetOnline(t, false)
	_, err := h.adapter.Codes(t.Context(), h.device, true)
	failsAs(t, err, adapter.Offline)
	h.RestoreRadio(t)
	if _, err := h.adapter.PutCode(t.Context(), h.device, spec("k", "864209")); err != nil {
		t.Fatal(err)
	}
}

// A lock whose copy in the gateway is outdated is read before a write.
func TestOldCopyOverwritesNothing(t *testing.T) {
	t.Parallel()
	for _, profile := range []lab.Profile{lab.Plain, lab.Users} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			h := sharedHouse(t, profile)
			if _, err := h.adapter.Codes(t.Context(), h.device, true); err != nil {
				t.Fatal(err)
			}
			h.ProgramSilently(t, 1, "975310")
			result, err := h.adapter.PutCode(t.Context(), h.device, spec("k", "864209"))
			if err != nil || result.Ref != "2" {
				t.Fatalf("PutCode: %+v, %v", result, err)
			}
			put := spec("k", "864201")
			put.Ref = "2"
			h.ProgramSilently(t, 2, "")
			if _, err := h.adapter.PutCode(t.Context(), h.device, put); adapter.ClassOf(err) != adapter.NotFound {
				t.Fatalf("PutCode of what has vanished: %v", err)
			}
			if codes := h.State(t).Codes; len(codes) != 1 || codes[1].PIN != "975310" {
				t.Fatalf("the lock has %d codes", len(codes))
			}
		})
	}
}
