package sandbox

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// SystemFaults configures the faults of one access system. It is not persistent.
type SystemFaults struct {
	// LatencyMS replaces the response time, independent of Options.Speed.
	LatencyMS *Range `json:"latency_ms,omitempty"`
	// FailureRate is the probability of failed requests by class, between 0 and 1. transient, rate_limited, and
	// auth_revoked apply to all requests; full and invalid to writes. unconfirmed executes a write and closes the
	// connection instead of responding.
	FailureRate map[string]float64 `json:"failure_rate,omitempty"`
	// MaxUsers replaces the maximum number of users.
	MaxUsers *int `json:"max_users,omitempty"`
	// RefuseUnlocks makes the system refuse to unlock entrances.
	RefuseUnlocks bool `json:"refuse_unlocks,omitempty"`
	// RefuseGroupDeletions makes the system refuse to delete groups.
	RefuseGroupDeletions bool `json:"refuse_group_deletions,omitempty"`
}

// systemFaults maps the classes of SystemFaults.FailureRate. An empty kind lets the request through.
var systemFaults = map[string]struct {
	kind  kind
	reads bool // applies to reads as well
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
			return refuse(invalidRequest, "failure_rate: there is no class %q; classes are %v.", class,
				slices.Sorted(maps.Keys(systemFaults)))
		}
		if rate < 0 || rate > 1 {
			return refuse(invalidRequest, "%s must be between 0 and 1.", class)
		}
	}
	if f.LatencyMS != nil && (f.LatencyMS.Min < 0 || f.LatencyMS.Max < f.LatencyMS.Min) || f.MaxUsers != nil &&
		*f.MaxUsers < 0 {
		return refuse(invalidRequest, "Counts and times must not be negative, and min not above max.")
	}
	return nil
}

// Bounds of the response time of a system, divided by Options.Speed.
const (
	systemLatencyMin = 50 * time.Millisecond
	systemLatencyMax = 200 * time.Millisecond
)

// drawFault draws the duration and the fault of the next request.
func (y *system) drawFault(write bool) (time.Duration, fault) {
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
		p := &problem{kind: f.kind, message: fmt.Sprintf("The sandbox is configured to fail with class %s.", class)}
		if p.kind == unavailable || p.kind == rateLimited {
			p.retryAfter = y.acct.box.scaled(time.Second)
		}
		return wait, fault{problem: p}
	}
	return wait, fault{}
}

// systemHandler handles a request about a system.
type systemHandler func(r *http.Request, y *system) (any, *problem)
