package zwave_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
)

// A lock keeps its memory when its gateway is killed.
func TestLocksKeepTheirMemory(t *testing.T) {
	t.Parallel()
	began := time.Now()
	g := zwave.Start(t, zwave.Plain, zwave.Users)
	t.Logf("started in %s", time.Since(began))
	for _, profile := range []zwave.Profile{zwave.Plain, zwave.Users} {
		g.Lease(t, profile).Program(t, 3, "864209")
	}
	g.Kill()
	began = time.Now()
	g.Restart(t)
	t.Logf("restarted in %s", time.Since(began))
	for _, l := range g.Locks() {
		if code := l.State(t).Codes[3]; code.PIN != "864209" {
			t.Errorf("lock %s has %+v", l.Profile, code)
		}
	}
}
