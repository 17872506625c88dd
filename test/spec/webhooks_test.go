package spec_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Invalid webhooks are rejected at creation with a message that says what to do.
func TestWebhooks_InvalidAtCreation(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) { c.Webhooks.AllowPrefixes = nil })
	var good api.WebhookResponse
	if status := s.Post(
		t,
		"/webhooks/create",
		map[string]any{"url": "https://example.com/" + strings.Repeat("a", 2028)},
		&good,
	); status != http.StatusOK {
		t.Fatalf("a URL of 2,048 characters: %d", status)
	}
	const create, update = "/webhooks/create", "/webhooks/update"
	for name, c := range map[string]struct {
		path string
		body map[string]any
		kind string
		says string
	}{
		"an unknown event type": {
			create,
			map[string]any{"url": "https://example.com", "event_types": []string{"device.connected", "door.exploded"}},
			"invalid_event_types",
			"door.exploded",
		},
		"updated to an unknown": {
			update,
			map[string]any{"webhook_id": good.Webhook.WebhookID, "event_types": []string{"door.exploded"}},
			"invalid_event_types",
			"door.exploded",
		},
		"no event types": {
			create,
			map[string]any{"url": "https://example.com", "event_types": []string{}},
			"invalid_input",
			"event_types",
		},
		"updated to none": {
			update,
			map[string]any{"webhook_id": good.Webhook.WebhookID, "event_types": []string{}},
			"invalid_input",
			"event_types",
		},
		"neither http nor https": {create, map[string]any{"url": "ftp://example.com"}, "invalid_input", "http"},
		"no scheme":              {create, map[string]any{"url": "example.com/hook"}, "invalid_input", "url"},
		"a password": {
			create,
			map[string]any{"url": "https://user:hush-hush@example.com"},
			"invalid_input",
			"must not contain a user name or password",
		},
		"a user name": {
			create,
			map[string]any{"url": "https://user@example.com"},
			"invalid_input",
			"must not contain a user name or password",
		},
		"2,049 characters": {
			create,
			map[string]any{"url": "https://example.com/" + strings.Repeat("a", 2029)},
			"invalid_input",
			"2048",
		},
		"no such port": {create, map[string]any{"url": "https://example.com:65536/hook"}, "invalid_input", "port"},
		"port 0":       {create, map[string]any{"url": "https://example.com:0/hook"}, "invalid_input", "port"},
		"an address of this host": {
			create,
			map[string]any{"url": "http://127.0.0.1:8080/hook"},
			"invalid_input",
			"--allow-webhook-prefix",
		},
		"a name of this host": {
			create,
			map[string]any{"url": "http://localhost/hook"},
			"invalid_input",
			"--allow-webhook-prefix",
		},
		"the metadata of a cloud": {
			create,
			map[string]any{"url": "http://169.254.169.254/latest"},
			"invalid_input",
			"--allow-webhook-prefix",
		},
		"a private address": {
			create,
			map[string]any{"url": "https://[fd00::1]/hook"},
			"invalid_input",
			"--allow-webhook-prefix",
		},
	} {
		var f failure
		status := s.Post(t, c.path, c.body, &f)
		if status != http.StatusBadRequest || f.Error.Type != c.kind || !strings.Contains(f.Error.Message, c.says) ||
			strings.Contains(f.Error.Message, "hush-hush") {
			t.Errorf("%s: %d %+v", name, status, f.Error)
		}
	}
	var all api.WebhooksResponse
	if s.Post(t, "/webhooks/list", struct{}{}, &all); len(all.Webhooks) != 1 || len(all.Webhooks[0].EventTypes) != 1 {
		t.Errorf("%d webhooks are left", len(all.Webhooks))
	}
}

func TestWebhooks_AllowedAddresses(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t, apptest.WithProfiles("august")) // allows 127.0.0.0/8
	for _, url := range []string{"http://127.0.0.1:8080/hook", "http://localhost/hook"} {
		if status := s.Post(t, "/webhooks/create", map[string]any{"url": url}, nil); status != http.StatusOK {
			t.Errorf("%s: %d", url, status)
		}
	}
}

// The webhooks of a workspace are limited, so that the fan-out of one event takes less than its lease. Deleting one
// makes room.
func TestWebhooks_LimitPerWorkspace(t *testing.T) {
	t.Parallel()
	const most = 3
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.MaxWebhooks = most }),
	)
	create := func(out any) int {
		return s.Post(t, "/webhooks/create", map[string]any{"url": "https://example.com"}, out)
	}
	var last api.WebhookResponse
	for i := range most {
		if status := create(&last); status != http.StatusOK {
			t.Fatalf("webhook %d: %d", i, status)
		}
	}
	for range 2 {
		var f failure
		if status := create(
			&f,
		); status != http.StatusBadRequest || f.Error.Type != "invalid_input" ||
			!strings.Contains(f.Error.Message, "3 webhooks") {
			t.Fatalf("one too many: %d %+v", status, f)
		}
		if status := s.Post(
			t,
			"/webhooks/delete",
			map[string]any{"webhook_id": last.Webhook.WebhookID},
			nil,
		); status != http.StatusOK {
			t.Fatalf("delete: %d", status)
		}
		if status := create(&last); status != http.StatusOK {
			t.Fatalf("in the place of one that is deleted: %d", status)
		}
	}
}
