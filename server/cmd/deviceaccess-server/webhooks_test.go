package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestHeldDeliveriesAreReplayedByCommand(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	var repaired atomic.Bool
	var received atomic.Int32
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !repaired.Load() {
			w.WriteHeader(http.StatusGone)
			return
		}
		received.Add(1)
	}))
	defer endpoint.Close()
	if _, err := p.run("serve", "--allow-webhook-prefix", "anywhere"); err == nil || !strings.Contains(err.Error(), "--allow-webhook-prefix") {
		t.Errorf("a prefix that is none: %v", err)
	}
	r, _ := p.serve("--allow-webhook-prefix", "127.0.0.0/8", "--sandbox-speed", "50")
	var hook struct {
		Webhook struct {
			ID string `json:"webhook_id"`
		}
	}
	p.post(r, r.APIKey, "/webhooks/create", `{"url":"`+endpoint.URL+`","event_types":["access_code.created"]}`, &hook)
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		}
	}
	p.until("there are locks", func() bool {
		p.post(r, r.APIKey, "/devices/list", `{}`, &devices)
		return len(devices.Devices) > 0
	})
	p.post(r, r.APIKey, "/access_codes/create", `{"device_id":"`+devices.Devices[0].ID+`"}`, nil)
	p.until("the delivery is held", func() bool { return strings.Contains(p.ok("webhooks", "deliveries", hook.Webhook.ID), "held") })
	repaired.Store(true)
	if out := p.ok("webhooks", "replay", hook.Webhook.ID); out != "1 deliveries are due again" {
		t.Errorf("%s", out)
	}
	p.until("it is received", func() bool { return received.Load() == 1 })
	event := strings.Fields(strings.Split(p.ok("webhooks", "deliveries", hook.Webhook.ID), "\n")[1])[0]
	p.until("the log has both attempts", func() bool {
		out := p.ok("webhooks", "deliveries", "--event", event, hook.Webhook.ID)
		return strings.Contains(out, "410") && strings.Contains(out, "200")
	})
	if _, err := p.run("webhooks", "replay", "--state", "lost", hook.Webhook.ID); err == nil {
		t.Error("an unknown state is taken")
	}
}
