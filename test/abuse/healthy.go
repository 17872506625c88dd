package abuse

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const (
	readInterval  = 25 * time.Millisecond
	writeInterval = 100 * time.Millisecond
	codeInterval  = 300 * time.Millisecond
	maxFailures   = 3

	// Longer requests count as failed when Compare is set. Usually a request takes milliseconds, and a code some tenths
	// of a second.
	responseTimeout = 10 * time.Second
	codeTimeout     = time.Minute
)

// healthy is the client, lock, and webhook endpoint that must not notice an attack.
type healthy struct {
	url, key string
	within   time.Duration // until a code is set and reported
	device   string
	client   *http.Client
	endpoint *http.Server
	hook     string

	mu    sync.Mutex
	took  []time.Duration
	codes []time.Duration
	begun map[string]time.Time // by access_code_id
	// events that arrived before the response to the creation
	reported map[string]bool
	worked   int
	ok       int
	failures []string
	failed   int
}

func newHealthy(ctx context.Context, url, key string, compare bool) (*healthy, error) {
	answer, code := testenv.Timeout(testenv.WaitTimeout), testenv.Timeout(testenv.WaitTimeout)
	if compare {
		answer, code = responseTimeout, codeTimeout
	}
	h := &healthy{
		url:      url,
		key:      key,
		within:   code,
		begun:    map[string]time.Time{},
		reported: map[string]bool{},
		client:   &http.Client{Timeout: answer, Transport: &http.Transport{MaxIdleConnsPerHost: 8}},
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.hook = "http://" + listener.Addr().String() + "/"
	h.endpoint = &http.Server{Handler: http.HandlerFunc(h.receive), ReadHeaderTimeout: time.Minute}
	go h.endpoint.Serve(listener) //nolint:errcheck // ends with close
	if h.device, err = lock(ctx, h.client, url, key); err != nil {
		return nil, err
	}
	return h, post(
		ctx,
		h.client,
		url+"/webhooks/create",
		key,
		map[string]any{"url": h.hook, "event_types": []string{"access_code.set_on_device"}},
		nil,
	)
}

// lock waits for the simulated lock of a workspace.
func lock(ctx context.Context, client *http.Client, url, key string) (device string, err error) {
	var devices struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	err = until(ctx, "the simulated lock is there", func() (bool, error) {
		err := post(ctx, client, url+"/devices/list", key, map[string]any{"device_type": "august_lock"}, &devices)
		return len(devices.Devices) > 0, err
	})
	if err != nil {
		return "", err
	}
	return devices.Devices[0].ID, nil
}

func (h *healthy) receive(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var event struct {
		Code string `json:"access_code_id"`
	}
	if err != nil || json.Unmarshal(body, &event) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.begun[event.Code]; ok {
		h.arrived(event.Code)
	} else {
		h.reported[event.Code] = true
	}
}

// arrived counts a code as set; with h.mu held.
func (h *healthy) arrived(code string) {
	h.codes = append(h.codes, time.Since(h.begun[code]))
	h.worked++
	delete(h.begun, code)
}

// begin starts work until stop is called.
func (h *healthy) begin(ctx context.Context) (stop func()) {
	working, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { h.work(working); close(done) }()
	return func() { cancel(); <-done }
}

// work sends requests until ctx ends.
func (h *healthy) work(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	n := 0
	every(ctx, &all, readInterval, func() {
		n++
		path := []string{"/devices/list", "/access_codes/list", "/workspaces/get"}[n%3]
		h.ask(ctx, path, map[string]any{"limit": 5, "device_id": h.device}, nil)
	})
	people := 0
	every(ctx, &all, writeInterval, func() {
		people++
		h.ask(ctx, "/user_identities/create", map[string]any{"full_name": fmt.Sprint("Guest ", people)}, nil)
	})
	every(ctx, &all, codeInterval, func() { h.code(ctx) })
}

func every(ctx context.Context, all *sync.WaitGroup, d time.Duration, f func()) {
	all.Go(func() {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				f()
			}
		}
	})
}

// code sets one code on the lock and removes it.
func (h *healthy) code(ctx context.Context) {
	var made struct {
		Code struct {
			ID string `json:"access_code_id"`
		} `json:"access_code"`
	}
	begin := time.Now()
	if !h.ask(ctx, "/access_codes/create", map[string]any{"device_id": h.device, "name": "Guest"}, &made) {
		return
	}
	h.mu.Lock()
	h.begun[made.Code.ID] = begin
	if h.reported[made.Code.ID] {
		delete(h.reported, made.Code.ID)
		h.arrived(made.Code.ID)
	}
	h.mu.Unlock()
	for ctx.Err() == nil && h.waits(made.Code.ID, begin) {
		<-time.After(20 * time.Millisecond)
	}
	h.ask(context.WithoutCancel(ctx), "/access_codes/delete", map[string]any{"access_code_id": made.Code.ID}, nil)
}

// waits reports whether a code is not set yet. After codeTimeout the code counts as failed.
func (h *healthy) waits(code string, begin time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.begun[code]; !ok {
		return false
	}
	if time.Since(begin) < h.within {
		return true
	}
	delete(h.begun, code)
	h.fail(fmt.Errorf("a code was not set on the lock and reported within %s", h.within))
	return false
}

// fail counts a failure; with h.mu held.
func (h *healthy) fail(err error) {
	h.failed++
	if len(h.failures) < maxFailures {
		h.failures = append(h.failures, err.Error())
	}
}

// ask sends one request that must not fail.
func (h *healthy) ask(ctx context.Context, path string, in, out any) bool {
	begin := time.Now()
	err := post(ctx, h.client, h.url+path, h.key, in, out)
	took := time.Since(begin)
	if err != nil && ctx.Err() != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.took = append(h.took, took)
	if err == nil {
		h.ok++
		return true
	}
	h.fail(err)
	return false
}

// window measures for d, or longer until there are enough requests and a code.
func (h *healthy) window(ctx context.Context, d time.Duration) (f Figures, worked int) {
	h.figures()
	for end := time.Now().Add(d); ctx.Err() == nil; {
		select {
		case <-time.After(d / 10):
		case <-ctx.Done():
		}
		h.mu.Lock()
		enough := len(h.took) >= 10 && h.worked+h.failed > 0
		h.mu.Unlock()
		if enough && time.Now().After(end) || time.Now().After(end.Add(waitTimeout)) {
			break
		}
	}
	return h.figures()
}

// figures returns the measurements since its last call.
func (h *healthy) figures() (f Figures, worked int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f = Figures{
		OK:       h.ok,
		Failed:   h.failed,
		Failures: h.failures,
		P50:      quantile(h.took, 0.5),
		P99:      quantile(h.took, 0.99),
		Code:     quantile(h.codes, 0.5),
	}
	worked = h.worked
	h.took, h.codes, h.ok, h.failed, h.failures, h.worked = nil, nil, 0, 0, nil, 0
	return f, worked
}

func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}
