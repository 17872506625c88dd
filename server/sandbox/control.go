package sandbox

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// controls registers the paths below /sandbox, which the package comment lists.
func controls(r chi.Router) {
	r.Post("/account/revoke", revoke(true))
	r.Post("/account/restore", revoke(false))
	r.Route("/systems/{system}", accessControls)
	r.Route("/locks/{lock}", func(r chi.Router) {
		r.Get("/memory", control(readMemory))
		r.Post("/online", control(func(r *http.Request, l *lock) (any, *problem) { return done, l.setOnline(true) }))
		r.Post("/offline", control(func(r *http.Request, l *lock) (any, *problem) { return done, l.setOnline(false) }))
		r.Post("/remove", control(func(r *http.Request, l *lock) (any, *problem) { return done, l.remove() }))
		r.Post("/name", control(rename))
		r.Post("/battery", control(setBattery))
		r.Post("/jam", lockControl(setJammed))
		r.Post("/hub", control(setHub))
		r.Post("/subscription", control(setSubscription))
		r.Post("/keypad/codes", lockControl(keypadAdd))
		r.Patch("/keypad/codes/{code}", lockControl(keypadChange))
		r.Delete("/keypad/codes/{code}", lockControl(keypadDelete))
		r.Post("/keypad/enter", lockControl(keypadEnter))
		r.Post("/keypad/lock", lockControl(keypadLock))
		thermostatControls(r)
		noiseControls(r)
		r.Get("/faults", control(func(_ *http.Request, l *lock) (any, *problem) { return l.getFaults(), nil }))
		r.Put("/faults", control(putFaults))
	})
}

// done is the body of an empty response.
var done = map[string]any{}

func control(act func(*http.Request, *lock) (any, *problem)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l := accountOf(r).lock(chi.URLParam(r, "lock"))
		if l == nil {
			answerProblem(w, refuse(lockNotFound, "The account has no such lock."))
			return
		}
		v, p := act(r, l)
		respond(w, v, p)
	}
}

// lockControl is control for locks. Other devices are NOT_SUPPORTED.
func lockControl(act func(*http.Request, *lock) (any, *problem)) http.HandlerFunc {
	return control(func(r *http.Request, l *lock) (any, *problem) {
		if !l.prof.isLock() {
			return nil, refuse(notSupported, "The device is not a lock.")
		}
		return act(r, l)
	})
}

func revoke(revoked bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := accountOf(r).revoke(revoked); err != nil {
			answerProblem(w, refuse(unavailable, "The change could not be stored."))
			return
		}
		answer(w, http.StatusOK, done)
	}
}

func readMemory(_ *http.Request, l *lock) (any, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.mem.clone()
	if m.Codes == nil {
		m.Codes = []stored{}
	}
	return m, nil
}

func setBattery(r *http.Request, l *lock) (any, *problem) {
	var req struct {
		BatteryLevel *int `json:"battery_level"`
	}
	if p := read(r, &req); p != nil {
		return nil, p
	}
	if req.BatteryLevel == nil || *req.BatteryLevel < 0 || *req.BatteryLevel > 100 {
		return nil, refuse(invalidRequest, "battery_level must be 0 to 100.")
	}
	return done, l.setBattery(*req.BatteryLevel)
}

// rename is a new name that the owner sets in the vendor's app. The cloud sends no event.
func rename(r *http.Request, l *lock) (any, *problem) {
	var req struct {
		Name string `json:"name"`
	}
	if p := read(r, &req); p != nil {
		return nil, p
	}
	if req.Name == "" {
		return nil, refuse(invalidRequest, "name is required.")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return done, l.commit(func(m *memory) *problem { m.Name = req.Name; return nil })
}

func setJammed(r *http.Request, l *lock) (any, *problem) {
	var req struct {
		Jammed bool `json:"jammed"`
	}
	if p := read(r, &req); p != nil {
		return nil, p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return done, l.commit(func(m *memory) *problem { m.Jammed = req.Jammed; return nil })
}

func setHub(r *http.Request, l *lock) (any, *problem) {
	var req struct {
		Online bool `json:"online"`
	}
	if p := read(r, &req); p != nil {
		return nil, p
	}
	return done, l.setHub(req.Online)
}

func setSubscription(r *http.Request, l *lock) (any, *problem) {
	var req struct {
		Expired bool `json:"expired"`
	}
	if p := read(r, &req); p != nil {
		return nil, p
	}
	return done, l.setExpired(req.Expired)
}

type keypadRequest struct {
	Name *string `json:"name"`
	Code *string `json:"code"`

	Request string `json:"request"`
}

func keypadAdd(r *http.Request, l *lock) (any, *problem) {
	var req keypadRequest
	if p := read(r, &req); p != nil {
		return nil, p
	}
	if req.Name == nil || req.Code == nil {
		return nil, refuse(invalidRequest, "name and code are required.")
	}
	return l.addByHand(*req.Name, *req.Code, req.Request)
}

func keypadChange(r *http.Request, l *lock) (any, *problem) {
	var req keypadRequest
	if p := read(r, &req); p != nil {
		return nil, p
	}
	return l.changeByHand(chi.URLParam(r, "code"), req.Name, req.Code)
}

func keypadLock(_ *http.Request, l *lock) (any, *problem) { return done, l.lockByHand() }

func keypadDelete(r *http.Request, l *lock) (any, *problem) {
	return done, l.deleteByHand(chi.URLParam(r, "code"))
}

func keypadEnter(r *http.Request, l *lock) (any, *problem) {
	var req keypadRequest
	if p := read(r, &req); p != nil {
		return nil, p
	}
	if req.Code == nil {
		return nil, refuse(invalidRequest, "code is required.")
	}
	c, p := l.enterPIN(*req.Code)
	if c == nil {
		return map[string]any{"unlocked": false}, p
	}
	return map[string]any{"unlocked": true, "access_code_id": c.ID, "name": c.Name}, p
}

func (l *lock) getFaults() Faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faults
}

func putFaults(r *http.Request, l *lock) (any, *problem) {
	var f Faults
	if p := read(r, &f); p != nil {
		return nil, p
	}
	if p := f.check(); p != nil {
		return nil, p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = f
	return f, nil
}
