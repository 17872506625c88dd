package traces_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

type logBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (w *logBuffer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.Write(b)
}

func (w *logBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.String()
}

// to starts traces for a collector, and returns them with their log.
func to(t *testing.T, o traces.Options) (*traces.Traces, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	tr, err := traces.New(t.Context(), o, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tr, log
}

func sendSpans(t *testing.T, tr *traces.Traces, n int) {
	t.Helper()
	for range n {
		tr.Request(t.Context(), nil, time.Now(), http.MethodPost, "/devices/list").End()
	}
}

// hanging starts a collector that never answers, until the test ends.
func hanging(t *testing.T) (url string, asked func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		n++
		mu.Unlock()
		<-over
	}))
	t.Cleanup(func() { close(over); s.Close() })
	return s.URL + "/v1/traces", func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// The server responds and stops, regardless of the collector.
func TestHangingCollector_DoesNotBlockServer(t *testing.T) {
	t.Parallel()
	url, asked := hanging(t)
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.MetricsListen = "127.0.0.1:0"
		// the SDK gives up each batch after 30 s
		c.Traces = traces.Options{
			Endpoint: url,
			Interval: time.Millisecond,
			Queue:    8,
			Batch:    1,
			Timeout:  time.Hour,
		}
	})
	for range 50 {
		if status := s.Post(t, "/devices/list", map[string]any{}, nil); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	apptest.Until(t, "the collector has a request", func() bool { return asked() > 0 })
	res, err := http.Get(s.App.MetricsURL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	metrics, _ := io.ReadAll(res.Body)
	if !strings.Contains(string(metrics), `deviceaccess_trace_spans_total{outcome="sent"} 0`) ||
		strings.Contains(string(metrics), `deviceaccess_trace_spans_total{outcome="dropped"} 0`) {
		t.Errorf("the metrics do not count dropped spans:\n%s", metrics)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.App.Stop(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)): // normally it takes five seconds
		t.Fatal("the server does not stop")
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	url, asked := hanging(t)
	tr, _ := to(t, traces.Options{
		Endpoint: url,
		Interval: time.Millisecond,
		Queue:    16,
		Batch:    4,
		Timeout:  time.Hour,
	})
	sendSpans(t, tr, 1000)
	apptest.Until(t, "the collector has a request", func() bool { return asked() > 0 })
	sendSpans(t, tr, 1000)
	if f := tr.Counts(); f["dropped"] != 2000-16 || f["sent"] != 0 {
		t.Errorf("2000 spans with a queue for 16: %v", f)
	}
}

// A collector that is down causes one log line, and one more when it recovers.
func TestCollectorDown_LoggedOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	down, failures := true, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			failures++
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "\x1b[2Jno key\nlike %s %s", r.Header.Get("Authorization"), strings.Repeat("x", 10_000))
		}
	}))
	t.Cleanup(s.Close)
	tr, log := to(t, traces.Options{Endpoint: s.URL + "/v1/" + canary, Interval: time.Millisecond})
	apptest.Until(t, "sending has failed often", func() bool {
		sendSpans(t, tr, 1)
		mu.Lock()
		defer mu.Unlock()
		return failures > 5
	})
	mu.Lock()
	down = false
	mu.Unlock()
	apptest.Until(
		t,
		"the collector has recovered",
		func() bool { sendSpans(t, tr, 1); return tr.Counts()["sent"] > 0 },
	)
	apptest.Until(t, "the log has it", func() bool { return strings.Contains(log.String(), "again") })
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "401") || !strings.Contains(lines[0], "no key like") ||
		len(lines[0]) > 600 {
		t.Errorf("the log says:\n%s", log)
	}
	if strings.Contains(log.String(), canary) || strings.Contains(log.String(), "\x1b") {
		t.Errorf("the log has the collector's address, or control characters:\n%q", log)
	}
	if f := tr.Counts(); f["failed"] < 5 {
		t.Errorf("%v", f)
	}
}

// No process listens, or the response is endless, garbage, or a redirect: spans are lost, and nothing else.
func TestBrokenCollectors(t *testing.T) {
	t.Parallel()
	var elsewhere sync.Map
	other := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { elsewhere.Store(r.URL.Path, true) }),
	)
	t.Cleanup(other.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"no listener": nil,
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write([]byte("\xff\xff\xff garbage"))
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := closed.URL
			if answer != nil {
				s := httptest.NewServer(answer)
				t.Cleanup(s.Close)
				url = s.URL
			}
			tr, log := to(t, traces.Options{Endpoint: url + "/v1/traces", Interval: time.Millisecond})
			sendSpans(t, tr, 10)
			apptest.Until(t, "the spans have failed", func() bool { return tr.Counts()["failed"] == 10 })
			apptest.Until(
				t,
				"the log has it",
				func() bool { return strings.Contains(log.String(), "cannot send traces") },
			)
			elsewhere.Range(func(path, _ any) bool { t.Errorf("spans were sent elsewhere: %s", path); return false })
		})
	}
}
