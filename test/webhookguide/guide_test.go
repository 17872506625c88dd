package webhookguide_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const guide = "../../templates/guides/receive-webhooks.md"

// receiver runs the guide's JavaScript verbatim. It returns the URL where it listens and the events it queues.
func receiver(t *testing.T, secret string) (url string, queued *json.Decoder) {
	t.Helper()
	dir := install(t)
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "\n```javascript\n")
	code, _, found := strings.Cut(code, "\n```\n")
	if !found {
		t.Fatal("the guide has no JavaScript")
	}
	if err := os.WriteFile(filepath.Join(dir, "receiver.mjs"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	// the end of all waiting for queued events
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(5*time.Minute))
	cmd := exec.CommandContext(ctx, "node", "--import", "./harness.mjs", "receiver.mjs")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "WEBHOOK_SECRET="+secret), t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	queued = json.NewDecoder(out)
	var at struct{ Port int }
	if err := queued.Decode(&at); err != nil || at.Port == 0 {
		t.Fatalf("the receiver does not listen: %v", err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d/", at.Port), queued
}

// The receiver needs the secret, which is known only once the webhook exists. The endpoint forwards deliveries to it.
func TestGuideReceiver_AcceptsOnlyDeliveries(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	var to atomic.Pointer[string]
	type answer struct{ whole, changed int }
	answers := make(chan answer, 100)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		url := to.Load()
		if url == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answers <- answer{send(t, *url, r.Header, body), send(t, *url, r.Header, append(bytes.Clone(body), ' '))}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(endpoint.Close)
	var hook api.WebhookResponse
	if status := s.Post(
		t,
		"/webhooks/create",
		map[string]any{"url": endpoint.URL, "event_types": []string{"access_code.set_on_device"}},
		&hook,
	); status != http.StatusOK {
		t.Fatalf("create a webhook: %d", status)
	}
	url, queued := receiver(t, hook.Webhook.Secret)
	to.Store(&url)
	for _, name := range []string{"<Anna & Ö>", "Bert"} {
		var code api.AccessCodeResponse
		if status := s.Post(
			t,
			"/access_codes/create",
			map[string]any{"device_id": s.Device(t, "august"), "name": name},
			&code,
		); status != http.StatusOK {
			t.Fatalf("create a code: %d", status)
		}
		var event struct {
			Type string `json:"event_type"`
			Code string `json:"access_code_id"`
		}
		for event.Code != code.AccessCode.AccessCodeID { // events may arrive twice
			if err := queued.Decode(&event); err != nil || event.Type != "access_code.set_on_device" {
				t.Fatalf("the receiver queued %q: %v", event.Type, err)
			}
		}
		if got := <-answers; got != (answer{whole: http.StatusNoContent, changed: http.StatusBadRequest}) {
			t.Errorf("status %d, and for a changed body %d", got.whole, got.changed)
		}
	}
	if status := send(t, url, http.Header{}, []byte(`{}`)); status != http.StatusBadRequest {
		t.Errorf("an unsigned message: status %d", status)
	}
}

// send returns the status, or 0 without a response, as for an event that is repeated while the test ends.
func send(t *testing.T, url string, header http.Header, body []byte) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header = header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Log(err)
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}
