package adapter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// A gateway that sends its network repeatedly, or floods of small messages, must not occupy the server.
func TestGatewayLimiter(t *testing.T) {
	t.Parallel()
	for size, atOnce := range map[int]int{1: 32768, 256: 32768, 1 << 10: 8192, 1 << 20: 8} {
		synctest.Test(t, func(t *testing.T) {
			pace := adapter.NewGatewayLimiter()
			begin := time.Now()
			for n := range 2 * atOnce {
				if err := pace.Wait(t.Context(), size); err != nil {
					t.Fatal(err)
				}
				if now := time.Since(begin); n == atOnce-1 && now != 0 {
					t.Errorf("%d messages of %d bytes take %s", atOnce, size, now)
				}
			}
			if took := time.Since(begin).Round(time.Millisecond); took != 8*time.Second {
				t.Errorf("%d messages of %d bytes take %s, want 8 s", 2*atOnce, size, took)
			}
		})
	}
}
