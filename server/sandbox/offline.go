package sandbox

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Offline codes are computed by the vendor's cloud, and the lock verifies them from their digits and its clock. So
// the cloud issues them whether or not the lock is reachable, and they cannot be chosen, changed, deleted, or listed.
// The rules are those of igloohome (developers.igloohome.co, algoPIN).

// offlineCode is an issued code. Only the lock knows its use.
type offlineCode struct {
	ID       string      `json:"access_code_id"`
	CustomID string      `json:"custom_id,omitempty"`
	Kind     offlineKind `json:"kind"`
	PIN      string      `json:"code"`
	StartsAt time.Time   `json:"starts_at"`
	EndsAt   time.Time   `json:"ends_at"`
	UsedAt   *time.Time  `json:"used_at,omitempty"` // first use
}

type offlineKind string

const (
	hourly  offlineKind = "hourly"
	daily   offlineKind = "daily"
	oneTime offlineKind = "one_time"
)

const (
	// activation is the time after the start within which a longer code must be used first.
	activation = 24 * time.Hour
	day        = 24 * time.Hour
)

// slots is the number of codes of each kind for the same time.
var slots = map[offlineKind]int{hourly: 3, daily: 3, oneTime: 5}

// opens reports whether the lock accepts the code at now.
func (c offlineCode) opens(now time.Time) bool {
	switch {
	case now.Before(c.StartsAt), !now.Before(c.EndsAt):
		return false
	case c.Kind == oneTime:
		return c.UsedAt == nil
	default:
		return c.UsedAt != nil || now.Before(c.StartsAt.Add(activation))
	}
}

// offlineRequest is the body of POST offline_codes.
type offlineRequest struct {
	Kind     offlineKind `json:"kind"`
	StartsAt time.Time   `json:"starts_at"`
	EndsAt   time.Time   `json:"ends_at"`
	CustomID string      `json:"custom_id"`
}

// check returns why the vendor cannot issue the code: INVALID_REQUEST, INVALID_TIME_FRAME.
func (q offlineRequest) check(now time.Time) *problem {
	lasts := q.EndsAt.Sub(q.StartsAt)
	whole := q.StartsAt.Equal(q.StartsAt.Truncate(time.Hour)) && q.EndsAt.Equal(q.EndsAt.Truncate(time.Hour))
	switch {
	case slots[q.Kind] == 0:
		return refuse(invalidRequest, "kind must be hourly, daily or one_time.")
	case len(q.CustomID) > customIDLimit:
		return refuse(invalidRequest, "custom_id has at most %d characters.", customIDLimit)
	case !whole:
		return refuse(invalidTimeFrame, "Offline codes start and end on the hour.")
	case !q.EndsAt.After(now):
		return refuse(invalidTimeFrame, "ends_at is in the past.")
	case !q.StartsAt.Add(activation).After(now):
		return refuse(invalidTimeFrame, "Offline codes must be used first within 24 hours of starts_at, which have "+
			"passed.")
	case q.Kind == hourly && (lasts < time.Hour || lasts > 672*time.Hour):
		return refuse(invalidTimeFrame, "An hourly code lasts 1 to 672 hours.")
	case q.Kind == daily && (lasts < 29*day || lasts > 367*day || lasts%day != 0):
		return refuse(invalidTimeFrame, "A daily code lasts 29 to 367 whole days.")
	case q.Kind == oneTime && lasts != day:
		return refuse(invalidTimeFrame, "A one-time code lasts 24 hours.")
	}
	return nil
}

// issue issues a code, or returns the earlier one with the same custom_id.
func (l *lock) issue(q offlineRequest) (c offlineCode, p *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.prof.Offline {
		return c, refuse(notSupported, "The lock has no offline codes.")
	}
	if i := slices.IndexFunc(l.mem.Offline, func(c offlineCode) bool { return c.CustomID == q.CustomID }); i >= 0 &&
		q.CustomID != "" {
		return l.mem.Offline[i], nil
	}
	if p := q.check(l.box.opts.Clock()); p != nil {
		return c, p
	}
	variance, live := 0, 0
	for _, c := range l.mem.Offline {
		if c.Kind == q.Kind && c.StartsAt.Equal(q.StartsAt) && c.EndsAt.Equal(q.EndsAt) {
			variance++
		}
		if c.EndsAt.After(l.box.opts.Clock()) {
			live++
		}
	}
	switch {
	case variance >= slots[q.Kind]:
		return c, refuse(deviceFull, "There are %d codes of this kind for this time, and no more.", variance)
	case len(l.mem.Codes)+live >= l.prof.MaxCodes:
		return c, refuse(deviceFull, "The lock has no room for another code.")
	}
	p = l.commit(func(m *memory) *problem {
		m.NextCode++
		c = offlineCode{
			ID:       fmt.Sprintf("op_%s_%d", l.id, m.NextCode),
			CustomID: q.CustomID,
			Kind:     q.Kind,
			StartsAt: q.StartsAt.UTC(),
			EndsAt:   q.EndsAt.UTC(),
		}
		for c.PIN = l.offlinePIN(c, variance); slices.ContainsFunc(m.Offline,
			func(o offlineCode) bool { return o.PIN == c.PIN }); {
			variance += len(slots) * 10
			c.PIN = l.offlinePIN(c, variance)
		}
		m.Offline = append(slices.Clone(m.Offline), c)
		return nil
	})
	return c, p
}

// offlinePIN returns the nine digits that the lock's secret and the time determine.
func (l *lock) offlinePIN(c offlineCode, variance int) string {
	digest := l.box.tokens.digest("offline", l.id, string(c.Kind), c.StartsAt.String(), c.EndsAt.String(),
		fmt.Sprint(variance))
	return fmt.Sprintf("%09d", binary.BigEndian.Uint64(digest)%1_000_000_000)
}

// enterOffline uses the offline code with the PIN, if it opens now; l.mu is held.
func (l *lock) enterOffline(pin string) *stored {
	i := slices.IndexFunc(l.mem.Offline, func(c offlineCode) bool { return c.PIN == pin })
	if i < 0 || !l.mem.Offline[i].opens(l.now()) {
		return nil
	}
	c := l.mem.Offline[i]
	if c.UsedAt == nil {
		p := l.commit(func(m *memory) *problem {
			m.Offline = slices.Clone(m.Offline)
			m.Offline[i].UsedAt = new(l.now())
			return nil
		})
		if p != nil {
			return nil
		}
	}
	return &stored{ID: c.ID, PIN: c.PIN}
}

func postOffline(w http.ResponseWriter, r *http.Request, l *lock, _ fault) {
	var q offlineRequest
	if p := read(r, &q); p != nil {
		answerProblem(w, p)
		return
	}
	c, p := l.issue(q)
	respond(w, map[string]any{
		"access_code_id": c.ID,
		"lock_id":        l.id,
		"kind":           c.Kind,
		"code":           c.PIN,
		"starts_at":      c.StartsAt,
		"ends_at":        c.EndsAt,
	}, p)
}
