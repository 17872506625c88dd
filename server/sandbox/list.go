package sandbox

import (
	"slices"
	"strings"
)

// listed is a code as shown by the cloud.
type listed struct {
	stored
	Status  status
	problem *problem // why the last write failed
}

type status string

const (
	statusPending  status = "pending"
	statusActive   status = "active"
	statusDeleting status = "deleting"
	statusDeleted  status = "deleted"
	statusFailed   status = "failed"
)

// list returns the cloud's copy of the codes on the lock, including pending writes; stale while the lock is offline.
// With refresh, an offline lock is DEVICE_OFFLINE.
func (l *lock) list(refresh bool) (codes []listed, stale bool, p *problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if refresh && !l.mem.reachable() {
		return nil, true, refuse(deviceOffline, "The device is offline and cannot be read.")
	}
	return l.listing(), !l.mem.reachable(), nil
}

func (l *lock) listing() []listed {
	codes := make([]listed, 0, len(l.view))
	at := map[string]int{}
	for _, c := range l.view {
		at[c.ID] = len(codes)
		codes = append(codes, listed{stored: c, Status: statusActive})
	}
	for id, f := range l.failed {
		if i, ok := at[id]; ok && f.code == nil {
			codes[i].problem = f.problem
		}
	}
	for _, o := range l.ops {
		i, known := at[o.code.ID]
		switch {
		case o.kind == opDelete && known:
			codes[i].Status = statusDeleting
		case o.kind == opUpdate && known:
			codes[i].Status = statusPending
		case o.kind == opCreate && !known:
			at[o.code.ID] = len(codes)
			codes = append(codes, listed{stored: o.code, Status: statusPending})
		}
	}
	return append(codes, l.failures()...)
}

// failures returns the failed creations.
func (l *lock) failures() []listed {
	var codes []listed
	for _, f := range l.failed {
		if f.code != nil {
			codes = append(codes, listed{stored: *f.code, Status: statusFailed, problem: f.problem})
		}
	}
	slices.SortFunc(codes, func(a, b listed) int { return strings.Compare(a.ID, b.ID) })
	return codes
}
