package sandbox

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

func listLocks(w http.ResponseWriter, r *http.Request) {
	locks := []wireLock{}
	for _, l := range accountOf(r).all() {
		if shown, ok := l.wire(); ok {
			locks = append(locks, shown)
		}
	}
	answer(w, http.StatusOK, map[string]any{"locks": locks})
}

func getLock(w http.ResponseWriter, _ *http.Request, l *lock, _ fault) {
	shown, ok := l.wire()
	if !ok {
		answerProblem(w, refuse(lockNotFound, "The account has no such lock."))
		return
	}
	answer(w, http.StatusOK, shown)
}

func postAction(w http.ResponseWriter, r *http.Request, l *lock, _ fault) {
	var req struct {
		Action   string `json:"action"`
		CustomID string `json:"custom_id"`
	}
	if p := read(r, &req); p != nil {
		answerProblem(w, p)
		return
	}
	if req.Action != "lock" && req.Action != "unlock" {
		answerProblem(w, refuse(invalidRequest, `action must be "lock" or "unlock".`))
		return
	}
	a, p := l.runCommand(req.Action, req.CustomID)
	respond(w, map[string]any{
		"action_id": a.id, "custom_id": a.customID, "status": statusPending, "lock_id": l.id, "action": a.name,
	}, p)
}

func putAutoLock(w http.ResponseWriter, r *http.Request, l *lock, _ fault) {
	var req autoLock
	if p := read(r, &req); p != nil {
		answerProblem(w, p)
		return
	}
	respond(w, map[string]any{"lock_id": l.id, "status": statusPending}, l.setAutoLock(req.Enabled, req.Delay))
}

func listCodes(w http.ResponseWriter, r *http.Request, l *lock, _ fault) {
	codes, stale, p := l.list(r.URL.Query().Get("refresh") == "true")
	shown := make([]wireCode, 0, len(codes))
	for _, c := range codes {
		shown = append(shown, l.wireCode(c))
	}
	body := map[string]any{"access_codes": shown}
	if stale {
		body["stale"] = true
	}
	respond(w, body, p)
}

// codeRequest is the body of POST and PATCH.
type codeRequest struct {
	Name     *string  `json:"name"`
	Code     *string  `json:"code"`
	StartsAt timeSent `json:"starts_at"`
	EndsAt   timeSent `json:"ends_at"`
	CustomID string   `json:"custom_id"`
}

// timeSent distinguishes an absent time (nil) from null (pointing to nil).
type timeSent struct{ to **time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (t *timeSent) UnmarshalJSON(data []byte) error {
	t.to = new(*time.Time)
	return json.Unmarshal(data, t.to)
}

// customIDLimit is the maximum size of a custom_id in bytes.
const customIDLimit = 64

func postCode(w http.ResponseWriter, r *http.Request, l *lock, f fault) {
	var q codeRequest
	if p := read(r, &q); p != nil {
		answerProblem(w, p)
		return
	}
	if len(q.CustomID) > customIDLimit {
		answerProblem(w, refuse(invalidRequest, "custom_id has at most %d characters.", customIDLimit))
		return
	}
	c := stored{CustomID: q.CustomID}
	change{q.Name, q.Code, q.StartsAt.to, q.EndsAt.to}.apply(&c)
	code, created, p := l.create(c, f)
	switch {
	case p != nil:
		answerProblem(w, p)
	case created:
		answer(w, http.StatusCreated, l.wireCode(*code))
	default:
		answer(w, http.StatusOK, l.wireCode(*code))
	}
}

func patchCode(w http.ResponseWriter, r *http.Request, l *lock, f fault) {
	var q codeRequest
	if p := read(r, &q); p != nil {
		answerProblem(w, p)
		return
	}
	code, p := l.update(chi.URLParam(r, "code"), change{q.Name, q.Code, q.StartsAt.to, q.EndsAt.to}, f)
	if p != nil {
		answerProblem(w, p)
		return
	}
	answer(w, http.StatusOK, l.wireCode(*code))
}

func deleteCode(w http.ResponseWriter, r *http.Request, l *lock, f fault) {
	id := chi.URLParam(r, "code")
	st, p := l.removeCode(id, f)
	if st == statusDeleting {
		st = statusPending // as in the guide
	}
	respond(w, map[string]any{"access_code_id": id, "status": st}, p)
}

func listWebhooks(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, map[string]any{"webhooks": accountOf(r).webhooks()})
}

func postWebhook(w http.ResponseWriter, r *http.Request) {
	var req struct {
		URL    string   `json:"url"`
		Events []string `json:"events"`
	}
	if p := read(r, &req); p != nil {
		answerProblem(w, p)
		return
	}
	u, err := url.Parse(req.URL)
	if err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		answerProblem(w, refuse(invalidRequest, "url must be an http or https address."))
		return
	}
	hook, err := accountOf(r).subscribe(req.URL, req.Events)
	if err != nil {
		answerProblem(w, refuse(unavailable, "The webhook could not be stored."))
		return
	}
	answer(w, http.StatusOK, map[string]any{"webhook_id": hook.ID, "status": "active"})
}

func deleteWebhook(w http.ResponseWriter, r *http.Request) {
	found, err := accountOf(r).unsubscribe(chi.URLParam(r, "webhook"))
	switch {
	case err != nil:
		answerProblem(w, refuse(unavailable, "The change could not be stored."))
	case !found:
		answerProblem(w, refuse(webhookNotFound, "There is no such webhook."))
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (a *account) webhooks() []wireWebhook {
	a.mu.Lock()
	defer a.mu.Unlock()
	hooks := []wireWebhook{}
	for _, h := range a.state.Webhooks {
		hooks = append(hooks, wireWebhook{
			ID:     h.ID,
			URL:    h.URL,
			Events: h.Events,
			Status: "active",
		})
	}
	return hooks
}

// lockState returns the guide's lock_state.
func lockState(m memory) string {
	switch {
	case m.Jammed:
		return "unknown"
	case m.Locked:
		return "locked"
	default:
		return "unlocked"
	}
}

// wire returns the device as shown by the cloud, and false if it was removed.
func (l *lock) wire() (wireLock, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := wireLock{
		LockID:       l.id,
		DeviceID:     l.id,
		DeviceType:   "smart_lock",
		Name:         cmp.Or(l.mem.Name, l.name),
		Model:        l.prof.Model,
		DeviceModel:  l.prof.Model,
		Manufacturer: l.prof.Manufacturer,
		SerialNumber: "SBX-" + strings.ToUpper(l.id[:8]),
		Address:      "1 Sandbox Street",
		Online:       l.mem.reachable(),
		BatteryLevel: new(l.mem.BatteryLevel),
		LockState:    lockState(l.mem),
		Timezone:     "UTC",
		DeviceTime:   l.now().UTC(),
		Capabilities: l.capabilities(),
	}
	if t := l.prof.Thermostat; t != nil {
		shown.DeviceType, shown.LockState = "thermostat", ""
		shown.Thermostat = t.wire(*l.viewedClimate)
		if !t.Battery {
			shown.BatteryLevel = nil
		}
	}
	if p := l.prof.Noise; p != nil {
		shown.DeviceType, shown.LockState = "noise_sensor", ""
		shown.NoiseSensor = p.wire(l.viewedNoise, l.now())
		if !p.Battery {
			shown.BatteryLevel = nil
		}
	}
	if l.prof.AccessoryKeypad {
		shown.KeypadLevel = new(keypadLevel)
	}
	if l.prof.AutoLock {
		shown.AutoLock = &autoLock{l.mem.AutoLock, l.mem.AutoLockSecs}
	}
	if l.prof.Hub {
		shown.HubOnline = new(!l.mem.HubOffline)
	}
	if l.prof.Subscription {
		shown.Subscription = new(!l.mem.Expired)
	}
	return shown, !l.mem.Removed
}
