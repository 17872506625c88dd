package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// shop is a busy server: a client creates codes and webhooks, and deliveries wait at an endpoint until it is opened.
type shop struct {
	*program
	ready
	secrets secretscan.Ledger
	opened  chan struct{}
	device  string

	mu      sync.Mutex
	made    inventory                   // created according to the responses
	waiting int                         // number of deliveries
	arrived map[string][]signedBy       // by event id
	hook    struct{ id, secret string } // receives all events
}

// signedBy is the signed content of a delivery and its signature.
type signedBy struct{ content, signature string }

func (s *shop) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var event struct {
		ID string `json:"event_id"`
	}
	_ = json.Unmarshal(body, &event) // a body that is not JSON has no id
	s.mu.Lock()
	s.waiting++
	s.mu.Unlock()
	select {
	case <-s.opened:
	case <-r.Context().Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived[event.ID] = append(
		s.arrived[event.ID],
		signedBy{
			fmt.Sprintf("%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body),
			r.Header.Get("Webhook-Signature"),
		},
	)
}

// has reports whether an event has arrived with a signature of the webhook's secret.
func (s *shop) has(event string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.hook.secret, "whsec_"))
	if err != nil {
		s.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.arrived[event], func(d signedBy) bool {
		mac := hmac.New(sha256.New, key)
		io.WriteString(mac, d.content)
		return d.signature == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
	})
}

// told returns a copy of what the client has created so far.
func (s *shop) told() inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return inventory{maps.Clone(s.made.Codes), maps.Clone(s.made.Hooks), nil}
}

// works creates a code, and sometimes a webhook.
func (s *shop) works(n int) {
	pin := fmt.Sprintf("0593%02d", n) // digits that no id contains
	var made struct {
		Code struct {
			ID string `json:"access_code_id"`
		} `json:"access_code"`
		Webhook struct {
			ID     string `json:"webhook_id"`
			Secret string `json:"secret"`
		} `json:"webhook"`
	}
	if status := s.post(
		s.ready,
		s.APIKey,
		"/access_codes/create",
		fmt.Sprintf(`{"device_id":%q,"code":%q}`, s.device, pin),
		&made,
	); status != http.StatusOK {
		s.Errorf("create code %d: %d", n, status)
	}
	if n%10 == 0 {
		if status := s.post(
			s.ready,
			s.APIKey,
			"/webhooks/create",
			`{"url":"https://hooks.example/x","event_types":["device.deleted"]}`,
			&made,
		); status != http.StatusOK {
			s.Errorf("create webhook %d: %d", n, status)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made.Codes[made.Code.ID] = pin
	if made.Webhook.ID != "" {
		s.made.Hooks[made.Webhook.ID] = made.Webhook.Secret
	}
}

// A backup during writes and deliveries contains everything that was acknowledged before it started. Without the key it
// reveals no secret. The server that starts on the restored data sends the pending deliveries.
func TestBackup_OfBusyServer(t *testing.T) {
	t.Parallel()
	s := &shop{
		program: newPrivate(t),
		opened:  make(chan struct{}),
		arrived: map[string][]signedBy{},
		made:    inventory{Codes: map[string]string{}, Hooks: map[string]string{}},
	}
	endpoint := httptest.NewServer(s)
	t.Cleanup(endpoint.Close)
	open := sync.OnceFunc(func() { close(s.opened) })
	t.Cleanup(open)
	r, cmd := s.serve("--allow-webhook-prefix", "127.0.0.0/8", "--sandbox-speed", "100")
	server, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	watched := httptest.NewServer(s.secrets.Watch(httputil.NewSingleHostReverseProxy(server)))
	t.Cleanup(watched.Close)
	s.ready = ready{URL: watched.URL, APIKey: r.APIKey}
	s.device = s.furnish(s.ready, "059299")
	var made struct {
		Webhook struct {
			ID     string `json:"webhook_id"`
			Secret string `json:"secret"`
		} `json:"webhook"`
	}
	s.post(s.ready, s.APIKey, "/webhooks/create", `{"url":"`+endpoint.URL+`"}`, &made)
	s.hook.id, s.hook.secret = made.Webhook.ID, made.Webhook.Secret
	n := 0
	for ; n < 20; n++ {
		s.works(n)
	}
	s.until("a delivery waits", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiting > 0 })

	before, file := s.told(), filepath.Join(s.dir, "busy.tar.gz")
	done := make(chan error, 1)
	go func() {
		_, err := s.run("backup", "--without-key", file)
		done <- err
	}()
	for ; n < 60 && len(done) == 0; n++ {
		s.works(n)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(s.told().Codes) == len(before.Codes) {
		t.Error("nothing was created during the backup, so the test proves nothing")
	}
	open()
	s.stop(cmd)

	kept, err := os.ReadFile(filepath.Join(s.dir, "data", "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	to, key := filepath.Join(s.dir, "elsewhere"), strings.TrimSpace(string(kept))
	s.secrets.Learn("master key", strings.TrimRight(key, "="))
	s.secrets.Search(t, map[string][]byte{"the backup": s.unpacked(file)})
	s.ok("restore", "--data-dir", to, "--master-key", key, file)
	due := s.due(to)
	s.mu.Lock()
	clear(s.arrived)
	s.mu.Unlock()
	s.ready, cmd = s.serve(
		"--data-dir",
		to,
		"--master-key",
		key,
		"--allow-webhook-prefix",
		"127.0.0.0/8",
		"--sandbox-speed",
		"100",
	)
	s.APIKey = r.APIKey
	if err := s.inventory(s.ready, s.APIKey).holds(before); err != nil {
		t.Error(err)
	}
	s.until(
		"the pending deliveries have arrived",
		func() bool { return !slices.ContainsFunc(due, func(event string) bool { return !s.has(event) }) },
	)
	s.until("every code is on its lock once", func() bool {
		memory := s.ok("sandbox", "codes", "--data-dir", to, "--master-key", key, "--endpoint", s.URL, s.device)
		return !slices.ContainsFunc(
			slices.Collect(maps.Values(before.Codes)),
			func(pin string) bool { return strings.Count(memory, pin) != 1 },
		)
	})
	s.stop(cmd)
}

// due returns the events of a restored database whose delivery to the endpoint is pending.
func (s *shop) due(dir string) (events []string) {
	s.Helper()
	database, err := pglocal.Open(s.Context(), pglocal.Options{Dir: filepath.Join(dir, "postgres")})
	if err != nil {
		s.Fatal(err)
	}
	defer database.Close(s.Context())
	conn, err := pgx.Connect(s.Context(), database.DSN("postgres"))
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close(s.Context())
	rows, err := conn.Query(
		s.Context(),
		`select event_id::text from deliveries where state = 'pending' and webhook_id = $1
		union select event_id::text from events where fanned_out_at is null and created_at > (select created_at from webhooks where webhook_id = $1)`,
		s.hook.id,
	)
	if err == nil {
		events, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil || len(events) == 0 {
		s.Fatalf("%d events were pending at the backup (%v), so the test proves nothing", len(events), err)
	}
	return events
}
