package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/metrics"
)

func TestMain(m *testing.M) { apptest.Main(m) }

func scrape(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", res.Status, err)
	}
	return string(body)
}

// A running server exposes its metrics at a separate address, without identifiers and secrets.
func TestServerExposesMetrics(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) { c.MetricsListen = "127.0.0.1:0" })
	good := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	gone := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }),
	)
	broken := httptest.NewServer(
		http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		),
	)
	for _, e := range []*httptest.Server{good, gone, broken} {
		defer e.Close()
		s.Post(t, "/webhooks/create", map[string]any{"url": e.URL, "event_types": []string{"access_code.created"}}, nil)
	}
	s.Post(t, "/access_codes/create", map[string]any{"device_id": s.Device(t, "august")}, nil)
	s.Post(t, "/webhooks/get", map[string]any{"webhook_id": "x"}, nil)
	s.Post(t, "/no/such/path", struct{}{}, nil)
	var text string
	wanted := []string{
		`deviceaccess_webhook_attempts_total{outcome="delivered"} 1`,
		`deviceaccess_webhook_attempts_total{outcome="gone"} 1`,
		`deviceaccess_webhook_attempts_total{outcome="retry"} 1`,
		`deviceaccess_webhook_attempts_total{outcome="given_up"} 0`,
		`deviceaccess_webhook_attempt_seconds_count{result="success"} 1`,
		`deviceaccess_webhook_attempt_seconds_count{result="failure"} 2`,
		`deviceaccess_webhook_deliveries_pending{endpoint="failing"} 1`,
		`deviceaccess_webhook_deliveries_pending{endpoint="healthy"} 0`,
		`deviceaccess_webhook_oldest_due_seconds{endpoint="failing"} 0`,
		`deviceaccess_webhook_oldest_due_seconds{endpoint="slow"} 0`,
		"deviceaccess_webhooks_disabled 1",
		"deviceaccess_outbox_events 0",
		"deviceaccess_outbox_oldest_seconds 0",
		"deviceaccess_database_up 1",
		`deviceaccess_devices{state="online"} 1`,
		`deviceaccess_access_codes{status="set"}`,
		`deviceaccess_work_in_progress{lane="endpoint"}`,
		`deviceaccess_work_in_progress{lane="device"}`,
		`deviceaccess_http_requests_total{operation="/webhooks/create",status="200"} 3`,
		`deviceaccess_http_requests_total{operation="/webhooks/get",status="404"} 1`,
		`deviceaccess_http_requests_total{operation="unknown",status="404"} 1`,
		`deviceaccess_http_request_seconds_count{operation="/webhooks/create"} 3`,
		"go_goroutines",
	}
	var missing string
	apptest.Until(t, "all metrics have their values", func() bool {
		text = scrape(t, s.App.MetricsURL)
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				missing = w
				return false
			}
		}
		return true
	})
	if missing != "" && t.Failed() {
		t.Logf("missing was %s", missing)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint() // as promtool check metrics does
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "deviceaccess_") { // the others are those of the library
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, secret := range []string{s.WorkspaceID, s.APIKey, s.Device(t, "august"), good.URL, "whsec_"} {
		if strings.Contains(text, secret) {
			t.Errorf("the metrics contain %q", secret)
		}
	}
	if status := s.Post(t, "/metrics", struct{}{}, nil); status != http.StatusNotFound {
		t.Errorf("the API's address has metrics: %d", status)
	}
}

// A client that disconnects before its response is not a failure of the server.
func TestDisconnectedClient_CountsAsNoFailure(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) { c.MetricsListen = "127.0.0.1:0" })
	device := map[string]any{"device_id": s.Device(t, "august")}
	s.Post(t, "/devices/simulate/disconnect", device, nil)
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		s.App.URL+"/access_codes/create",
		strings.NewReader(`{"device_id":"`+s.Device(t, "august")+`","sync":true}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.APIKey)
	req.Header.Set("Content-Type", "application/json")
	ended := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			err = res.Body.Close()
		}
		ended <- err
	}()
	apptest.Until(t, "the client waits", func() bool {
		var out struct {
			Attempts []struct{ Status string } `json:"action_attempts"`
		}
		s.Post(t, "/action_attempts/list", device, &out)
		return len(out.Attempts) == 1 && out.Attempts[0].Status == "pending"
	})
	hangUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the client was answered: %v", err)
	}
	const counted = `deviceaccess_http_requests_total{operation="/access_codes/create",status=`
	var text string
	apptest.Until(t, "the request is counted", func() bool {
		text = scrape(t, s.App.MetricsURL)
		return strings.Contains(text, counted)
	})
	if !strings.Contains(text, counted+`"499"} 1`) || strings.Contains(text, counted+`"5`) {
		t.Error(regexp.MustCompile(`(?m)^deviceaccess_http_requests_total.*$`).FindAllString(text, -1))
	}
}

func TestBacklog_CachedAndMayFail(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	m := metrics.New(metrics.Sources{
		Log:    slog.New(slog.DiscardHandler),
		Health: func() map[string]float64 { return map[string]float64{"database": 2} },
		Busy:   func() map[string]int { return map[string]int{"device": 2} },
		Backlog: func(context.Context) (health.Backlog, error) {
			asked.Add(1)
			return health.Backlog{}, errors.New("no")
		},
		Inventory: metrics.InventorySources{
			Inventory: func(context.Context) (health.Inventory, error) { return health.Inventory{}, errors.New("no") },
			Version:   "1.2.3",
		},
	})
	s := httptest.NewServer(m.Handler())
	defer s.Close()
	for range 5 {
		text := scrape(t, s.URL+"/metrics")
		if !strings.Contains(text, "deviceaccess_database_up 0") ||
			!strings.Contains(text, "deviceaccess_inventory_up 0") ||
			!strings.Contains(text, `deviceaccess_work_in_progress{lane="device"} 2`) ||
			!strings.Contains(text, `deviceaccess_health{part="database"} 2`) ||
			!strings.Contains(text, `version="1.2.3"} 1`) ||
			strings.Contains(text, "deviceaccess_devices{") ||
			strings.Contains(text, "deviceaccess_outbox_events 0") {
			t.Fatalf("without the database:\n%s", text)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("queried %d times", n)
	}
}

// A failure to count shows in a metric, because the counts are missing then. The log has one line about it, and one
// about its end.
func TestInventory_FailureIsExposedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var fails atomic.Bool
	m := metrics.New(metrics.Sources{
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
		Health:  func() map[string]float64 { return nil },
		Busy:    func() map[string]int { return nil },
		Backlog: func(context.Context) (health.Backlog, error) { return health.Backlog{}, nil },
		Inventory: metrics.InventorySources{
			Inventory: func(context.Context) (health.Inventory, error) {
				if fails.Load() {
					return health.Inventory{}, errors.New("too slow")
				}
				return health.Inventory{Failing: 2, RemovalOverdue: 3}, nil
			},
		},
	})
	s := httptest.NewServer(m.Handler())
	defer s.Close()
	works := func() {
		t.Helper()
		text := scrape(t, s.URL+"/metrics")
		for _, want := range []string{"inventory_up 1", "codes_failing 2", "codes_removal_overdue 3"} {
			if !strings.Contains(text, "\ndeviceaccess_"+want+"\n") {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
	}
	works()
	fails.Store(true)
	for range 5 {
		if text := scrape(t, s.URL+"/metrics"); !strings.Contains(text, "\ndeviceaccess_inventory_up 0\n") ||
			strings.Contains(text, "\ndeviceaccess_codes_failing") {
			t.Fatalf("without counts:\n%s", text)
		}
	}
	fails.Store(false)
	works()
	s.Close() // all scrapes have ended
	if n := strings.Count(log.String(), "cannot count devices and codes"); n != 1 ||
		strings.Count(log.String(), "counted again") != 1 || !strings.Contains(log.String(), "too slow") {
		t.Errorf("the log has %d lines about the failure:\n%s", n, &log)
	}
}
