package sandbox

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

// wireNoise is the state of a noise sensor in a response.
type wireNoise struct {
	Decibels   float64          `json:"decibels"`
	NRS        *float64         `json:"nrs,omitempty"` // only with noise risk scores
	Thresholds []noiseThreshold `json:"thresholds"`
	Triggering []string         `json:"triggering"`
}

// noiseLimits says which thresholds a noise sensor accepts.
type noiseLimits struct {
	NRS           bool `json:"nrs"`
	MaxThresholds int  `json:"max_thresholds"`
	Disjoint      bool `json:"disjoint"`
	Fixed         bool `json:"fixed"`
}

// wire returns the state as shown by the vendor.
func (p *noiseProfile) wire(s *noiseState, now time.Time) *wireNoise {
	w := &wireNoise{Decibels: s.level(now), Thresholds: s.Thresholds, Triggering: s.triggering(now)}
	if w.Thresholds == nil {
		w.Thresholds = []noiseThreshold{}
	}
	if p.NRS {
		w.NRS = new(score(w.Decibels))
	}
	return w
}

// noiseCapabilities returns the capabilities of a noise sensor, which has none of a lock.
func (l *lock) noiseCapabilities(p *noiseProfile) capabilities {
	c := capabilities{
		Provider:    l.prof.Provider,
		DeviceType:  l.prof.DeviceType,
		Convert:     "never",
		CodeLengths: []int{},
		Constraints: []constraint{},
		Confirm:     "read_back",
		DirectPower: !p.Battery,
		NoiseSensor: &noiseLimits{
			NRS:           p.NRS,
			MaxThresholds: p.Max,
			Disjoint:      p.Disjoint,
			Fixed:         p.Fixed,
		},
	}
	if p.Sync {
		c.Confirm = "sync"
	}
	return c
}

// noiseRoutes registers the routes of noise sensors.
func noiseRoutes(r chi.Router) {
	r.Post("/locks/{lock}/noise_thresholds", onNoiseSensor(opCreate))
	r.Put("/locks/{lock}/noise_thresholds/{threshold}", onNoiseSensor(opUpdate))
	r.Delete("/locks/{lock}/noise_thresholds/{threshold}", onNoiseSensor(opDelete))
}

// onNoiseSensor resolves the noise sensor in the path, applies its faults, and writes the threshold. Other devices are
// NOT_SUPPORTED.
func onNoiseSensor(kind opKind) http.HandlerFunc {
	return onDevice(true, func(w http.ResponseWriter, r *http.Request, l *lock, f fault) {
		if l.prof.Noise == nil {
			answerProblem(w, refuse(notSupported, "The device is not a noise sensor."))
			return
		}
		o := noiseOp{kind: kind}
		if kind != opDelete {
			if p := read(r, &o.threshold); p != nil {
				answerProblem(w, p)
				return
			}
			if len(o.threshold.CustomID) > customIDLimit {
				answerProblem(w, refuse(invalidRequest, "custom_id has at most %d characters.", customIDLimit))
				return
			}
		}
		o.threshold.ID = chi.URLParam(r, "threshold")
		id, st, p := l.writeThreshold(o, f)
		respond(w, map[string]any{"lock_id": l.id, "threshold_id": id, "status": st}, p)
	})
}

// noiseControls registers the controls of noise sensors.
func noiseControls(r chi.Router) {
	r.Post("/noise", noiseControl(func(r *http.Request, l *lock) *problem {
		var req struct {
			Decibels *float64 `json:"decibels"`
		}
		if p := read(r, &req); p != nil {
			return p
		}
		if req.Decibels != nil && (*req.Decibels < 0 || *req.Decibels > maxLevel) {
			return refuse(invalidRequest, "decibels must be 0 to %d.", maxLevel)
		}
		return l.makeNoise(req.Decibels)
	}))
	r.Post("/noise_thresholds", noiseControl(func(r *http.Request, l *lock) *problem {
		return l.byHand(r, opCreate, "app_"+uuid.NewString())
	}))
	r.Put("/noise_thresholds/{threshold}", noiseControl(func(r *http.Request, l *lock) *problem {
		return l.byHand(r, opUpdate, chi.URLParam(r, "threshold"))
	}))
	r.Delete("/noise_thresholds/{threshold}", noiseControl(func(r *http.Request, l *lock) *problem {
		return l.byHand(r, opDelete, chi.URLParam(r, "threshold"))
	}))
}

// noiseControl is control for noise sensors. Other devices are NOT_SUPPORTED.
func noiseControl(act func(*http.Request, *lock) *problem) http.HandlerFunc {
	return control(func(r *http.Request, l *lock) (any, *problem) {
		if l.prof.Noise == nil {
			return nil, refuse(notSupported, "The device is not a noise sensor.")
		}
		return done, act(r, l)
	})
}

// byHand changes a threshold as a person does in the vendor's app.
func (l *lock) byHand(r *http.Request, kind opKind, id string) *problem {
	o := noiseOp{kind: kind}
	if kind != opDelete {
		if p := read(r, &o.threshold); p != nil {
			return p
		}
	}
	o.threshold.ID, o.threshold.CustomID = id, ""
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changeThresholds(o)
}
