package spec_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// A reset fails at its deadline if its devices never appear.
func TestSandboxReset_CloudNeverAnswers(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	s := apptest.Start(t, apptest.WithProfiles("august"), apptest.WithAttemptTimeout(time.Second), func(c *app.Config) {
		wrap := c.Wrap
		c.Wrap = func(next http.Handler) http.Handler {
			return wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if down.Load() && strings.HasPrefix(r.URL.Path, "/sandbox/cloud/locks") {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				next.ServeHTTP(w, r)
			}))
		}
	})
	s.Device(t, "august")
	down.Store(true)
	var reset api.ActionAttemptResponse
	if status := s.Post(
		t,
		"/workspaces/reset_sandbox",
		map[string]any{},
		&reset,
	); status != http.StatusOK ||
		reset.ActionAttempt.Status != "pending" {
		t.Fatalf("reset: %d %+v", status, reset)
	}
	var got api.ActionAttemptResponse
	apptest.Until(t, "the attempt ends", func() bool {
		s.Post(
			t,
			"/action_attempts/get",
			map[string]any{"action_attempt_id": reset.ActionAttempt.ActionAttemptID},
			&got,
		)
		return got.ActionAttempt.Status != "pending"
	})
	if e := got.ActionAttempt.Error; got.ActionAttempt.Status != "error" || e == nil ||
		e.Type != "action_attempt_expired" {
		t.Errorf("%+v", got.ActionAttempt)
	}
}
