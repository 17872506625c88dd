package sandbox

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// SystemFaults are the knobs of one access system. They are not kept across a restart.
type SystemFaults struct {
	// LatencyMS replaces the time that an answer takes, whatever the sandbox's speed.
	LatencyMS *Range `json:"latency_ms,omitempty"`
	// FailureRate makes requests fail, by class, each with its probability from 0 to 1: transient, rate_limited and
	// auth_revoked any request; full and invalid writes; unconfirmed lets a write through and cuts the connection in
	// place of an answer.
	FailureRate map[string]float64 `json:"failure_rate,omitempty"`
	// MaxUsers replaces the number of users that there is room for.
	MaxUsers *int `json:"max_users,omitempty"`
}

// systemFaults are the classes of SystemFaults.FailureRate. The kind is empty where the request is let through.
var systemFaults = map[string]struct {
	kind  kind
	reads bool // also reads fail with it
}{
	"transient":    {unavailable, true},
	"rate_limited": {rateLimited, true},
	"auth_revoked": {unauthorized, true},
	"full":         {systemFull, false},
	"invalid":      {invalidUser, false},
	"unconfirmed":  {},
}

func (f SystemFaults) check() *problem {
	for class, rate := range f.FailureRate {
		if _, ok := systemFaults[class]; !ok {
			return refuse(invalidRequest, "failure_rate: there is no class %q; classes are %v.", class, slices.Sorted(maps.Keys(systemFaults)))
		}
		if rate < 0 || rate > 1 {
			return refuse(invalidRequest, "%s must be between 0 and 1.", class)
		}
	}
	if f.LatencyMS != nil && (f.LatencyMS.Min < 0 || f.LatencyMS.Max < f.LatencyMS.Min) || f.MaxUsers != nil && *f.MaxUsers < 0 {
		return refuse(invalidRequest, "Counts and times must not be negative, and min not above max.")
	}
	return nil
}

// The time that a system takes to answer, at the sandbox's speed.
const (
	systemLatencyMin = 50 * time.Millisecond
	systemLatencyMax = 200 * time.Millisecond
)

// draw decides how long the next request takes and what goes wrong with it.
func (y *system) draw(write bool) (time.Duration, fault) {
	y.mu.Lock()
	defer y.mu.Unlock()
	wait := y.acct.box.scaled(systemLatencyMin + time.Duration(y.rng.Int64N(int64(systemLatencyMax-systemLatencyMin))))
	if r := y.faults.LatencyMS; r != nil {
		wait = time.Duration(r.Min+y.rng.IntN(r.Max-r.Min+1)) * time.Millisecond
	}
	left := y.rng.Float64()
	for _, class := range slices.Sorted(maps.Keys(y.faults.FailureRate)) {
		if left -= y.faults.FailureRate[class]; left >= 0 {
			continue
		}
		f := systemFaults[class]
		switch {
		case !write && !f.reads:
			return wait, fault{}
		case class == "unconfirmed":
			return wait, fault{abort: true}
		}
		p := &problem{kind: f.kind, message: fmt.Sprintf("The sandbox was told to fail as %s.", class)}
		if p.kind == unavailable || p.kind == rateLimited {
			p.retryAfter = y.acct.box.scaled(time.Second)
		}
		return wait, fault{problem: p}
	}
	return wait, fault{}
}

// systemHandler answers a request about a system.
type systemHandler func(r *http.Request, y *system) (any, *problem)
