package rest

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// Only requests that create or reset a workspace count. Rejected and replayed requests do not.
func TestWorkspaceLimit_CountsOnlyCreations(t *testing.T) {
	t.Parallel()
	answered := func(next openapi.StrictHandlerFunc, _ string) openapi.StrictHandlerFunc {
		return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
			if r.Header.Get(keyHeader) == "answered before" {
				return echo{"as before"}, nil
			}
			return next(ctx, w, r, request)
		}
	}
	b := setup(t, func(a *answers) {
		a.limits, a.around = ratelimit.Limits{WorkspacesPerMinute: 1}, []openapi.StrictMiddlewareFunc{answered}
	})
	ask := func(path, body, key string) response {
		return b.send(
			t,
			request{
				method: "POST",
				path:   path,
				body:   body,
				header: map[string]string{"Authorization": "Bearer " + roamerKey, keyHeader: key},
			},
		)
	}
	const path, good = "/workspaces/create", `{"name":"New","is_sandbox":true}`
	before := func() {
		t.Helper()
		if res := ask(path, good, "answered before"); res.status != 200 {
			t.Errorf("what was answered before: %d %s", res.status, res.raw)
		}
	}
	if res := ask(path, `{"is_sandbox":true}`, absent); res.status != 400 {
		t.Errorf("without a name: %d %s", res.status, res.raw)
	}
	before()
	if res := ask(path, good, absent); res.status != 200 {
		t.Errorf("the first: %d %s", res.status, res.raw)
	}
	for _, key := range []string{absent, "new"} {
		res := ask(path, good, key)
		shape, _ := res.body["error"].(map[string]any)
		if res.status != 429 || shape["type"] != "too_many_requests" || res.header.Get("Retry-After") != "60" {
			t.Errorf("one more, key %s: %d %v %s", key, res.status, res.header, res.raw)
		}
	}
	before()
	if res := b.send(
		t,
		request{
			method: "POST",
			path:   "/workspaces/reset_sandbox",
			body:   "{}",
			header: map[string]string{"Authorization": "Bearer " + roamerKey, "seam-workspace": workspaceA.String()},
		},
	); res.status != 429 {
		t.Errorf("one is reset: %d %s", res.status, res.raw)
	}
	if res := ask("/workspaces/list", "{}", absent); res.status != 200 {
		t.Errorf("another request: %d %s", res.status, res.raw)
	}
}

func TestTooManyRequestsHaveRetryAfter(t *testing.T) {
	t.Parallel()
	b := setup(t, func(a *answers) {
		a.limits = ratelimit.Limits{FailuresPerMinute: 1, RequestsPerSecond: 1}
		a.pager.trustForwarded = true
	})
	bad := func(from string) response {
		return b.send(
			t,
			request{
				method: "POST",
				path:   "/devices/list",
				header: map[string]string{"Authorization": "Bearer seam_wrong", "X-Forwarded-For": from},
			},
		)
	}
	for i, want := range []int{401, 401, 429, 429} {
		if res := bad("203.0.113.9, 192.0.2.7"); res.status != want {
			t.Errorf("guess %d: %d %s", i, res.status, res.raw)
		}
	}
	res := bad("192.0.2.8, 192.0.2.7") // what is before the last anybody can write
	shape, _ := res.body["error"].(map[string]any)
	if after, err := strconv.Atoi(
		res.header.Get("Retry-After"),
	); res.status != 429 || shape["type"] != "too_many_requests" || err != nil || after < 1 ||
		after > 60 {
		t.Errorf("%d %v %s", res.status, res.header, res.raw)
	}
	if res := bad("192.0.2.8"); res.status != 401 {
		t.Errorf("another address: %d", res.status)
	}
	statuses := map[int]int{}
	for range 20 {
		res := b.send(t, request{method: "POST", path: "/devices/list"})
		statuses[res.status]++
		if after := res.header.Get("Retry-After"); (after == "1") != (res.status == 429) {
			t.Errorf("%d, to be tried again after %q s", res.status, after)
		}
	}
	if statuses[200] < 2 || statuses[429] == 0 {
		t.Errorf("many at once: %v", statuses)
	}
}

// Anyone can get a session with a publishable key, so an address has one limit for all of its sessions and keys.
func TestSessionsOfAddressShareLimit(t *testing.T) {
	t.Parallel()
	b := setup(t, func(a *answers) {
		a.limits = ratelimit.Limits{SessionRequestsPerSecond: 1}
		a.pager.trustForwarded = true
	})
	for name, c := range map[string]struct {
		path, address string
		header        map[string]string
		limited       bool
	}{
		"client session": {"/devices/list", "192.0.2.2", map[string]string{"Authorization": "Bearer " + sessionKey}, true},
		"publishable key": {
			"/client_sessions/create", "192.0.2.3",
			map[string]string{"Authorization": absent, "Seam-Publishable-Key": publicKey},
			true,
		},
		"API key": {"/devices/list", "192.0.2.4", map[string]string{"Authorization": "Bearer " + goodKey}, false},
	} {
		c.header["X-Forwarded-For"] = c.address
		limited := 0
		for range 100 {
			res := b.send(t, request{method: "POST", path: c.path, header: c.header})
			if res.status == http.StatusTooManyRequests {
				limited++
				if res.header.Get("Retry-After") == "" {
					t.Errorf("%s: no Retry-After", name)
				}
			}
		}
		if (limited > 0) != c.limited {
			t.Errorf("%s: %d of 100 requests are limited", name, limited)
		}
	}
	other := map[string]string{"Authorization": "Bearer " + sessionKey, "X-Forwarded-For": "192.0.2.9"}
	res := b.send(t, request{method: "POST", path: "/devices/list", header: other})
	if res.status == http.StatusTooManyRequests {
		t.Error("the same session is limited at another address")
	}
}
