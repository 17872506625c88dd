package webhook_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// End to end: a client creates a webhook and a code, and the endpoint receives the events as the
// API returns them.
func TestAPIChanges_ArriveSigned(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	endpoint := newSink(t, nil)
	var hook api.WebhookResponse
	if status := s.Post(t, "/webhooks/create", map[string]any{"url": endpoint.URL}, &hook); status != http.StatusOK {
		t.Fatalf("create a webhook: %d", status)
	}
	var code api.AccessCodeResponse
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": s.Device(t, "august"), "code": "7351", "name": "<Anna & Ö>"},
		&code,
	); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	var set message
	apptest.Until(t, "the endpoint gets the set event", func() bool {
		for _, m := range endpoint.messages() {
			if m.eventType(t) == "access_code.set_on_device" {
				set = m
			}
		}
		return set.body != nil
	})
	set.verify(t, hook.Webhook.Secret)
	if got := set.header.Get("Content-Type"); got != "application/json" || set.header.Get("User-Agent") == "" {
		t.Errorf("headers %v", set.header)
	}
	var served struct{ Event json.RawMessage }
	s.Post(t, "/events/get", map[string]any{"event_id": set.id()}, &served)
	if !bytes.Equal(served.Event, set.body) {
		t.Errorf("delivered\n%s\nserved\n%s", set.body, served.Event)
	}
	if !bytes.Contains(set.body, []byte(`"code":"7351"`)) {
		t.Errorf("without the PIN: %s", set.body)
	}
	created := func() (all []message) {
		for _, m := range endpoint.messages() {
			if m.eventType(t) == "access_code.created" {
				all = append(all, m)
			}
		}
		return all
	}
	apptest.Until(t, "the endpoint gets the created event", func() bool { return len(created()) > 0 })
	for _, m := range created() {
		if bytes.Contains(m.body, []byte(`"7351"`)) {
			t.Errorf("an event type without a PIN: %s", m.body)
		}
	}
}
