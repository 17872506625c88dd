package sandbox

import (
	"math"
	"slices"
	"time"
)

// thermostatState is the state of a thermostat and its room. Temperatures are in °C.
type thermostatState struct {
	Mode hvacMode `json:"mode"`
	Fan  fanMode  `json:"fan,omitempty"`
	// Heat and Cool are kept while the mode does not use them.
	Heat        float64 `json:"heat_set_point"`
	Cool        float64 `json:"cool_set_point"`
	Temperature float64 `json:"temperature"`
	Humidity    float64 `json:"humidity"` // percent
	// Preset is the key of the vendor's preset in effect; empty if none.
	Preset string `json:"active_preset,omitempty"`
}

// thermostatSetting is the body of a write. An absent field keeps its value.
type thermostatSetting struct {
	Mode hvacMode `json:"mode"`
	Fan  fanMode  `json:"fan"`
	Heat *float64 `json:"heat_set_point"`
	Cool *float64 `json:"cool_set_point"`
}

// epsilon is the tolerance of comparisons between temperatures in °C.
const epsilon = 1e-3

// round returns the temperature that the device stores, shown with four decimal places.
func (t *thermostatProfile) round(celsius float64) float64 {
	v := math.Round(celsius/t.Step) * t.Step
	if t.Fahrenheit {
		v = fahrenheit(math.Round((celsius*1.8+32)/t.Step) * t.Step)
	}
	return math.Round(v*1e4) / 1e4
}

// apply returns the state after a write: NOT_SUPPORTED, INVALID_SETTING.
func (t *thermostatProfile) apply(s thermostatState, w thermostatSetting) (thermostatState, *problem) {
	if w.Mode != "" {
		if !slices.Contains(t.Modes, w.Mode) {
			return s, refuse(notSupported, "The thermostat has no such mode. Its modes are %v.", t.Modes)
		}
		s.Mode = w.Mode
	}
	if w.Fan != "" {
		if !slices.Contains(t.FanModes, w.Fan) {
			return s, refuse(notSupported, "The thermostat has no such fan mode. Its fan modes are %v.", t.FanModes)
		}
		s.Fan = w.Fan
	}
	if s.Mode == modeEco && (w.Heat != nil || w.Cool != nil) {
		return s, refuse(invalidSetting, "The set points of eco are those of the vendor.")
	}
	if p := t.setPoint(&s.Heat, w.Heat, t.Heat, "heating"); p != nil {
		return s, p
	}
	if p := t.setPoint(&s.Cool, w.Cool, t.Cool, "cooling"); p != nil {
		return s, p
	}
	if s.Mode == modeHeatCool && s.Cool-s.Heat < t.MinDelta-epsilon {
		return s, refuse(invalidSetting,
			"The cooling set point must be at least %.2f °C above the heating set point.", t.MinDelta)
	}
	if w.Mode != "" || w.Heat != nil || w.Cool != nil {
		s.Preset = ""
	}
	return s, nil
}

// setPoint changes a set point, unless asked is nil.
func (t *thermostatProfile) setPoint(to, asked *float64, in *setPointRange, what string) *problem {
	if asked == nil {
		return nil
	}
	if in == nil {
		return refuse(notSupported, "The thermostat has no %s set point.", what)
	}
	v := t.round(*asked)
	if v < in.Min-epsilon || v > in.Max+epsilon {
		return refuse(invalidSetting, "The %s set point must be %.2f to %.2f °C.", what, in.Min, in.Max)
	}
	*to = v
	return nil
}

// setPoints returns the set points that the device follows; nil where it does not heat or cool.
func (t *thermostatProfile) setPoints(s thermostatState) (heat, cool *float64) {
	if s.Mode == modeEco {
		return &t.Eco.Min, &t.Eco.Max
	}
	if s.Mode.heats() {
		heat = &s.Heat
	}
	if s.Mode.cools() {
		cool = &s.Cool
	}
	return heat, cool
}

// running says what runs at the temperature of the room.
func (t *thermostatProfile) running(s thermostatState) (heating, cooling, auxiliary bool) {
	heat, cool := t.setPoints(s)
	heating = heat != nil && s.Temperature < *heat-epsilon
	cooling = cool != nil && s.Temperature > *cool+epsilon
	auxiliary = heating && t.AuxiliaryBelow > 0 && *heat-s.Temperature >= t.AuxiliaryBelow
	return heating, cooling, auxiliary
}

// setThermostat accepts a write, or executes it where the vendor does so. A write that is pending while the device goes
// offline is lost.
func (l *lock) setThermostat(w thermostatSetting, f fault) (status, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.prof.Thermostat
	if _, p := t.apply(*l.mem.Thermostat, w); p != nil {
		return "", p
	}
	if !l.mem.reachable() {
		return "", refuse(deviceOffline, "The device is offline and cannot accept the change.")
	}
	dropped := l.faults.DropNext > 0
	if dropped {
		l.faults.DropNext--
	}
	if t.Sync && !dropped && !f.broken && l.faults.LatencyMS == nil {
		return statusActive, l.changeThermostat(w)
	}
	at := time.Now().Add(l.drawLatency())
	if at.Before(l.lastAt) {
		at = l.lastAt
	}
	l.lastAt = at
	l.box.sched.at(at, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case dropped || !l.mem.reachable() || l.mem.Removed:
		case f.broken:
			l.announceClimate(refuse(deviceError, "The thermostat did not execute the change."))
		default:
			if p := l.changeThermostat(w); p != nil {
				l.announceClimate(p)
			}
		}
	})
	return statusPending, nil
}

// changeThermostat applies a setting and announces it; l.mu is held.
func (l *lock) changeThermostat(w thermostatSetting) *problem {
	return l.changeClimate(func(s *thermostatState) (p *problem) {
		*s, p = l.prof.Thermostat.apply(*s, w)
		return p
	})
}

// changeClimate changes the state of the thermostat or its room, and announces it; l.mu is held.
func (l *lock) changeClimate(change func(*thermostatState) *problem) *problem {
	if p := l.commit(func(m *memory) *problem { return change(m.Thermostat) }); p != nil {
		return p
	}
	l.announceClimate(nil)
	return nil
}

// announceClimate announces a change, or a write that failed; l.mu is held.
func (l *lock) announceClimate(p *problem) {
	e := event{Type: "thermostat.changed", Status: "success"}
	if p != nil {
		e.Status, e.ErrorCode, e.Message = "failed", p.kind.code, p.message
	}
	l.announce(e)
}

// activatePreset applies a preset of the vendor.
func (t *thermostatProfile) activatePreset(s *thermostatState, key string) *problem {
	i := slices.IndexFunc(t.Presets, func(p thermostatPreset) bool { return p.Key == key })
	if i < 0 {
		return refuse(invalidRequest, "The thermostat has no such preset.")
	}
	p := t.Presets[i]
	s.Mode, s.Preset = p.Mode, p.Key
	if p.Mode.heats() {
		s.Heat = p.Heat
	}
	if p.Mode.cools() {
		s.Cool = p.Cool
	}
	return nil
}
