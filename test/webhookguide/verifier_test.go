// Package webhookguide_test checks real deliveries with the package that receivers of webhooks use, npm's
// @seamapi/webhook, and with the receiver of the guide.
package webhookguide_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// message is a received delivery, and the secret to verify it with.
type message struct {
	Secret  string            `json:"secret"`
	Body    []byte            `json:"body"`
	Headers map[string]string `json:"headers"`
}

// with returns a changed copy of the message.
func (m message) with(change func(*message)) message {
	m.Headers, m.Body = maps.Clone(m.Headers), bytes.Clone(m.Body)
	change(&m)
	return m
}

// without returns a copy without one family of headers.
func (m message) without(family string) message {
	return m.with(func(m *message) {
		maps.DeleteFunc(m.Headers, func(name, _ string) bool { return strings.HasPrefix(name, family) })
	})
}

type verdict struct {
	EventType string `json:"event_type"`
	Error     string `json:"error"`
}

func TestOfficialVerifierAcceptsDeliveries(t *testing.T) {
	t.Parallel()
	verify := verifier(t, install(t))
	s := apptest.Start(t, apptest.WithProfiles("august"))
	var mu sync.Mutex
	received := map[string]message{} // by event type
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m := message{Headers: map[string]string{}}
		m.Body, _ = io.ReadAll(r.Body)
		for name := range r.Header {
			m.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		var e struct {
			Type string `json:"event_type"`
		}
		if err := json.Unmarshal(m.Body, &e); err != nil {
			t.Errorf("the body is not an event: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		received[e.Type] = m
	}))
	t.Cleanup(endpoint.Close)
	wait := func(eventType string) (m message) {
		t.Helper()
		apptest.Until(t, eventType+" is delivered", func() (ok bool) {
			mu.Lock()
			defer mu.Unlock()
			m, ok = received[eventType]
			return ok
		})
		return m
	}
	var hook api.WebhookResponse
	if status := s.Post(t, "/webhooks/create", map[string]any{"url": endpoint.URL}, &hook); status != http.StatusOK {
		t.Fatalf("create a webhook: %d", status)
	}
	var code api.AccessCodeResponse
	if status := s.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": s.Device(t, "august"), "name": "<Anna & Ö>"},
		&code,
	); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	const first, second = "access_code.set_on_device", "access_code.deleted"
	m := wait(first)
	m.Secret = hook.Webhook.Secret

	rotated, _, err := s.App.Access.Webhooks.RotateSecret(
		t.Context(),
		domain.Principal{WorkspaceID: uuid.MustParse(s.WorkspaceID)},
		hook.Webhook.WebhookID,
		time.Hour,
	)
	if err != nil {
		t.Fatal(err)
	}
	if status := s.Post(
		t,
		"/access_codes/delete",
		map[string]any{"access_code_id": code.AccessCode.AccessCodeID},
		nil,
	); status != http.StatusOK {
		t.Fatalf("delete the code: %d", status)
	}
	later := wait(second)
	if n := len(strings.Fields(later.Headers["webhook-signature"])); n != 2 {
		t.Errorf("%d signatures while the rotation overlaps", n)
	}
	signedBy := func(secret string) func(*message) { return func(m *message) { m.Secret = secret } }

	cases := []struct {
		name    string
		message message
		accept  string // event type; empty: rejected
	}{
		{"as received", m, first},
		{"with the standard headers", m.without("svix-"), first},
		{"with the Svix headers", m.without("webhook-"), first},
		{"without both", m.without("webhook-").without("svix-"), ""},
		{
			"another body",
			m.with(func(m *message) { m.Body = bytes.Replace(m.Body, []byte("set_on_device"), []byte("created"), 1) }),
			"",
		},
		{"one byte more", m.with(func(m *message) { m.Body = append(m.Body, ' ') }), ""},
		{
			"another id",
			m.with(func(m *message) { m.Headers["webhook-id"], m.Headers["svix-id"] = "msg_other", "msg_other" }),
			"",
		},
		{"another time", m.with(func(m *message) {
			m.Headers["webhook-timestamp"], m.Headers["svix-timestamp"] = "1614265330", "1614265330"
		}), ""},
		{"another secret", m.with(signedBy(rotated.Secret)), ""},
		{"during the rotation, with the old secret", later.with(signedBy(hook.Webhook.Secret)), second},
		{"during the rotation, with the new secret", later.with(signedBy(rotated.Secret)), second},
		{
			"during the rotation, with another secret",
			later.with(signedBy("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")),
			"",
		},
	}
	messages := make([]message, len(cases))
	for i, c := range cases {
		messages[i] = c.message
	}
	for i, v := range verify(messages) {
		if c := cases[i]; v.EventType != c.accept || (c.accept == "") != (v.Error != "") {
			t.Errorf("%s: accepted as %q, rejected with %q", c.name, v.EventType, v.Error)
		}
	}
}

// install installs the packages, in the locked versions, and our programs in a directory.
func install(t *testing.T) (dir string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			storetest.Missing(t, "%s, for the package that receivers verify webhooks with", program)
		}
	}
	dir = t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "verify.mjs", "harness.mjs"} {
		content, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(
		t.Context(),
		"npm",
		"ci",
		"--ignore-scripts",
		"--no-audit",
		"--no-fund",
		"--prefer-offline",
	)
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		storetest.Missing(t, "a package registry to fetch the verifier from: %v\n%s", err, out)
	}
	return dir
}

// verifier returns a function that verifies messages with the package.
func verifier(t *testing.T, dir string) func([]message) []verdict {
	t.Helper()
	return func(messages []message) (out []verdict) {
		t.Helper()
		in, err := json.Marshal(messages)
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "node", "verify.mjs")
		cmd.Dir, cmd.Stdin, cmd.Stderr = dir, bytes.NewReader(in), &stderr
		answer, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(answer, &out)
		}
		if err != nil || len(out) != len(messages) {
			t.Fatalf("%d verdicts, %v\n%s", len(out), err, stderr.String())
		}
		return out
	}
}
