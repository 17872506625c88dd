package devicecloud_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
)

const pushURL = "https://here.example/v/a-very-secret-path"

// hooks is a vendor that keeps one webhook per URL.
type hooks struct {
	mu                     sync.Mutex
	all                    []hook
	made, deleted, resyncs int
	idle                   bool // creating an existing webhook succeeds without a change
	refuse                 int  // status of rejected creations
	after                  string
}

type hook struct {
	ID     string   `json:"webhook_id"`
	URL    string   `json:"url"`
	Events []string `json:"events"`
	Status string   `json:"status"`
}

func (h *hooks) answer(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := func(url string) int { return slices.IndexFunc(h.all, func(o hook) bool { return o.URL == url }) }
	switch r.Method {
	case http.MethodGet:
		_ = json.NewEncoder(w).Encode(map[string]any{"webhooks": h.all})
	case http.MethodDelete:
		h.deleted++
		h.all = slices.DeleteFunc(h.all, func(o hook) bool { return "/webhooks/"+o.ID == r.URL.Path })
	case http.MethodPost:
		made := hook{ID: fmt.Sprint(h.made + 1), Status: "active"}
		_ = json.NewDecoder(r.Body).Decode(&made)
		h.made++
		switch there := of(made.URL) >= 0; {
		case h.refuse != 0 || there && !h.idle:
			w.Header().Set("Retry-After", h.after)
			w.WriteHeader(max(h.refuse, http.StatusConflict))
			_ = json.NewEncoder(w).Encode(map[string]any{"message": "there is one for " + made.URL})
		case !there:
			h.all = append(h.all, made)
		}
	}
}

// subscribed runs StaySubscribed for a duration, and calls happen once a minute. It returns the log.
func (h *hooks) subscribed(t *testing.T, long time.Duration, happen func(minute int)) string {
	t.Helper()
	var log bytes.Buffer
	a := devicecloud.New(devicecloud.Config{
		BaseURL: "http://cloud.example",
		PushURL: pushURL,
		HTTP:    &http.Client{Transport: direct{h.answer}},
		Log:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	told, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		for e := range a.Events() {
			if e.Kind == adapter.Resync {
				h.resyncs++
			}
		}
	}()
	go func() { defer close(ended); a.StaySubscribed(t.Context()) }()
	for minute := range int(long / time.Minute) {
		time.Sleep(time.Minute)
		synctest.Wait()
		h.mu.Lock()
		happen(minute)
		h.mu.Unlock()
	}
	_ = a.Close()
	<-ended
	<-told
	if strings.Contains(log.String(), "a-very-secret-path") {
		t.Error("the log contains the secret of the push URL")
	}
	return log.String()
}

// A webhook that is dead when a server starts, or is dropped before the first check, is recreated.
func TestDeadWebhookIsRecreated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		idle   bool
		before func(h *hooks)
		happen func(h *hooks, minute int)
	}{
		"it is disabled, and another one of the URL refused": {before: func(h *hooks) { h.all[0].Status = "disabled" }},
		"it is disabled, and making it does nothing": {
			idle:   true,
			before: func(h *hooks) { h.all[0].Status = "disabled" },
		},
		"it is dropped before it is looked at": {happen: func(h *hooks, minute int) {
			if minute == 0 {
				h.all = h.all[:0]
			}
		}},
		"it is disabled before it is looked at": {happen: func(h *hooks, minute int) {
			if minute == 0 {
				h.all[0].Status = "disabled"
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &hooks{idle: c.idle}
				h.subscribed(t, time.Minute, func(int) {}) // an earlier server
				if len(h.all) != 1 {
					t.Fatalf("%d webhooks", len(h.all))
				}
				h.made, h.resyncs = 0, 0
				if c.before != nil {
					c.before(h)
				}
				h.subscribed(t, time.Hour, func(minute int) {
					if c.happen != nil {
						c.happen(h, minute)
					}
				})
				if len(h.all) != 1 || h.all[0].Status != "active" || h.made != 1 || h.resyncs > 2 {
					t.Errorf("after %d creations and %d resyncs: %+v", h.made, h.resyncs, h.all)
				}
			})
		})
	}
}

// A vendor that drops the webhook repeatedly is not called every few minutes, and the warning is logged once.
func TestDroppedWebhookIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{}
		log := h.subscribed(t, 24*time.Hour, func(int) {
			if len(h.all) > 0 {
				h.all[0].Status = "disabled"
			}
		})
		if h.made < 24 || h.made > 60 || h.resyncs != h.made {
			t.Errorf("in a day, it is created %d times, with %d resyncs", h.made, h.resyncs)
		}
		if n := strings.Count(log, "level=WARN"); n != 1 {
			t.Errorf("the warning is logged %d times", n)
		}
	})
}

// A vendor that rejects the webhook is retried as often as it allows, and the warning is logged once.
func TestRejectedWebhookIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for after, most := range map[string]int{"": 400, "3600": 25} {
		synctest.Test(t, func(t *testing.T) {
			h := &hooks{refuse: http.StatusTooManyRequests, after: after}
			log := h.subscribed(t, 24*time.Hour, func(int) {})
			if h.made < most/2 || h.made > most {
				t.Errorf("with Retry-After %q, it is called %d times a day", after, h.made)
			}
			if n := strings.Count(log, "level=WARN"); n != 1 {
				t.Errorf("with Retry-After %q, the warning is logged %d times", after, n)
			}
		})
	}
}
