package rest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func TestWorkspaceCreationIsRateLimited(t *testing.T) {
	t.Parallel()
	c, now := clocked(Limits{WorkspacesPerMinute: 20})
	for i := range 20 {
		if after := c.workspace("a"); after != 0 {
			t.Fatalf("workspace %d waits for %s", i, after)
		}
	}
	for range 100 { // which do not count
		if after := c.workspace("a"); after != 3*time.Second {
			t.Fatalf("one more waits for %s", after)
		}
	}
	if after := c.workspace("b"); after != 0 {
		t.Errorf("another's waits for %s", after)
	}
	if after := c.request("a"); after != 0 {
		t.Errorf("another request waits for %s", after)
	}
	*now = now.Add(3 * time.Second)
	if after := c.workspace("a"); after != 0 {
		t.Errorf("3 s later one waits for %s", after)
	}
	if after := c.workspace("a"); after != 3*time.Second {
		t.Errorf("3 s later a second one waits for %s", after)
	}
	free, _ := clocked(Limits{})
	for range 100 {
		if free.workspace("a") != 0 {
			t.Fatal("workspaces are limited without a limit")
		}
	}
}

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
		a.limits, a.around = Limits{WorkspacesPerMinute: 1}, []openapi.StrictMiddlewareFunc{answered}
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
