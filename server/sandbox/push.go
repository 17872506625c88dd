package sandbox

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// event is the body of a webhook delivery. The guide shows two forms, flat and with the code in an object; event
// combines them. It contains no PIN.
type event struct {
	ID           string     `json:"event_id"`
	Type         string     `json:"event_type"`
	DeviceID     string     `json:"device_id,omitempty"`
	AccessCodeID string     `json:"access_code_id,omitempty"`
	AccessCode   *eventCode `json:"access_code,omitempty"`
	ActionID     string     `json:"action_id,omitempty"`
	CustomID     string     `json:"custom_id,omitempty"`
	Action       string     `json:"action,omitempty"`
	PerformedVia string     `json:"performed_via,omitempty"`
	BatteryLevel *int       `json:"battery_level,omitempty"`
	Status       string     `json:"status,omitempty"` // success or failed
	ErrorCode    string     `json:"error_code,omitempty"`
	Message      string     `json:"message,omitempty"`
	Timestamp    time.Time  `json:"timestamp"`
}

type eventCode struct {
	AccessCodeID string `json:"access_code_id"`
	LockID       string `json:"lock_id"`
	Name         string `json:"name"`
	window
	Status status `json:"status"`
}

// webhook is a subscription of one account.
type webhook struct {
	ID     string   `json:"webhook_id"`
	URL    string   `json:"url"`
	Events []string `json:"events"`

	queue   [][]byte // undelivered events, oldest first; account.mu guards it
	sending bool
	deleted bool
}

const (
	// queueLimit is per webhook; further events are lost.
	queueLimit = 10_000
	attempts   = 8
	// retryGap is doubled after each attempt, and divided by Options.Speed.
	retryGap = 250 * time.Millisecond
)

// announce pushes an event of the lock to the account's webhooks, subject to the lock's faults; l.mu is held.
func (l *lock) announce(e event) {
	e.DeviceID = l.id
	switch {
	case !l.mem.reachable(), l.faults.LostWebhook > 0 && l.rng.Float64() < l.faults.LostWebhook:
		return
	}
	times := 1
	if l.faults.DuplicateWebhook > 0 && l.rng.Float64() < l.faults.DuplicateWebhook {
		times = 2
	}
	e.ID, e.Timestamp = uuid.NewString(), l.now().UTC()
	for range times {
		if late := time.Duration(l.faults.LateWebhookMS) * time.Millisecond; late > 0 {
			l.box.sched.at(time.Now().Add(late), func() { l.acct.push(e) })
		} else {
			l.acct.push(e)
		}
	}
}

// announceCode announces the outcome of a write to the code.
func (l *lock) announceCode(kind opKind, c stored, p *problem) {
	e := event{
		Type:         "access_code." + string(kind),
		AccessCodeID: c.ID,
		CustomID:     c.CustomID,
		Status:       "success",
	}
	if kind != opDelete {
		e.AccessCode = &eventCode{
			AccessCodeID: c.ID,
			LockID:       l.id,
			Name:         c.Name,
			window:       c.window,
			Status:       statusActive,
		}
	}
	if p != nil {
		e.Status, e.ErrorCode, e.Message = "failed", p.kind.code, p.message
		if e.AccessCode != nil && kind == opCreate {
			e.AccessCode.Status = statusFailed
		}
	}
	l.announce(e)
}

// push enqueues the event for all matching webhooks of the account.
func (a *account) push(e event) {
	if e.ID == "" {
		e.ID, e.Timestamp = uuid.NewString(), a.box.opts.Clock().UTC()
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic(err) // the type above always marshals
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.state.Webhooks {
		if len(w.Events) > 0 && !slices.Contains(w.Events, e.Type) || len(w.queue) >= queueLimit {
			continue
		}
		w.queue = append(w.queue, body)
		if !w.sending && a.box.ctx.Err() == nil {
			w.sending = true
			a.box.pushes.Go(func() { a.deliver(w) })
		}
	}
}

// deliver sends the events of the webhook's queue in order.
func (a *account) deliver(w *webhook) {
	for {
		a.mu.Lock()
		if len(w.queue) == 0 || w.deleted || a.box.ctx.Err() != nil {
			w.sending = false
			a.mu.Unlock()
			return
		}
		body := w.queue[0]
		w.queue = w.queue[1:]
		url := w.URL
		a.mu.Unlock()

		gap := a.box.scaled(retryGap)
		for range attempts {
			if a.box.post(url, body) {
				break
			}
			select {
			case <-a.box.ctx.Done():
			case <-time.After(gap):
			}
			gap *= 2
		}
	}
}

func (s *Sandbox) post(url string, body []byte) (accepted bool) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.sender.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096))
	return resp.StatusCode/100 == 2
}

// subscribe creates the webhook, or updates the events of the one with this URL.
func (a *account) subscribe(url string, events []string) (*webhook, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.state.Webhooks, func(w *webhook) bool { return w.URL == url })
	if i < 0 {
		i = len(a.state.Webhooks)
		a.state.Webhooks = append(a.state.Webhooks, &webhook{ID: "wh_" + a.box.idOf("webhook", a.id, url), URL: url})
	}
	a.state.Webhooks[i].Events = events
	return a.state.Webhooks[i], a.box.files().save(a.file(), a.state)
}

func (a *account) unsubscribe(id string) (found bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.state.Webhooks, func(w *webhook) bool { return w.ID == id })
	if i < 0 {
		return false, nil
	}
	a.state.Webhooks[i].deleted = true
	a.state.Webhooks = slices.Delete(a.state.Webhooks, i, i+1)
	return true, a.box.files().save(a.file(), a.state)
}
