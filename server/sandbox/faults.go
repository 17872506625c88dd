package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Faults are the knobs of one lock. They are not kept across a restart. Rates are probabilities, 0 to 1.
type Faults struct {
	// LatencyMS replaces the profile's latency, whatever the sandbox's speed.
	LatencyMS *Range `json:"latency_ms,omitempty"`
	// FailureRate makes requests about the lock fail, by class: transient, rate_limited and auth_revoked any
	// request; offline, busy, duplicate, full and invalid writes; unconfirmed lets a write through and cuts
	// the connection in place of an answer; failed accepts a write that then fails on the lock.
	FailureRate map[string]float64 `json:"failure_rate,omitempty"`
	// DropNext is the number of writes to accept without effect.
	DropNext int `json:"drop_next,omitempty"`

	LateWebhookMS    int     `json:"late_webhook_ms,omitempty"` // added to each
	DuplicateWebhook float64 `json:"duplicate_webhook,omitempty"`
	LostWebhook      float64 `json:"lost_webhook,omitempty"`

	// ListLagMS replaces the profile's time by which the list stays behind the lock.
	ListLagMS *int `json:"eventual_consistency_window_ms,omitempty"`
	// SlotsTaken is the number of slots in use by what the cloud does not list.
	SlotsTaken int `json:"slots_taken,omitempty"`
	// ClockSkewMS is how far the lock's clock is ahead.
	ClockSkewMS int `json:"clock_skew_ms,omitempty"`
	// Masked hides PINs, as many a gateway does; the lock's capabilities say so.
	Masked bool `json:"masked,omitempty"`
}

// Range is from Min to Max.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

func (f Faults) skew() time.Duration { return time.Duration(f.ClockSkewMS) * time.Millisecond }

func (f Faults) listLag(profile time.Duration) time.Duration {
	if f.ListLagMS != nil {
		return time.Duration(*f.ListLagMS) * time.Millisecond
	}
	return profile
}

// check says which knob is out of its range.
func (f Faults) check() *problem {
	rates := maps.Clone(f.FailureRate)
	if rates == nil {
		rates = map[string]float64{}
	}
	for class := range rates {
		if _, ok := faults[class]; !ok {
			return refuse(invalidRequest, "failure_rate: there is no class %q; classes are %v.", class, slices.Sorted(maps.Keys(faults)))
		}
	}
	rates["duplicate_webhook"], rates["lost_webhook"] = f.DuplicateWebhook, f.LostWebhook
	for name, rate := range rates {
		if rate < 0 || rate > 1 {
			return refuse(invalidRequest, "%s must be between 0 and 1.", name)
		}
	}
	lag := 0
	if f.ListLagMS != nil {
		lag = *f.ListLagMS
	}
	if min(f.DropNext, f.LateWebhookMS, f.SlotsTaken, lag) < 0 ||
		f.LatencyMS != nil && (f.LatencyMS.Min < 0 || f.LatencyMS.Max < f.LatencyMS.Min) {
		return refuse(invalidRequest, "Counts and times must not be negative, and min not above max.")
	}
	return nil
}

// fault is what goes wrong with one request.
type fault struct {
	problem *problem // the answer
	abort   bool     // do it, then cut the connection
	broken  bool     // accept it, and let it fail on the lock
}

// faults are the classes of Faults.FailureRate. The kind is empty where the request is let through.
var faults = map[string]struct {
	kind  kind
	reads bool // also reads fail with it
}{
	"transient":    {unavailable, true},
	"rate_limited": {rateLimited, true},
	"auth_revoked": {unauthorized, true},
	"offline":      {deviceOffline, false},
	"busy":         {deviceBusy, false},
	"duplicate":    {pinConflict, false},
	"full":         {deviceFull, false},
	"invalid":      {invalidPIN, false},
	"unconfirmed":  {},
	"failed":       {},
}

// draw decides what goes wrong with the next request about the lock.
func (l *lock) draw(write bool) fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults.FailureRate) == 0 {
		return fault{}
	}
	left := l.rng.Float64()
	for _, class := range slices.Sorted(maps.Keys(l.faults.FailureRate)) {
		if left -= l.faults.FailureRate[class]; left >= 0 {
			continue
		}
		f := faults[class]
		switch {
		case !write && !f.reads:
			return fault{}
		case class == "unconfirmed":
			return fault{abort: true}
		case class == "failed":
			return fault{broken: true}
		}
		p := &problem{kind: f.kind, message: fmt.Sprintf("The sandbox was told to fail as %s.", class)}
		if p.kind == unavailable || p.kind == rateLimited || p.kind == deviceBusy {
			p.retryAfter = l.box.scaled(time.Second)
		}
		return fault{problem: p}
	}
	return fault{}
}

func (l *lock) drawLatency() time.Duration {
	if r := l.faults.LatencyMS; r != nil {
		return time.Duration(r.Min+l.rng.IntN(r.Max-r.Min+1)) * time.Millisecond
	}
	least, most := l.prof.Latency.Min, l.prof.Latency.Max
	return l.box.scaled(least + time.Duration(l.rng.Int64N(int64(most-least)+1)))
}
