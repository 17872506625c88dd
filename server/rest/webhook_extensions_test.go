package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const (
	sendTest     = "/deviceaccess/webhooks/send_test"
	rotateSecret = "/deviceaccess/webhooks/rotate_secret"
)

func hookTo(t *testing.T, s *apptest.Server, url string) any {
	t.Helper()
	return must(t, s, "/webhooks/create", "webhook", in{"url": url})["webhook_id"]
}

func TestSendTest_ReportsAnswerOfReceiver(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t)
	const body = "a page of the internal network"
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/good" {
			w.WriteHeader(http.StatusForbidden)
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(receiver.Close)
	for path, c := range map[string]struct {
		status          float64
		accepted        bool
		problem, advice any
	}{
		"/good": {200, true, nil, nil},
		"/bad":  {403, false, "The endpoint answered 403 Forbidden.", "signatures"},
	} {
		got := must(t, s, sendTest, "webhook_test", in{"webhook_id": hookTo(t, s, receiver.URL+path)})
		if got["status_code"] != c.status || got["is_accepted"] != c.accepted || got["problem"] != c.problem ||
			(c.advice != nil) != (got["advice"] != nil) || strings.Contains(fmt.Sprint(got), body) {
			t.Errorf("%s: %v", path, got)
		}
	}
	receiver.Close()
	got := must(t, s, sendTest, "webhook_test", in{"webhook_id": hookTo(t, s, receiver.URL)})
	if got["status_code"] != nil || got["is_accepted"] != false || got["problem"] == nil || got["advice"] == nil {
		t.Errorf("no receiver: %v", got)
	}
}

func TestRotateSecret_OverlapsUnlessAskedOtherwise(t *testing.T) {
	t.Parallel()
	s := apptest.Shared(t)
	hook := must(t, s, "/webhooks/create", "webhook", in{"url": "https://hooks.example/x"})
	id := hook["webhook_id"]
	status, out := call(t, s, http.MethodPost, rotateSecret, in{"webhook_id": id})
	first, _ := out["webhook"].(in)
	if status != http.StatusOK || first["secret"] == hook["secret"] || out["old_secret_signs_until"] == nil {
		t.Fatalf("rotate: %d, a new secret: %t, until %v", status, first["secret"] != hook["secret"],
			out["old_secret_signs_until"])
	}
	if got := must(t, s, "/webhooks/get", "webhook", in{"webhook_id": id}); got["secret"] != first["secret"] {
		t.Error("the webhook has another secret than the rotation returned")
	}
	status, out = call(t, s, http.MethodPost, rotateSecret, in{"webhook_id": id})
	if e, _ := out["error"].(in); status != http.StatusConflict || e["type"] != "rotation_in_progress" {
		t.Errorf("rotate again: %d %v", status, e["type"])
	}
	status, out = call(t, s, http.MethodPost, rotateSecret, in{"webhook_id": id, "overlap_seconds": 0})
	if status != http.StatusOK || out["old_secret_signs_until"] != nil {
		t.Errorf("rotate without overlap: %d until %v", status, out["old_secret_signs_until"])
	}
	for _, overlap := range []int{-1, 2_592_001} {
		if status, _ = call(t, s, http.MethodPost, rotateSecret, in{
			"webhook_id": id, "overlap_seconds": overlap,
		}); status != http.StatusBadRequest {
			t.Errorf("an overlap of %d s: %d", overlap, status)
		}
	}
}

func TestWebhookExtensions_RefuseOtherCallers(t *testing.T) {
	t.Parallel()
	s, other := apptest.Shared(t), apptest.Shared(t)
	hook := hookTo(t, s, "https://hooks.example/x")
	session, _ := must(t, s, "/client_sessions/create", "client_session", in{
		"user_identifier_key": "guest",
	})["token"].(string)
	for _, path := range []string{sendTest, rotateSecret} {
		for name, c := range map[string]struct {
			server *apptest.Server
			id     any
			status int
		}{
			"another workspace": {other, hook, http.StatusNotFound},
			"no such webhook":   {s, uuid.NewString(), http.StatusNotFound},
			"no identifier":     {s, "nope", http.StatusNotFound},
			"client session":    {&apptest.Server{URL: s.URL, APIKey: session}, hook, http.StatusForbidden},
			"no credential":     {&apptest.Server{URL: s.URL}, hook, http.StatusUnauthorized},
		} {
			if status, out := call(t, c.server, http.MethodPost, path, in{"webhook_id": c.id}); status != c.status {
				t.Errorf("%s, %s: %d %v", path, name, status, out)
			}
		}
	}
}
