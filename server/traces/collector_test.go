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

type written struct {
	mu sync.Mutex
	bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.String()
}

// to has traces sent to a collector, and what is said about that.
func to(t *testing.T, o traces.Options) (*traces.Traces, *written) {
	t.Helper()
	log := &written{}
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

func tell(t *testing.T, tr *traces.Traces, n int) {
	t.Helper()
	for range n {
		tr.Request(t.Context(), nil, time.Now(), http.MethodPost, "/devices/list").End()
	}
}

// hanging is a collector that takes requests and never answers, until the test is over.
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

// The server answers, and comes to its end, whatever becomes of the collector.
func TestCollectorThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	url, asked := hanging(t)
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) {
		c.MetricsListen = "127.0.0.1:0"
		c.Traces = traces.Options{Endpoint: url, Every: time.Millisecond, Queue: 8, Batch: 1, Timeout: time.Hour} // the SDK by itself gives up each batch after 30 s
	})
	for range 50 {
		if status := s.Post(t, "/devices/list", map[string]any{}, nil); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	apptest.Until(t, "the collector is asked", func() bool { return asked() > 0 })
	res, err := http.Get(s.App.MetricsURL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	told, _ := io.ReadAll(res.Body)
	if !strings.Contains(string(told), `deviceaccess_trace_spans_total{outcome="sent"} 0`) || strings.Contains(string(told), `deviceaccess_trace_spans_total{outcome="dropped"} 0`) {
		t.Errorf("the metrics do not tell that spans are dropped:\n%s", told)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.App.Stop(context.WithoutCancel(t.Context())) }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testenv.Timeout(testenv.WaitTimeout)): // it takes five seconds
		t.Fatal("the server does not stop")
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	url, asked := hanging(t)
	tr, _ := to(t, traces.Options{Endpoint: url, Every: time.Millisecond, Queue: 16, Batch: 4, Timeout: time.Hour})
	tell(t, tr, 1000)
	apptest.Until(t, "the collector is asked", func() bool { return asked() > 0 })
	tell(t, tr, 1000)
	if f := tr.Figures(); f["dropped"] != 2000-16 || f["sent"] != 0 {
		t.Errorf("of 2000 spans and a queue for 16: %v", f)
	}
}

// A collector that is down is one line of the log, and one more when it is back.
func TestCollectorThatIsDownIsSaidOnce(t *testing.T) {
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
	tr, log := to(t, traces.Options{Endpoint: s.URL + "/v1/" + unmistaken, Every: time.Millisecond})
	apptest.Until(t, "it has failed often", func() bool {
		tell(t, tr, 1)
		mu.Lock()
		defer mu.Unlock()
		return failures > 5
	})
	mu.Lock()
	down = false
	mu.Unlock()
	apptest.Until(t, "it is back", func() bool { tell(t, tr, 1); return tr.Figures()["sent"] > 0 })
	apptest.Until(t, "that is said", func() bool { return strings.Contains(log.String(), "again") })
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "401") || !strings.Contains(lines[0], "no key like") || len(lines[0]) > 600 {
		t.Errorf("the log says:\n%s", log)
	}
	if strings.Contains(log.String(), unmistaken) || strings.Contains(log.String(), "\x1b") {
		t.Errorf("the log quotes the collector's address, or speaks to a terminal:\n%q", log)
	}
	if f := tr.Figures(); f["failed"] < 5 {
		t.Errorf("%v", f)
	}
}

// Nobody listens, the answer has no end, is garbage, or sends elsewhere: spans are lost, and nothing else.
func TestCollectorsThatAreNone(t *testing.T) {
	t.Parallel()
	var elsewhere sync.Map
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { elsewhere.Store(r.URL.Path, true) }))
	t.Cleanup(other.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"nobody": nil,
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
			tr, log := to(t, traces.Options{Endpoint: url + "/v1/traces", Every: time.Millisecond})
			tell(t, tr, 10)
			apptest.Until(t, "the spans are given up", func() bool { return tr.Figures()["failed"] == 10 })
			apptest.Until(t, "that is said", func() bool { return strings.Contains(log.String(), "does not take traces") })
			elsewhere.Range(func(path, _ any) bool { t.Errorf("spans were sent elsewhere: %s", path); return false })
		})
	}
}
