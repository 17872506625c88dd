// Package apptest runs the whole server inside a test, with its own database, reached over HTTP, and with fast
// simulated locks. It is for tests of any package and knows no test's subject.
package apptest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/conformance"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Server is a running server with a sandbox workspace.
type Server struct {
	// URL is the URL of the API, or of the load balancer in front of several instances.
	URL string
	// APIKey is the key of the sandbox workspace.
	APIKey string
	// WorkspaceID is the sandbox workspace.
	WorkspaceID string
	// App is the server, or the first of several instances.
	App *app.App

	t        testing.TB
	all      []*app.App // instances
	config   app.Config
	cloud    string  // URL of the server with the simulated cloud
	host     *Server // the server of a Sandbox
	mu       sync.Mutex
	requests []Request
	devices  map[string]string // device_id by profile

	checker    *conformance.Checker
	complaints map[string]bool
}

// Request is a request of a client to the API.
type Request struct {
	// Method and Path are those of the request.
	Method, Path string
	// Status is the status of the response.
	Status int
	// ID is the response header seam-request-id.
	ID string
	// Replayed reports whether the response came from the idempotency store.
	Replayed bool

	token string // credential of the request
}

// Option changes the configuration of Start.
type Option func(*app.Config)

// WithProfiles sets the profiles of the simulated devices. The default is all profiles of locks.
func WithProfiles(profiles ...string) Option {
	return func(c *app.Config) { c.Sandboxing.Profiles = profiles }
}

// WithLocks sets the number of simulated locks of each profile.
func WithLocks(n int) Option { return func(c *app.Config) { c.Sandboxing.LocksPerProfile = n } }

// WithAttemptTimeout sets the timeout of action attempts.
func WithAttemptTimeout(d time.Duration) Option {
	return func(c *app.Config) { c.Access.AttemptTimeout = d }
}

// WithAccess changes the options of the domain.
func WithAccess(change func(*access.Options)) Option {
	return func(c *app.Config) { change(&c.Access) }
}

// WithWebhooks sets the options of webhook delivery. Loopback addresses stay allowed.
func WithWebhooks(o webhook.Options) Option {
	return func(c *app.Config) {
		o.AllowPrefixes = append(o.AllowPrefixes, c.Webhooks.AllowPrefixes...)
		c.Webhooks = o
	}
}

// WithSpeed divides the latency of the simulated locks.
func WithSpeed(factor float64) Option { return func(c *app.Config) { c.Sandboxing.Speed = factor } }

// Start runs a server until the test ends. It returns once the server has read all simulated devices.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{t: t, devices: map[string]string{}}
	c := app.Config{
		Database: app.Database{
			DatabaseURL: storetest.New(t),
			DataDir:     t.TempDir(),
			MaxConns:    10 + app.ConnsOutsidePool,
		},
		Listen:     "127.0.0.1:0",
		Sandbox:    true,
		Sandboxing: app.Sandboxing{Speed: 50, Dir: "memory"},
		Work:       worker.Options{Workers: 20, Sweep: 500 * time.Millisecond, LeaseTTL: 5 * time.Second},
		Wrap:       s.record,
		Access:     access.Options{OfflineDebounce: 50 * time.Millisecond, OperationLag: 300 * time.Millisecond},
		Webhooks:   webhook.Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Log:        slog.New(slog.DiscardHandler),
	}
	if path := os.Getenv("APPTEST_LOG"); path != "" {
		f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		c.Log = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for _, o := range opts {
		o(&c)
	}
	if len(c.Sandboxing.Profiles) == 0 {
		c.Sandboxing.Profiles = sandbox.Profiles()
	}
	s.checkConformance(t)
	s.runAll(t, c)
	s.APIKey, s.WorkspaceID = s.App.Sandbox.APIKey, s.App.Sandbox.WorkspaceID.String()
	s.await(len(c.Sandboxing.Profiles) * max(c.Sandboxing.LocksPerProfile, 1))
	return s
}

// run starts an instance that runs until the test ends.
func (s *Server) run(t testing.TB, c app.Config) {
	t.Helper()
	a, err := app.Start(t.Context(), c)
	if err != nil {
		t.Fatalf("start the server: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
	s.App, s.URL, s.config, s.cloud = a, a.URL, c, cmp.Or(c.Sandboxing.URL, a.URL)
	s.all = append(s.all, a)
}

// Stop stops all instances of the server. A separate simulated cloud keeps running.
func (s *Server) Stop(ctx context.Context) (err error) {
	for _, a := range s.all {
		err = errors.Join(err, a.Stop(ctx))
	}
	return err
}

// await waits until n devices exist and each lock and noise sensor has been read.
func (s *Server) await(n int) {
	s.t.Helper()
	p := s.principal()
	Until(s.t, "the simulated devices are read", func() bool {
		devices, _, err := s.App.Access.Devices.ListDevices(
			s.t.Context(),
			p,
			device.Filter{},
			domain.Page{Limit: 10_000},
		)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, d := range devices {
			if _, known := s.devices[d.Provider]; !known {
				s.devices[d.Provider] = d.ID.String()
			}
			if !d.Capabilities.ListCodes && d.Capabilities.NoiseSensor == nil {
				continue
			}
			read, err := s.App.Access.Devices.HasBeenRead(s.t.Context(), d.ID)
			if err != nil {
				s.t.Fatal(err)
			}
			if !read {
				return false
			}
		}
		return len(devices) == n
	})
}

func (s *Server) principal() domain.Principal {
	return domain.Principal{WorkspaceID: uuid.MustParse(s.WorkspaceID)}
}

// Until waits for a condition, and fails the test if the condition does not become true in time.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	testenv.Until(t, what, ok)
}

// WithConsole configures the console.
func WithConsole(o app.ConsoleOptions) Option { return func(c *app.Config) { c.Console = o } }

// WithConnecting sets what people can connect on connect pages.
func WithConnecting(c app.Connecting) Option { return func(o *app.Config) { o.Connecting = c } }

// record records requests of clients. It leaves out requests between vendors, the simulated cloud, and the server.
func (s *Server) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		if seen.status == http.StatusOK && r.Method != http.MethodHead {
			s.checkResponse(r.URL.Path, seen.body)
		}
		if seen.status >= http.StatusBadRequest && !internal(r.URL.Path) {
			s.checkErrorType(r.URL.Path, seen.body)
		}
		if !internal(r.URL.Path) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.requests = append(
				s.requests,
				Request{
					r.Method,
					r.URL.Path,
					seen.status,
					w.Header().Get("Seam-Request-Id"),
					w.Header().Get("Idempotency-Replayed") == "true",
					strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
				},
			)
		}
	})
}

func internal(path string) bool {
	return len(path) > 9 && (path[:9] == "/vendors/" || path[:9] == "/sandbox/")
}

type statusWriter struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (w *statusWriter) Write(data []byte) (int, error) {
	w.body = append(w.body, data...)
	return w.ResponseWriter.Write(data)
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Requests returns the recorded requests of clients; for a Sandbox, those with its API key.
func (s *Server) Requests() []Request {
	if s.host != nil {
		return slices.DeleteFunc(s.host.Requests(), func(r Request) bool { return r.token != s.APIKey })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count returns the number of requests with a path.
func (s *Server) Count(path string) (n int) {
	for _, r := range s.Requests() {
		if r.Path == path {
			n++
		}
	}
	return n
}

// Device returns the device_id of the first simulated device of a profile.
func (s *Server) Device(t testing.TB, profile string) string {
	t.Helper()
	id, ok := s.devices[profile]
	if !ok {
		t.Fatalf("there is no simulated device of profile %q; see WithProfiles", profile)
	}
	return id
}

// Post sends a request with the sandbox key, decodes the response into out, and returns the status.
func (s *Server) Post(t testing.TB, path string, in, out any) (status int) {
	t.Helper()
	return s.PostAs(t, s.APIKey, path, in, out)
}

// PostAs is Post with another credential.
func (s *Server) PostAs(t testing.TB, key, path string, in, out any) (status int) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return s.send(t, http.MethodPost, s.URL+path, key, body, out)
}

func (s *Server) send(t testing.TB, method, url, token string, body []byte, out any) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatalf("%s %s answers %s: %s", method, url, res.Status, raw)
		}
	}
	return res.StatusCode
}

// UnmanagedCodes returns the unmanaged codes of a device.
func (s *Server) UnmanagedCodes(t testing.TB, device string) []api.UnmanagedAccessCode {
	t.Helper()
	var out api.UnmanagedAccessCodesResponse
	if status := s.Post(
		t,
		"/access_codes/unmanaged/list",
		map[string]any{"device_id": device},
		&out,
	); status != http.StatusOK {
		t.Fatalf("list the unmanaged codes: %d", status)
	}
	return out.AccessCodes
}

// Send sends a request with any method, path (with query), and headers. It decodes the response into out unless out is
// nil.
func (s *Server) Send(t testing.TB, method, path string, header http.Header, body string, out any) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatalf("%s %s answers %s: %s", method, path, res.Status, raw)
		}
	}
	return res
}

// Bearer returns the Authorization header for a credential.
func Bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// CloudURL returns the URL of the simulated cloud.
func (s *Server) CloudURL() string { return s.cloud + "/sandbox/cloud" }

// StartAnother starts another instance on the same database with the same simulated locks, as after a restart.
func (s *Server) StartAnother(t testing.TB, opts ...Option) *Server {
	t.Helper()
	again := &Server{
		t:           t,
		devices:     s.devices,
		APIKey:      s.APIKey,
		WorkspaceID: s.WorkspaceID,
	}
	c := s.config
	c.Wrap, c.Sandboxing.URL = again.record, s.cloud
	for _, o := range opts {
		o(&c)
	}
	again.checkConformance(t)
	again.run(t, c)
	return again
}

// LocalNetwork is the network of the tests' connections, for Config.TrustProxy.
func LocalNetwork() ratelimit.Proxies { return ratelimit.Proxies{netip.MustParsePrefix("127.0.0.0/8")} }
