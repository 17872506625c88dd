package sandbox

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// wireThermostat is the state of a thermostat in a response. Temperatures are in °C.
type wireThermostat struct {
	Mode          hvacMode     `json:"mode"`
	Fan           fanMode      `json:"fan,omitempty"`
	Heat          *float64     `json:"heat_set_point,omitempty"`
	Cool          *float64     `json:"cool_set_point,omitempty"`
	Temperature   float64      `json:"temperature"`
	Humidity      float64      `json:"humidity"` // percent
	Heating       bool         `json:"heating"`
	Cooling       bool         `json:"cooling"`
	FanRunning    *bool        `json:"fan_running,omitempty"` // only with a fan
	AuxiliaryHeat bool         `json:"auxiliary_heat"`
	Presets       []wirePreset `json:"presets"`
	ActivePreset  string       `json:"active_preset,omitempty"`
}

type wirePreset struct {
	Key  string   `json:"key"`
	Name string   `json:"name"`
	Mode hvacMode `json:"mode"`
	Heat *float64 `json:"heat_set_point,omitempty"`
	Cool *float64 `json:"cool_set_point,omitempty"`
}

// thermostatLimits says what a thermostat accepts. Temperatures are in °C.
type thermostatLimits struct {
	Modes    []hvacMode `json:"modes"`
	FanModes []fanMode  `json:"fan_modes,omitempty"`
	MinHeat  *float64   `json:"min_heat_set_point,omitempty"`
	MaxHeat  *float64   `json:"max_heat_set_point,omitempty"`
	MinCool  *float64   `json:"min_cool_set_point,omitempty"`
	MaxCool  *float64   `json:"max_cool_set_point,omitempty"`
	MinDelta float64    `json:"min_delta"` // minimum difference of the set points in heat_cool
	Step     float64    `json:"step"`      // resolution of the set points
}

// wire returns the state as shown by the vendor.
func (t *thermostatProfile) wire(s thermostatState) *wireThermostat {
	w := &wireThermostat{
		Mode:         s.Mode,
		Fan:          s.Fan,
		Temperature:  s.Temperature,
		Humidity:     s.Humidity,
		Presets:      []wirePreset{},
		ActivePreset: s.Preset,
	}
	w.Heating, w.Cooling, w.AuxiliaryHeat = t.running(s)
	if len(t.FanModes) > 0 {
		w.FanRunning = new(s.Fan == fanOn || w.Heating || w.Cooling)
	}
	if t.Heat != nil && s.Mode != modeEco && (s.Mode.heats() || !t.ModeSetPoints) {
		w.Heat = &s.Heat
	}
	if t.Cool != nil && s.Mode != modeEco && (s.Mode.cools() || !t.ModeSetPoints) {
		w.Cool = &s.Cool
	}
	for _, p := range t.Presets {
		shown := wirePreset{Key: p.Key, Name: p.Name, Mode: p.Mode}
		if p.Mode.heats() {
			shown.Heat = &p.Heat
		}
		if p.Mode.cools() {
			shown.Cool = &p.Cool
		}
		w.Presets = append(w.Presets, shown)
	}
	return w
}

// thermostatCapabilities returns the capabilities of a thermostat, which has none of a lock.
func (l *lock) thermostatCapabilities(t *thermostatProfile) capabilities {
	limits := &thermostatLimits{
		Modes:    t.Modes,
		FanModes: t.FanModes,
		MinDelta: t.MinDelta,
		Step:     t.Step,
	}
	if t.Fahrenheit {
		limits.Step /= 1.8
	}
	if t.Heat != nil {
		limits.MinHeat, limits.MaxHeat = &t.Heat.Min, &t.Heat.Max
	}
	if t.Cool != nil {
		limits.MinCool, limits.MaxCool = &t.Cool.Min, &t.Cool.Max
	}
	c := capabilities{
		Provider:    l.prof.Provider,
		DeviceType:  l.prof.DeviceType,
		Convert:     "never",
		CodeLengths: []int{},
		Constraints: []constraint{},
		Confirm:     "read_back",
		DirectPower: !t.Battery,
		Thermostat:  limits,
	}
	if t.Sync {
		c.Confirm = "sync"
	}
	return c
}

// onThermostat resolves the thermostat in the path of a write, and applies its faults. Other devices are NOT_SUPPORTED.
func onThermostat(handle lockHandler) http.HandlerFunc {
	return onDevice(true, func(w http.ResponseWriter, r *http.Request, l *lock, f fault) {
		if l.prof.Thermostat == nil {
			answerProblem(w, refuse(notSupported, "The device is not a thermostat."))
			return
		}
		handle(w, r, l, f)
	})
}

func putThermostat(w http.ResponseWriter, r *http.Request, l *lock, f fault) {
	s, p := readSetting(r)
	if p != nil {
		answerProblem(w, p)
		return
	}
	st, p := l.setThermostat(s, f)
	respond(w, map[string]any{"lock_id": l.id, "status": st}, p)
}

func readSetting(r *http.Request) (s thermostatSetting, p *problem) {
	if p := read(r, &s); p != nil {
		return s, p
	}
	if s == (thermostatSetting{}) {
		return s, refuse(invalidRequest, "mode, fan, heat_set_point, or cool_set_point is required.")
	}
	return s, nil
}

// thermostatControls registers the controls of thermostats.
func thermostatControls(r chi.Router) {
	r.Post("/thermostat/adjust", thermostatControl(adjustByHand))
	r.Post("/thermostat/preset", thermostatControl(choosePreset))
	r.Post("/thermostat/room", thermostatControl(setRoom))
}

// thermostatControl is control for thermostats, with l.mu held. Other devices are NOT_SUPPORTED.
func thermostatControl(act func(*http.Request, *lock) *problem) http.HandlerFunc {
	return control(func(r *http.Request, l *lock) (any, *problem) {
		if l.prof.Thermostat == nil {
			return nil, refuse(notSupported, "The device is not a thermostat.")
		}
		return done, act(r, l)
	})
}

// adjustByHand changes the setting as a person at the device, which may be offline.
func adjustByHand(r *http.Request, l *lock) *problem {
	s, p := readSetting(r)
	if p != nil {
		return p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changeThermostat(s)
}

func choosePreset(r *http.Request, l *lock) *problem {
	var req struct {
		Key string `json:"key"`
	}
	if p := read(r, &req); p != nil {
		return p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changeClimate(func(s *thermostatState) *problem { return l.prof.Thermostat.activatePreset(s, req.Key) })
}

// Limits of the room of a thermostat in °C.
const (
	coldest = -60
	hottest = 100
)

// setRoom changes the temperature in °C, or the humidity in percent.
func setRoom(r *http.Request, l *lock) *problem {
	var req struct {
		Temperature *float64 `json:"temperature"`
		Humidity    *float64 `json:"humidity"`
	}
	if p := read(r, &req); p != nil {
		return p
	}
	within := func(v *float64, from, to float64) bool { return v == nil || *v >= from && *v <= to }
	if !within(req.Temperature, coldest, hottest) || !within(req.Humidity, 0, 100) {
		return refuse(invalidRequest, "temperature must be %d to %d °C, and humidity 0 to 100.", coldest, hottest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changeClimate(func(s *thermostatState) *problem {
		if req.Temperature != nil {
			s.Temperature = *req.Temperature
		}
		if req.Humidity != nil {
			s.Humidity = *req.Humidity
		}
		return nil
	})
}
