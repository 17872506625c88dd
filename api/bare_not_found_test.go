package api

import (
	"context"
	"net/http"
	"path"
	"testing"
	"testing/synctest"
)

func TestBareNotFound(t *testing.T) {
	const workspace = `{"ok": true, "workspace": {"workspace_id": "ws-1"}}`
	plain := says(404, "<h1>404</h1>")
	gone := func(ctx context.Context, client *Client) error {
		_, err := Call[OkResponse](ctx, client.DeleteWebhook, WebhookRequest{WebhookID: "w1"})
		return err
	}
	cases := map[string]struct {
		call      func(context.Context, *Client) error
		get       func(*http.Request) (*http.Response, error)
		workspace func(*http.Request) (*http.Response, error)
		notFound  bool
		asked     int // for the workspace, by two calls
	}{
		"a get":                      {read, plain, says(200, workspace), true, 2},
		"a get, empty":               {read, says(404, ""), says(200, workspace), true, 2},
		"a deletion":                 {gone, plain, says(200, workspace), true, 2},
		"a change, which may not be": {change, plain, says(200, workspace), false, 0},
		"a reason is given": {
			read,
			says(404, `{"ok": false, "error": {"type": "webhook_not_found", "message": "No"}}`),
			plain,
			true,
			0,
		},
		"about the path": {
			read,
			says(404, `{"ok": false, "error": {"type": "route_not_found", "message": "No"}}`),
			says(200, workspace),
			false,
			0,
		},
		"another server":              {read, plain, plain, false, 2},
		"a page that is always there": {read, plain, says(200, "<h1>Welcome</h1>"), false, 2},
		"JSON that is always there":   {read, plain, says(200, `{"ok": true}`), false, 2},
		"a key that is refused": {
			read,
			plain,
			says(401, `{"ok": false, "error": {"type": "unauthorized", "message": "No"}}`),
			false,
			2,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			client := clientOver(t, Config{}, func(req *http.Request) (*http.Response, error) {
				if path.Dir(req.URL.Path) == "/workspaces" {
					asked++
					return c.workspace(req)
				}
				return c.get(req)
			})
			for range 2 {
				if err := c.call(t.Context(), client); err == nil || IsNotFound(err) != c.notFound {
					t.Errorf("not found: %v, of %v", IsNotFound(err), err)
				}
			}
			if asked != c.asked {
				t.Errorf("the workspace was asked for %d times, want %d", asked, c.asked)
			}
		})
	}
}

func TestBareNotFound_OfProxy(t *testing.T) {
	away := false
	client := clientOver(t, Config{}, func(req *http.Request) (*http.Response, error) {
		if away || path.Dir(req.URL.Path) == "/webhooks" {
			return says(404, "404 page not found")(req)
		}
		return says(200, `{"ok": true, "workspace": {"workspace_id": "ws-1"}}`)(req)
	})
	if err := read(t.Context(), client); !IsNotFound(err) {
		t.Errorf("while the server is there: %v", err)
	}
	away = true
	if err := read(t.Context(), client); IsNotFound(err) {
		t.Errorf("while it is away: %v", err)
	}
}

func TestBareNotFound_ServerBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []func(*http.Request) (*http.Response, error){
			says(429, "{}"),
			says(502, "<h1>"),
			says(200, `{"ok": true, "workspace": {"workspace_id": "ws-1"}}`),
		}
		client := clientOver(t, Config{}, func(req *http.Request) (*http.Response, error) {
			if path.Dir(req.URL.Path) == "/webhooks" {
				return says(404, "404 page not found")(req)
			}
			next := answers[0]
			answers = answers[1:]
			return next(req)
		})
		if err := read(t.Context(), client); !IsNotFound(err) {
			t.Errorf("%v", err)
		}
	})
}

func TestMissingListsAreErrors(t *testing.T) {
	for body, good := range map[string]bool{
		`{"ok": true, "webhooks": []}`: true, `{"webhooks": null}`: true, `{"ok": true}`: false, `{"ok": true, "data": []}`: false, `null`: false,
	} {
		client, _ := scripted(t, says(200, body))
		if _, err := Call[WebhooksResponse](t.Context(), client.ListWebhooks, EmptyRequest{}); (err == nil) != good {
			t.Errorf("%s: %v", body, err)
		}
	}
}
