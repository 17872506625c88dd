package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// hooked is a running server with a webhook whose endpoint answers with a configurable status.
type hooked struct {
	*program
	ready
	stopServer  func()
	url, secret string
	webhook     string
	device      string
	answer      atomic.Int32 // status
	mu          sync.Mutex
	headers     []http.Header
}

func newHooked(t *testing.T) *hooked {
	t.Helper()
	return newProgram(t).hooked()
}

// hooked starts a server and creates a webhook.
func (p *program) hooked() *hooked {
	p.Helper()
	h := &hooked{program: p}
	h.answer.Store(http.StatusGone)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.headers = append(h.headers, r.Header)
		h.mu.Unlock()
		w.WriteHeader(int(h.answer.Load()))
	}))
	h.Cleanup(endpoint.Close)
	r, cmd := h.serve("--allow-webhook-prefix", "127.0.0.0/8", "--sandbox-speed", "50")
	h.ready, h.url, h.stopServer = r, endpoint.URL, func() { h.stop(cmd) }
	var hook struct {
		Webhook struct {
			ID     string `json:"webhook_id"`
			Secret string `json:"secret"`
		}
	}
	h.post(
		r,
		r.APIKey,
		"/webhooks/create",
		`{"url":"`+endpoint.URL+`/in?token=hush-hush","event_types":["access_code.created"]}`,
		&hook,
	)
	h.webhook, h.secret = hook.Webhook.ID, hook.Webhook.Secret
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		}
	}
	h.until("there are locks", func() bool {
		h.post(r, r.APIKey, "/devices/list", `{}`, &devices)
		return len(devices.Devices) > 0
	})
	h.device = devices.Devices[0].ID
	return h
}

func (h *hooked) received() []http.Header {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]http.Header(nil), h.headers...)
}

// event creates a code, which the webhook subscribes to.
func (h *hooked) event() {
	h.Helper()
	if status := h.post(
		h.ready,
		h.APIKey,
		"/access_codes/create",
		`{"device_id":"`+h.device+`"}`,
		nil,
	); status != http.StatusOK {
		h.Fatalf("create a code: %d", status)
	}
}

// holds waits until n deliveries are held.
func (h *hooked) holds(n int) {
	h.Helper()
	h.untilYes("(select count(*) from deliveries where state = 'held') = $1", n)
}

// fails runs a command that must fail and returns its output.
func (h *hooked) fails(args ...string) string {
	h.Helper()
	out, err := h.run(args...)
	if err == nil {
		h.Fatalf("%v succeeds and says %s", args, out)
	}
	return out + err.Error()
}

func (h *hooked) says(text string, wanted ...string) {
	h.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			h.Errorf("no word of %q in:\n%s", w, text)
		}
	}
	if strings.Contains(text, "hush-hush") || strings.Contains(text, h.secret) {
		h.Error("a token of the URL or the secret is shown")
	}
}

func TestWebhooksDisable(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.answer.Store(http.StatusOK)
	_, none := h.exits("webhooks", "deliveries", "--event", "00000000-0000-7000-8000-000000000000", h.webhook)
	h.says(none, "No deliveries match", "event_types", "--delivery-retention")
	h.says(h.ok("webhooks", "disable", h.webhook), "is disabled", "webhooks enable "+h.webhook)
	h.says(h.ok("webhooks", "disable", h.webhook), "already disabled")
	h.says(h.ok("webhooks", "list"), h.webhook, "disabled since 20", "operator")
	h.event()
	h.holds(1)
	h.says(h.ok("webhooks", "deliveries", h.webhook), "held")
	if n := len(h.received()); n != 0 {
		t.Errorf("%d requests", n)
	}
	h.says(h.ok("webhooks", "enable", h.webhook), "Held deliveries: 1")
	h.event()
	h.until("later events arrive", func() bool { return len(h.received()) == 1 })
	h.fails("webhooks", "disable", "x")
}

func TestWebhooksReplay(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.event()
	h.holds(1)
	h.says(h.ok("webhooks", "deliveries", h.webhook), "held")
	h.says(h.ok("webhooks", "list"), h.webhook, "access_code.created", "disabled since 20", "410 Gone", h.url+"/in?…")
	if w := h.listed(); w.Waiting != 1 || w.Succeeded != nil {
		t.Errorf("a held event: %+v", w)
	}
	h.says(h.ok("webhooks", "replay", "--dry-run"), h.webhook, "1 held", "will be enabled")
	h.says(h.fails("webhooks", "replay", h.webhook), "1 held", "--yes") // no answer on standard input
	h.says(h.ok("webhooks", "replay", "--yes", "--state", "failed"), "nothing to replay")
	h.says(h.ok("webhooks", "replay", "--yes", "--type", "device.added"), "nothing to replay")
	h.says(h.ok("webhooks", "replay", "--yes", "--until", "1h"), "nothing to replay")
	if n := len(h.received()); n != 1 {
		t.Errorf("%d requests before the replay", n)
	}
	h.answer.Store(http.StatusOK)
	h.says(h.ok("webhooks", "replay", "--yes", "--since", "1h", h.webhook), "Scheduled 1 deliveries")
	h.until("it is received", func() bool { return len(h.received()) == 2 })
	h.untilYes("exists (select from deliveries where state = 'delivered')")
	h.says(h.ok("webhooks", "deliveries", "--state", "delivered"), "delivered")
	event := strings.Fields(strings.Split(h.ok("webhooks", "deliveries", h.webhook), "\n")[1])[1]
	out := h.ok("webhooks", "deliveries", "--event", event)
	h.says(out, "access_code.created", "ATTEMPT")
	for row, status := range []string{"410", "200"} { // by column, since ids and times may contain the digits
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^%d +%s `, row+1, status)).MatchString(out) {
			t.Errorf("attempt %d is not listed with status %s:\n%s", row+1, status, out)
		}
	}
	h.says(
		h.ok("webhooks", "replay", "--dry-run", "--state", "delivered", "--after", h.webhook+"/"+event),
		"nothing to replay",
	)
	for _, wrong := range [][]string{
		{"--state", "lost"},
		{"--event", "x"},
		{"--type", "door.exploded"},
		{"--since", "yesterday"},
		{"--until", "-5m"},
		{"--after", "somewhere"},
		{"00000000-0000-0000-0000-000000000000"},
		{"x"},
	} {
		h.fails(append([]string{"webhooks", "replay", "--dry-run"}, wrong...)...)
	}
}

// listed returns the webhook as `webhooks list` shows it, by default from the database.
func (h *hooked) listed(args ...string) webhookRecord {
	h.Helper()
	var list []webhookRecord
	out := h.ok(append([]string{"webhooks", "list", "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].ID != h.webhook {
		h.Fatalf("%d webhooks, %v: %s", len(list), err, out)
	}
	return list[0]
}

// The list shows whether events arrive: for how long they fail, how many wait, and when the last one was accepted.
func TestWebhooksList_ShowsDeliveries(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	overAPI := []string{"--server", h.URL, "--key-file", h.write("key", h.APIKey)}
	both := func(what, state string, waiting int, succeeded bool) {
		t.Helper()
		for source, w := range map[string]webhookRecord{"database": h.listed(), "API": h.listed(overAPI...)} {
			if !strings.HasPrefix(w.State, state) || w.Waiting != waiting || (w.Succeeded != nil) != succeeded ||
				w.URL != h.url+"/in?…" {
				t.Errorf("%s, from the %s: %+v", what, source, w)
			}
		}
	}
	both("without events", "enabled", 0, false)
	h.answer.Store(http.StatusInternalServerError)
	h.event()
	h.until("the endpoint fails", func() bool { return h.listed().Failures > 0 })
	both("with a failing endpoint", "failing for ", 1, false)
	h.answer.Store(http.StatusOK)
	h.event()
	h.until("no event waits", func() bool { w := h.listed(); return w.Waiting == 0 && w.State == "enabled" })
	both("with an endpoint that works again", "enabled", 0, true)
	table := strings.Split(h.ok("webhooks", "list"), "\n")
	row := regexp.MustCompile(` enabled +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ +0$`)
	if len(table) != 2 ||
		!strings.HasSuffix(strings.Join(strings.Fields(table[0]), " "), "STATE LAST SUCCESS WAITING") ||
		!row.MatchString(table[1]) {
		t.Errorf("the table:\n%s", strings.Join(table, "\n"))
	}
	if id := h.ok("webhooks", "list", "--output", "id"); id != h.webhook {
		t.Errorf("the id is %s", id)
	}
	h.stopServer()
	if w := h.listed(); w.Succeeded == nil {
		t.Errorf("without a server: %+v", w)
	}
}

// A backlog is counted up to a maximum, so that the list costs the same with any backlog.
func TestWebhookRecord_Waiting(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", webhook.MaxWaiting: "1000 or more"} {
		if got := (webhookRecord{Waiting: n}).waiting(); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestWebhooksReplay_WebhookDeleted(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	var second struct {
		Webhook struct {
			ID string `json:"webhook_id"`
		}
	}
	h.post(h.ready, h.APIKey, "/webhooks/create", `{"url":"`+h.url+`","event_types":["access_code.created"]}`, &second)
	h.event()
	h.holds(2)
	if list := h.ok("webhooks", "deliveries"); strings.Count(list, "held") != 2 {
		t.Errorf("not both are held:\n%s", list)
	}
	h.answer.Store(http.StatusOK)
	cmd := h.command("webhooks", "replay")
	answer, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	says, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	asks := bufio.NewReader(says)
	if _, err := asks.ReadString(']'); err != nil { // [y/N]
		t.Fatal(err)
	}
	h.post(h.ready, h.APIKey, "/webhooks/delete", `{"webhook_id":"`+h.webhook+`"}`, nil)
	io.WriteString(answer, "y\n")
	told, _ := io.ReadAll(asks)
	if err := cmd.Wait(); err == nil {
		t.Error("it is a success")
	}
	h.says(string(told), h.webhook+" was deleted")
	h.untilYes("exists (select from deliveries where state = 'delivered' and webhook_id = $1)", second.Webhook.ID)
}

func TestWebhooks_TestEnableRotateSecret(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	allow := []string{"webhooks", "test", "--allow-webhook-prefix", "127.0.0.0/8", h.webhook}
	h.says(h.fails(allow...), "webhook.test", "410", "disables the webhook")
	refused := h.fails("webhooks", "test", h.webhook)
	h.says(refused, "Nothing was sent to "+h.url, "not public", "--allow-webhook-prefix 127.0.0.0/8")
	if strings.Contains(refused, "Latency") || strings.Contains(refused, "Sent ") {
		t.Errorf("something was sent, it says: %s", refused)
	}
	h.event()
	h.holds(1)
	h.says(h.ok("webhooks", "list"), "disabled since")
	h.answer.Store(http.StatusOK)
	h.says(h.ok(allow...), "Status   200", "The webhook works.", "webhooks enable "+h.webhook)
	h.says(
		h.ok("webhooks", "enable", h.webhook),
		"receives new events",
		"Held deliveries: 1",
		"webhooks replay --state held "+h.webhook,
	)
	h.says(h.ok("webhooks", "enable", h.webhook), "already enabled")
	before := len(h.received())
	h.event()
	h.until("new events arrive", func() bool { return len(h.received()) > before })

	rotated := h.ok("webhooks", "rotate-secret", h.webhook)
	if !strings.HasPrefix(rotated, "whsec_") || rotated == h.secret || strings.Contains(rotated, "\n") {
		t.Error("the command does not print a new secret and nothing else")
	}
	if out := h.fails("webhooks", "rotate-secret", h.webhook); !strings.Contains(out, "signs until 20") {
		t.Errorf("again: %s", out)
	}
	h.fails("webhooks", "rotate-secret", "--overlap", "-1h", h.webhook)
	h.stopServer()
	before = len(h.received())
	h.ok(allow...) // also without the server
	last := h.received()[before]
	if n := len(strings.Fields(last.Get("webhook-signature"))); n != 2 {
		t.Errorf("%d signatures during the overlap", n)
	}
	h.ok("webhooks", "rotate-secret", "--overlap", "0", h.webhook)
	h.ok("webhooks", "rotate-secret", "--overlap", "1d", h.webhook)
	h.says(h.ok("webhooks", "replay", "--yes"), "Scheduled") // the next start sends them
	h.says(h.ok("audit", "--operation", "webhooks"), "webhooks enable", "webhooks rotate-secret", "webhooks replay")
}

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-01-02T15:04:05Z": time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
		"90m":                  now.Add(-90 * time.Minute),
		"7d":                   now.Add(-7 * 24 * time.Hour),
		"0.5d":                 now.Add(-12 * time.Hour),
	} {
		if got, err := parseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "yesterday", "-1h", "5", "2026-01-02"} {
		if got, err := parseTime(text, now); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}
