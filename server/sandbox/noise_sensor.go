package sandbox

import (
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
)

// noiseState is the state of a noise sensor.
type noiseState struct {
	Thresholds []noiseThreshold `json:"thresholds"`
	// Loud is a level of noise in decibels until LoudUntil.
	Loud      float64   `json:"loud,omitempty"`
	LoudUntil time.Time `json:"loud_until"`
}

// noiseThreshold is a threshold on the device.
type noiseThreshold struct {
	ID       string `json:"threshold_id"`
	CustomID string `json:"custom_id,omitempty"`
	Name     string `json:"name"`
	// Starts and Ends are HH:MM:SS in Zone, which is UTC if empty.
	Starts   string   `json:"starts_daily_at"`
	Ends     string   `json:"ends_daily_at"`
	Zone     string   `json:"time_zone,omitempty"`
	Decibels float64  `json:"decibels"`
	NRS      *float64 `json:"nrs,omitempty"`
}

// noiseOp is a change of one threshold.
type noiseOp struct {
	kind      opKind
	threshold noiseThreshold
}

const (
	// quiet is the usual level of noise in decibels.
	quiet = 35.0
	// loudFor is how long the noise of a control lasts.
	loudFor = time.Minute
	// loudBy is by how much it exceeds the thresholds, in decibels.
	loudBy = 6
	// maxLevel bounds levels.
	maxLevel = 200
)

func (s *noiseState) clone() *noiseState {
	c := *s
	c.Thresholds = slices.Clone(s.Thresholds)
	return &c
}

// level returns the level of noise in decibels.
func (s *noiseState) level(now time.Time) float64 {
	if now.Before(s.LoudUntil) {
		return s.Loud
	}
	return quiet
}

// score returns the noise risk score of a level in decibels, and decibels the level of a score; both are assumed.
func score(decibels float64) float64 { return math.Round(max(0, decibels-45)/2.5*10) / 10 }

func decibels(nrs float64) float64 { return math.Round(45 + 2.5*nrs) }

// holds reports whether the threshold applies at a time.
func (t noiseThreshold) holds(now time.Time) bool {
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		zone = time.UTC
	}
	clock := now.In(zone).Format(time.TimeOnly)
	if t.Starts <= t.Ends {
		return t.Starts <= clock && (clock < t.Ends || t.Ends == "23:59:59")
	}
	return clock >= t.Starts || clock < t.Ends
}

// triggering returns the thresholds that the noise exceeds.
func (s *noiseState) triggering(now time.Time) []string {
	out := []string{}
	for _, t := range s.Thresholds {
		if t.holds(now) && s.level(now) > t.Decibels {
			out = append(out, t.ID)
		}
	}
	return out
}

// apply changes the state: NOISE_THRESHOLD_NOT_FOUND, NOT_SUPPORTED, DEVICE_FULL, INVALID_SETTING.
func (p *noiseProfile) apply(s *noiseState, o noiseOp) *problem {
	at := slices.IndexFunc(s.Thresholds, func(t noiseThreshold) bool { return t.ID == o.threshold.ID })
	switch {
	case p.Fixed && o.kind != opUpdate:
		return refuse(notSupported, "The thresholds of this sensor can only be changed.")
	case o.kind != opCreate && at < 0:
		return refuse(thresholdNotFound, "The sensor has no such threshold.")
	case o.kind == opDelete:
		s.Thresholds = slices.Delete(s.Thresholds, at, at+1)
		return nil
	case o.kind == opCreate && len(s.Thresholds) >= p.Max:
		return refuse(deviceFull, "The sensor has no room for another threshold.")
	}
	if problem := p.check(s, o.threshold); problem != nil {
		return problem
	}
	if o.threshold.NRS != nil {
		o.threshold.Decibels = decibels(*o.threshold.NRS)
	}
	if o.kind == opCreate {
		s.Thresholds = append(s.Thresholds, o.threshold)
		return nil
	}
	o.threshold.CustomID = s.Thresholds[at].CustomID
	s.Thresholds[at] = o.threshold
	return nil
}

// check returns why the sensor rejects a threshold.
func (p *noiseProfile) check(s *noiseState, t noiseThreshold) *problem {
	zone, err := time.LoadLocation(t.Zone)
	_, startErr := time.Parse(time.TimeOnly, t.Starts)
	_, endErr := time.Parse(time.TimeOnly, t.Ends)
	level := t.Decibels
	if t.NRS != nil {
		level = *t.NRS
	}
	switch {
	case err != nil || startErr != nil || endErr != nil || t.Starts == t.Ends:
		return refuse(invalidSetting, "The times must be HH:MM:SS, different, and in a known time zone.")
	case t.NRS != nil && !p.NRS:
		return refuse(invalidSetting, "The sensor has no noise risk scores.")
	case t.Name == "" || level < 0 || level > maxLevel:
		return refuse(invalidSetting, "A threshold needs a name, and a level of 0 to %d.", maxLevel)
	case !p.Disjoint:
		return nil
	}
	// Windows of one zone overlap if one contains the start of the other one.
	day := func(clock string) time.Time {
		at, _ := time.ParseInLocation(time.DateTime, "2026-01-15 "+clock, zone)
		return at
	}
	for _, other := range s.Thresholds {
		if other.ID != t.ID && (other.holds(day(t.Starts)) || t.Zone == other.Zone && t.holds(day(other.Starts))) {
			return refuse(invalidSetting, "The times overlap those of another threshold.")
		}
	}
	return nil
}

// writeThreshold accepts a change, or executes it where the vendor does so. It returns the identifier of the threshold.
func (l *lock) writeThreshold(o noiseOp, f fault) (string, status, *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.prof.Noise
	intended := l.mem.Noise.clone()
	for _, pending := range l.noiseOps {
		_ = p.apply(intended, *pending) // it fails on the device
	}
	if o.kind == opCreate {
		repeated := func(t noiseThreshold) bool { return o.threshold.CustomID != "" && t.CustomID == o.threshold.CustomID }
		if i := slices.IndexFunc(intended.Thresholds, repeated); i >= 0 {
			return intended.Thresholds[i].ID, statusActive, nil
		}
		o.threshold.ID = "nt_" + uuid.NewString()
	}
	if problem := p.apply(intended, o); problem != nil {
		return "", "", problem
	}
	if !l.mem.reachable() {
		return "", "", refuse(deviceOffline, "The device is offline and cannot accept the change.")
	}
	dropped := l.faults.DropNext > 0
	if dropped {
		l.faults.DropNext--
	}
	id := o.threshold.ID
	if p.Sync && !dropped && !f.broken && l.faults.LatencyMS == nil {
		return id, statusActive, l.changeThresholds(o)
	}
	pending := &o
	if !dropped && !f.broken {
		l.noiseOps = append(l.noiseOps, pending)
	}
	at := time.Now().Add(l.drawLatency())
	if at.Before(l.lastAt) {
		at = l.lastAt
	}
	l.lastAt = at
	l.box.sched.at(at, func() { l.arriveThreshold(pending, dropped || f.broken) })
	return id, statusPending, nil
}

// arriveThreshold applies a change that reaches the device. One that is pending while the device goes offline is lost.
func (l *lock) arriveThreshold(o *noiseOp, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noiseOps = slices.DeleteFunc(l.noiseOps, func(other *noiseOp) bool { return other == o })
	if lost || !l.mem.reachable() || l.mem.Removed {
		return
	}
	_ = l.changeThresholds(*o) // a read shows that it failed
}

// changeThresholds applies a change and announces it; l.mu is held.
func (l *lock) changeThresholds(o noiseOp) *problem {
	return l.changeNoise(func(s *noiseState) *problem { return l.prof.Noise.apply(s, o) })
}

// changeNoise changes the state of the sensor, and announces it; l.mu is held.
func (l *lock) changeNoise(change func(*noiseState) *problem) *problem {
	p := l.commit(func(m *memory) *problem { return change(m.Noise) })
	if p == nil {
		l.announce(event{Type: "noise_sensor.changed", Status: "success"})
	}
	return p
}

// makeNoise makes noise of a level in decibels; nil exceeds all thresholds that apply now.
func (l *lock) makeNoise(level *float64) *problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if level == nil {
		level = new(0.0)
		for _, t := range l.mem.Noise.Thresholds {
			if t.holds(now) {
				*level = max(*level, t.Decibels+loudBy)
			}
		}
		if *level == 0 {
			return refuse(invalidRequest, "No threshold applies at this time of day.")
		}
	}
	p := l.changeNoise(func(s *noiseState) *problem {
		s.Loud, s.LoudUntil = *level, now.Add(loudFor)
		return nil
	})
	if p == nil {
		l.box.sched.at(time.Now().Add(loudFor), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.announce(event{Type: "noise_sensor.changed", Status: "success"})
		})
	}
	return p
}
