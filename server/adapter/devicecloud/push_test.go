package devicecloud_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
)

func receive(a *devicecloud.Adapter, method, body string) int {
	w := httptest.NewRecorder()
	a.Receive(w, httptest.NewRequest(method, "/push", strings.NewReader(body)))
	return w.Code
}

func TestReceive_Events(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       adapter.Event // Kind empty: none
	}{
		{
			"online", `{"event_type":"device.online","device_id":"l1"}`,
			adapter.Event{Kind: adapter.DeviceOnline, Device: "l1"},
		},
		{
			"offline", `{"event_type":"device.offline","device_id":"l1"}`,
			adapter.Event{Kind: adapter.DeviceOffline, Device: "l1"},
		},
		{
			"added", `{"event_type":"device.added","device_id":"l1"}`,
			adapter.Event{Kind: adapter.DeviceListed, Device: "l1"},
		},
		{
			"battery", `{"event_type":"battery.low","device_id":"l1","battery_level":15}`,
			adapter.Event{Kind: adapter.StatusChanged, Device: "l1"},
		},
		{
			"bolt", `{"event_type":"lock.action_completed","device_id":"l1"}`,
			adapter.Event{Kind: adapter.StatusChanged, Device: "l1"},
		},
		{
			"locked", `{"event_id":"e1","event_type":"lock.action_completed","device_id":"l1","action":"lock","performed_via":"mobile_app","status":"success"}`,
			adapter.Event{
				Kind: adapter.LockOperated, Device: "l1",
				Operation: adapter.Operation{ID: "e1", Locked: true, Method: adapter.Remotely},
			},
		},
		{
			"opened", `{"event_type":"lock.action_completed","action_id":"a1","lock_id":"l1","action":"unlock","performed_via":"pin_code","access_code_id":"c1","timestamp":"2026-01-02T03:04:05Z"}`,
			adapter.Event{
				Kind:   adapter.LockOperated,
				Device: "l1",
				Code:   "c1",
				Operation: adapter.Operation{
					ID: "a1", Method: adapter.ByKeycode,
					At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				},
			},
		},
		{
			"in another way", `{"event_type":"lock.action_completed","lock_id":"l1","action":"unlock","performed_via":"crowbar","timestamp":1767323045}`,
			adapter.Event{
				Kind: adapter.LockOperated, Device: "l1",
				Operation: adapter.Operation{Method: adapter.ByUnknown},
			},
		},
		{
			"jammed", `{"event_id":"e1","event_type":"lock.action_completed","device_id":"l1","action":"lock","status":"failed","error_code":"LOCK_JAMMED"}`,
			adapter.Event{Kind: adapter.Jammed, Device: "l1", Operation: adapter.Operation{ID: "e1", Locked: true}},
		},
		{
			"denied", `{"event_id":"e1","event_type":"access_code.incorrect_attempt","lock_id":"l1"}`,
			adapter.Event{Kind: adapter.AccessDenied, Device: "l1", Operation: adapter.Operation{ID: "e1"}},
		},
		{
			"flat", `{"event_type":"access_code.created","device_id":"l1","access_code_id":"c1","code":"4829"}`,
			adapter.Event{Kind: adapter.CodesChanged, Device: "l1", Code: "c1"},
		},
		{
			"nested", `{"event_type":"access_code.updated","access_code":{"access_code_id":"c1","lock_id":"l1"}}`,
			adapter.Event{Kind: adapter.CodesChanged, Device: "l1", Code: "c1"},
		},
		{
			"without its device", `{"event_type":"access_code.deleted","access_code_id":"c1"}`,
			adapter.Event{Kind: adapter.Resync},
		},
		{"bridge", `{"event_type":"bridge.offline","bridge_id":"b1"}`, adapter.Event{Kind: adapter.Resync}},
		{"device with an endless name", `{"event_type":"device.offline","device_id":"` + strings.Repeat("l",
			1001) + `"}`, adapter.Event{Kind: adapter.Resync}},
		{"revoked", `{"event_type":"account.revoked","device_id":null}`, adapter.Event{Kind: adapter.AccountRevoked}},
		{"used", `{"event_type":"access_code.used","lock_id":"l1"}`, adapter.Event{}},
		{"unknown", `{"event_type":"moon.full","device_id":"l1"}`, adapter.Event{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := devicecloud.New(devicecloud.Config{})
			if code := receive(a, http.MethodPost, c.body); code != http.StatusNoContent {
				t.Errorf("status %d", code)
			}
			_ = a.Close()
			got := <-a.Events()
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestReceive_InvalidPush(t *testing.T) {
	t.Parallel()
	a := devicecloud.New(devicecloud.Config{})
	for _, c := range []struct {
		name, method, body string
		want               int
	}{
		{"method", http.MethodGet, "", http.StatusMethodNotAllowed},
		{"JSON", http.MethodPost, "{", http.StatusBadRequest},
		{
			"size", http.MethodPost, `{"event_type":"` + strings.Repeat("x", 17<<10) + `"}`,
			http.StatusRequestEntityTooLarge,
		},
	} {
		if got := receive(a, c.method, c.body); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	_ = a.Close()
	if got := receive(a, http.MethodPost,
		`{"event_type":"device.online","device_id":"l1"}`); got != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d", got)
	}
}

func TestUnreadEventsBecomeOneResync(t *testing.T) {
	t.Parallel()
	a := devicecloud.New(devicecloud.Config{})
	for range 257 {
		if code := receive(a, http.MethodPost,
			`{"event_type":"device.online","device_id":"l1"}`); code != http.StatusNoContent {
			t.Fatalf("status %d", code)
		}
	}
	receive(a, http.MethodPost, `{"event_type":"device.offline","device_id":"l1"}`)
	_ = a.Close()
	var got []adapter.EventKind
	for e := range a.Events() {
		got = append(got, e.Kind)
	}
	if len(got) != 2 || got[0] != adapter.Resync || got[1] != adapter.DeviceOffline {
		t.Errorf("%d events wait: %v", len(got), got[:min(3, len(got))])
	}
}

// When a vendor exceeds the rate limit, it is asked to wait, and its devices are read instead.
func TestReceive_RateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := devicecloud.New(devicecloud.Config{})
		go func() {
			for range a.Events() { // the events are consumed as they arrive
			}
		}()
		push := func() *http.Response {
			w := httptest.NewRecorder()
			a.Receive(w, httptest.NewRequest(http.MethodPost, "/",
				strings.NewReader(`{"event_type":"device.online","device_id":"l1"}`)))
			return w.Result()
		}
		taken := func() (n int) {
			for n < 1000 && push().StatusCode == http.StatusNoContent {
				n++
			}
			return n
		}
		if n := taken(); n != 500 {
			t.Errorf("%d are accepted in a burst", n)
		}
		if res := push(); res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "1" ||
			res.Header.Get("Connection") != "close" {
			t.Errorf("the next: %d %v", res.StatusCode, res.Header)
		}
		time.Sleep(time.Second)
		if n := taken(); n != 100 {
			t.Errorf("%d are accepted a second later", n)
		}
		_ = a.Close()
	})
}

func TestReceive_RateLimitSendsResync(t *testing.T) {
	t.Parallel()
	a := devicecloud.New(devicecloud.Config{})
	// which contains no event
	for n := 0; n < 100_000 && receive(a, http.MethodPost,
		`{"event_type":"lock.no_such_event"}`) == http.StatusNoContent; n++ {
		continue
	}
	_ = a.Close()
	if e, ok := <-a.Events(); !ok || e.Kind != adapter.Resync {
		t.Errorf("%+v, %v", e, ok)
	}
}

func TestReceive_TooLargeSendsResync(t *testing.T) {
	t.Parallel()
	a := devicecloud.New(devicecloud.Config{})
	receive(a, http.MethodPost, `{"event_type":"`+strings.Repeat("x", 17<<10)+`"}`)
	_ = a.Close()
	if e, ok := <-a.Events(); !ok || e.Kind != adapter.Resync {
		t.Errorf("%+v, %v", e, ok)
	}
}

func TestReceive_ConcurrentClose(t *testing.T) {
	t.Parallel()
	a := devicecloud.New(devicecloud.Config{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				receive(a, http.MethodPost, `{"event_type":"device.online","device_id":"l1"}`)
			}
		})
		all.Go(func() { _ = a.Close() })
	}
	all.Wait()
}

func TestSubscribe_CreatesOneWebhook(t *testing.T) {
	t.Parallel()
	c := newCloud(t, "august") // newCloud subscribes
	if err := c.adapter.Subscribe(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Webhooks []struct{ Events []string }
	}
	c.do(t, http.MethodGet, "/webhooks", nil, &got)
	if len(got.Webhooks) != 1 || len(got.Webhooks[0].Events) < 10 {
		t.Errorf("webhooks: %+v", got.Webhooks)
	}
}

func TestSubscribe_WithoutList(t *testing.T) {
	t.Parallel()
	posted := ""
	a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		posted = string(body)
		_, _ = io.WriteString(w, `{"webhook_id":"wh_1","status":"active"}`)
	})
	if err := a.Subscribe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(posted, `"url":"https://here.example/push"`) ||
		!strings.Contains(posted, `"access_code.deleted"`) {
		t.Errorf("posted %s", posted)
	}
	a, _ = vendor(t, says(401, ""))
	classIs(t, "Subscribe", a.Subscribe(t.Context()), adapter.AuthRevoked)
}

func TestSubscribe_OnlyMissingEvents(t *testing.T) {
	t.Parallel()
	var known, posted string // the vendor's webhook, and the body of the last creation
	a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			_, _ = io.WriteString(w, `{"webhooks":[`+known+`]}`)
		case http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			posted = string(body)
			_, _ = io.WriteString(w, `{"webhook_id":"wh_1","status":"active"}`)
		}
	})
	subscribe := func() string {
		posted = ""
		if err := a.Subscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
		return posted
	}
	whole := subscribe()
	for _, c := range []struct {
		name, known string
		posts       bool
	}{
		{"the same", whole, false},
		{"another URL", strings.Replace(whole, "here.example", "there.example", 1), true},
		{"fewer events", strings.Replace(whole, "device.online", "moon.full", 1), true},
	} {
		if known = c.known; (subscribe() != "") != c.posts {
			t.Errorf("%s: posted %q", c.name, posted)
		}
	}
}

// After a server has moved, its old webhook is deleted.
func TestSubscribe_DeletesOldAddress(t *testing.T) {
	t.Parallel()
	c := newCloud(t, "august")
	at := func(host string) *devicecloud.Adapter {
		return devicecloud.New(devicecloud.Config{
			BaseURL: c.server.URL,
			Token:   c.account.Token,
			HTTP:    c.client,
			PushURL: host + "/vendors/x/secret",
		})
	}
	for _, host := range []string{"http://127.0.0.1:1", "http://127.0.0.1:2"} {
		if err := at(host).Subscribe(t.Context()); err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
	}
	var got struct {
		Webhooks []struct{ URL string }
	}
	c.do(t, http.MethodGet, "/webhooks", nil, &got)
	var urls []string
	for _, w := range got.Webhooks {
		urls = append(urls, w.URL)
	}
	if want := []string{c.server.URL + "/push", "http://127.0.0.1:2/vendors/x/secret"}; !slices.Equal(urls, want) {
		t.Errorf("webhooks %v, want %v", urls, want)
	}
}

func TestPendingCodeHasNoErrorOfPreviousChange(t *testing.T) {
	t.Parallel()
	a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/access_codes") {
			_, _ = io.WriteString(w, `{"lock_id":"l1"}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_codes":[
			{"access_code_id":"1","status":"pending","error_code":"DEVICE_FULL"},
			{"access_code_id":"2","status":"active","error_code":"DEVICE_FULL"}]}`)
	})
	got, err := a.Codes(t.Context(), "l1", false)
	if err != nil || len(got.Codes) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.Codes[0].Failed != nil || got.Codes[1].Failed == nil {
		t.Errorf("failed: %v, %v", got.Codes[0].Failed, got.Codes[1].Failed)
	}
}
