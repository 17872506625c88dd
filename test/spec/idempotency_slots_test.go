package spec_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Requests that wait for another one with their Idempotency-Key take no slots from other clients.
func TestIdempotency_WaitsTakeNoSlots(t *testing.T) {
	t.Parallel()
	var came atomic.Int32
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.Access.IdempotencyWaitTimeout = time.Hour
		around := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			next = around(next)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Idempotency-Key") != "" {
					came.Add(1)
				}
				next.ServeHTTP(w, r)
			})
		}
	})
	gate := s.Gate(t, "before update", "action_attempts", "new.action_type = 'UNLOCK_DOOR'") // the attempt does not end
	body := fmt.Sprintf(`{"device_id":%q,"sync":true}`, s.Device(t, "august"))
	var all sync.WaitGroup
	defer all.Wait()
	defer gate.Open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var answered atomic.Int32
	repeat := func(from string) {
		all.Go(func() {
			req, err := http.NewRequestWithContext(
				ctx,
				http.MethodPost,
				s.URL+"/locks/unlock_door",
				strings.NewReader(body),
			)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header = apptest.Bearer(s.APIKey)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Idempotency-Key", "k")
			one := &http.Client{
				Transport: &http.Transport{
					DisableKeepAlives: true,
					DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext,
				},
			}
			res, err := one.Do(req)
			answered.Add(1)
			if err == nil {
				res.Body.Close()
			}
		})
	}
	repeat("127.0.0.2")
	gate.Await(1, "StartActionAttempt")
	for range 8 {
		repeat("127.0.0.2")
		repeat("127.0.0.3")
	}
	apptest.Until(t, "all requests have arrived", func() bool { return came.Load() == 17 })
	for range 5 {
		if status := s.Post(t, "/devices/list", map[string]any{}, nil); status != http.StatusOK {
			t.Fatalf("another client is answered %d", status)
		}
		if n := answered.Load(); n > 0 {
			t.Fatalf("another client has waited until %d of the waiting requests were answered", n)
		}
	}
}
