package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// endpoint receives deliveries and keeps them to be checked once the secrets of their webhooks are known.
type endpoint struct {
	mu      sync.Mutex
	held    chan struct{} // nil: responds immediately
	waits   int
	arrived []delivery
}

// delivery is a delivery to a path, with its signature.
type delivery struct{ path, signed, signature, event string }

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var event struct {
		ID string `json:"event_id"`
	}
	if err != nil || json.Unmarshal(body, &event) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	held := e.held
	e.waits++
	e.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waits--
	e.arrived = append(
		e.arrived,
		delivery{
			r.URL.Path,
			fmt.Sprintf("%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body),
			r.Header.Get("Webhook-Signature"),
			event.ID,
		},
	)
}

// hold makes the endpoint delay its responses until release is called.
func (e *endpoint) hold() (release func()) {
	held := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = held
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.held = nil
		close(held)
	}
}

// waiting returns the number of delayed deliveries.
func (e *endpoint) waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held == nil {
		return 0
	}
	return e.waits
}

// forget drops the received deliveries.
func (e *endpoint) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.arrived = nil
}

// got returns the events that a path has received with the signature of a secret.
func (e *endpoint) got(secret, path string) map[string]bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	events := map[string]bool{}
	for _, d := range e.arrived {
		mac := hmac.New(sha256.New, key)
		io.WriteString(mac, d.signed)
		if d.path == path && d.signature == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			events[d.event] = true
		}
	}
	return events
}
