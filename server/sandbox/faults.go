package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Faults configures the faults of one device. It is not persistent. Rates are probabilities between 0 and 1.
type Faults struct {
	// LatencyMS replaces the profile's latency, independent of Options.Speed.
	LatencyMS *Range `json:"latency_ms,omitempty"`
	// FailureRate is the probability of failed requests by class. transient, rate_limited, and auth_revoked apply to
	// all requests; offline, busy, duplicate, full, and invalid to writes. unconfirmed executes a write and closes
	// the connection instead of responding. failed accepts a write that then fails on the lock.
	FailureRate map[string]float64 `json:"failure_rate,omitempty"`
	// DropNext is the number of writes to accept without effect.
	DropNext int `json:"drop_next,omitempty"`

	// LateWebhookMS is the additional delay of each webhook event.
	LateWebhookMS    int     `json:"late_webhook_ms,omitempty"`
	DuplicateWebhook float64 `json:"duplicate_webhook,omitempty"`
	LostWebhook      float64 `json:"lost_webhook,omitempty"`

	// ListLagMS replaces the time by which the profile's list lags behind the lock.
	ListLagMS *int `json:"eventual_consistency_window_ms,omitempty"`
	// SlotsTaken is the number of slots that are in use but not listed by the cloud.
	SlotsTaken int `json:"slots_taken,omitempty"`
	// ClockSkewMS is how far the lock's clock is ahead.
	ClockSkewMS int `json:"clock_skew_ms,omitempty"`
	// Masked hides PINs, as many gateways do. The capabilities of the lock reflect that.
	Masked bool `json:"masked,omitempty"`
}

// Range is an inclusive range.
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

// check returns a problem for a value out of range.
func (f Faults) check() *problem {
	rates := maps.Clone(f.FailureRate)
	if rates == nil {
		rates = map[string]float64{}
	}
	for class := range rates {
		if _, ok := faults[class]; !ok {
			return refuse(invalidRequest, "failure_rate: there is no class %q; classes are %v.", class,
				slices.Sorted(maps.Keys(faults)))
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

// fault is the fault of one request.
type fault struct {
	problem *problem // the response
	abort   bool     // execute, then close the connection
	broken  bool     // accept, then fail on the lock
}

// faults maps the classes of Faults.FailureRate. An empty kind lets the request through.
var faults = map[string]struct {
	kind  kind
	reads bool // applies to reads as well
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

// drawFault draws the fault of the next request about the lock.
func (l *lock) drawFault(write bool) fault {
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
		if f.kind == invalidPIN && !l.prof.isLock() {
			f.kind = invalidSetting
		}
		p := &problem{kind: f.kind, message: fmt.Sprintf("The sandbox is configured to fail with class %s.", class)}
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
