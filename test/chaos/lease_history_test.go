package chaos_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// tenure is the time in which a server holds a lease, until it releases the lease or the lease expires.
type tenure struct {
	server   string
	fence    int64
	from, to time.Time
}

// absence is the time in which a server was frozen, or the time of its kill.
type absence struct {
	server   string
	from, to time.Time
}

// history is what servers did and what they were allowed to do.
type history struct {
	requests []request // requests with a lease, from known servers
	tenures  map[string][]tenure
	frozen   []absence
	killed   []absence
}

// verdict is the result of a history.
type verdict struct {
	handed   map[string]int // how often the server of successive requests changed, by lane
	woken    map[string]int // requests of a server that sent them when it was thawed and whose lease had expired meanwhile, by kind
	outlived int            // requests of a frozen or killed server that were in flight when another server began after the end of the lease
	wrong    []string
}

// wakes is how long after its thaw a server may send requests that it was about to send: it was frozen between its look
// at the clock and the write, or while it connected.
const wakes = 5 * time.Second

// wokenAtMost is the maximum number of such requests per freeze, since the window is short.
const wokenAtMost = 2

// judgeWoken limits the requests of thawed servers without a lease. Endpoints accept repeated messages, and repeated
// reads have no effect. But two such writes in one storm are no coincidence.
func judgeWoken(complain func(string, ...any), woken map[string]int, freezes int) {
	writes := 0
	for what, n := range woken {
		if !strings.HasPrefix(what, "GET ") && what != "delivery" {
			writes += n
		}
	}
	if writes > 1 {
		complain("servers that woke have written %d times without their leases: %v", writes, woken)
	}
	if n := total(woken); n > wokenAtMost*freezes {
		complain(
			"servers that woke have sent %d requests without their leases, after %d freezes: %v",
			n,
			freezes,
			woken,
		)
	}
}

// judge checks that one server at a time worked on each object: the one with the lease, and none while a request of
// another was in flight.
func (h history) judge() (v verdict) {
	by := map[string][]request{}
	v.handed, v.woken = map[string]int{}, map[string]int{}
	for _, r := range h.requests {
		by[r.of] = append(by[r.of], r)
	}
	for _, of := range slices.Sorted(maps.Keys(by)) {
		all := by[of]
		slices.SortFunc(all, func(a, b request) int { return a.begin.Compare(b.begin) })
		var air []request // may not have a response yet
		for n, r := range all {
			if n > 0 && all[n-1].server != r.server {
				lane, _, _ := strings.Cut(of, ":")
				v.handed[lane]++
			}
			woken := false
			if h.tenureOf(r) == nil {
				if woken = h.hasWoken(r); woken {
					v.woken[r.what]++
				} else {
					v.wrong = append(v.wrong, fmt.Sprintf("%s without its lease%s", r, h.holder(r)))
				}
			}
			air = slices.DeleteFunc(air, func(a request) bool { return !a.end.After(r.begin) })
			for _, a := range air {
				switch {
				case a.server == r.server:
				case h.hasOutlived(a, r):
					v.outlived++
				case !woken && !h.hasWoken(a):
					v.wrong = append(v.wrong, fmt.Sprintf("%s while this was not answered: %s", r, a))
				}
			}
			air = append(air, r)
		}
	}
	return v
}

func (r request) String() string {
	return fmt.Sprintf("%s: %s of %s from %s to %s", r.server, r.what, r.of, clock(r.begin), clock(r.end))
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000000") }

// tenureOf returns the tenure in which a request began, or nil. A tenure ends at the latest when the next one begins.
func (h history) tenureOf(r request) *tenure {
	for n, t := range h.tenures[r.of] {
		if t.server == r.server && !r.begin.Before(t.from) && !r.begin.After(h.endOf(r.of, n)) {
			return &h.tenures[r.of][n]
		}
	}
	return nil
}

// endOf returns when the n-th tenure of an object ended in fact.
func (h history) endOf(of string, n int) time.Time {
	all := h.tenures[of]
	if n+1 < len(all) && all[n+1].from.Before(all[n].to) {
		return all[n+1].from
	}
	return all[n].to
}

// holder describes who held the lease when a request began.
func (h history) holder(r request) (text string) {
	const around = time.Second
	for n, t := range h.tenures[r.of] {
		if end := h.endOf(r.of, n); t.from.Before(r.begin.Add(around)) && end.After(r.begin.Add(-around)) {
			text += fmt.Sprintf(", which %s had from %s to %s", t.server, clock(t.from), clock(end))
		}
	}
	return text
}

// hasWoken reports whether a request without a lease is from a server that had the lease when it was frozen and has
// just been thawed.
func (h history) hasWoken(r request) bool {
	return h.tenureOf(r) == nil && slices.ContainsFunc(h.frozen, func(f absence) bool {
		return f.server == r.server && r.begin.After(f.to) && r.begin.Before(f.to.Add(wakes)) && h.ranOut(r.of, f)
	})
}

// ranOut reports whether a server had the lease when it was frozen or killed, but not when the freeze ended.
func (h history) ranOut(of string, f absence) bool {
	for n, t := range h.tenures[of] {
		if t.server == f.server && !t.from.After(f.from) && !h.endOf(of, n).Before(f.from) &&
			!h.endOf(of, n).After(f.to) {
			return true
		}
	}
	return false
}

// hasOutlived reports whether an in-flight request is from a server that was frozen or killed after sending it, and the
// other request began after its lease had expired.
func (h history) hasOutlived(a, r request) bool {
	t := h.tenureOf(a)
	return t != nil && r.begin.After(t.to) &&
		slices.ContainsFunc(slices.Concat(h.frozen, h.killed), func(f absence) bool {
			return f.server == a.server && f.from.After(a.begin) && f.from.Before(a.end) && !t.to.Before(f.from)
		})
}

func TestJudgeWoken_RejectsWritesWithoutLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		woken map[string]int
		wrong int
	}{
		"nothing":          {nil, 0},
		"a few messages":   {map[string]int{"delivery": 3, "GET lock": 1}, 0},
		"many messages":    {map[string]int{"delivery": 5}, 1},
		"many questions":   {map[string]int{"GET lock access_codes": 5}, 1},
		"one write":        {map[string]int{"POST lock access_codes": 1}, 0},
		"writes":           {map[string]int{"POST lock access_codes": 1, "DELETE access_code": 1}, 1},
		"writes of a user": {map[string]int{"PATCH system users": 2}, 1},
		"all of it":        {map[string]int{"PATCH system users": 2, "delivery": 3}, 2},
	} {
		wrong := 0
		if judgeWoken(func(string, ...any) { wrong++ }, c.woken, 2); wrong != c.wrong {
			t.Errorf("%s: %d complaints, want %d", name, wrong, c.wrong)
		}
	}
}

// Each history has a lock and two servers: a has the lease from 0 to 15, and b from 20 to 40. A request is its server,
// its begin, and its end.
func TestHistory_CountsConcurrentWork(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Unix(1_000_000+int64(second), 0) }
	ask := func(server string, begin, end int) request {
		return request{server, "lock", "write", at(begin), at(end)}
	}
	away := func(from, to int) []absence { return []absence{{"a", at(from), at(to)}} }
	for name, c := range map[string]struct {
		requests        []request
		frozen, killed  []absence
		taken           int // when b takes the lease; 0 means 20
		woken, outlived int
		wrong           int
	}{
		"one after another":   {requests: []request{ask("a", 1, 2), ask("a", 3, 14), ask("b", 21, 22)}},
		"several of one":      {requests: []request{ask("a", 1, 9), ask("a", 2, 3)}},
		"two concurrent ones": {requests: []request{ask("a", 14, 22), ask("b", 21, 23)}, wrong: 1},
		"two next to one": {
			requests: []request{ask("b", 21, 29), ask("a", 22, 23), ask("a", 24, 25)},
			wrong:    4,
		},
		"without a lease":                           {requests: []request{ask("a", 16, 17)}, wrong: 1},
		"another's turn":                            {requests: []request{ask("a", 21, 22)}, wrong: 1},
		"no lease at any time":                      {requests: []request{ask("c", 5, 6)}, wrong: 1},
		"a lease that another takes before its end": {requests: []request{ask("a", 12, 13)}, taken: 10, wrong: 1},
		"one that woke": {
			requests: []request{ask("b", 21, 23), ask("a", 32, 33)},
			frozen:   away(5, 31),
			woken:    1,
		},
		"one after a thaw, next to another": {
			requests: []request{ask("a", 32, 35), ask("b", 33, 34)},
			frozen:   away(5, 31),
			woken:    1,
		},
		"one that woke a while ago": {requests: []request{ask("a", 37, 38)}, frozen: away(5, 31), wrong: 1},
		"one that woke and had never had it": {
			requests: []request{ask("c", 32, 33)},
			frozen:   []absence{{"c", at(5), at(31)}},
			wrong:    1,
		},
		"one after a thaw, with a lease expired long ago": {
			requests: []request{ask("a", 32, 33)},
			frozen:   away(18, 31),
			wrong:    1,
		},
		"another one woke": {
			requests: []request{ask("a", 32, 33)},
			frozen:   []absence{{"b", at(5), at(31)}},
			wrong:    1,
		},
		"one that woke in time":                    {requests: []request{ask("a", 16, 17)}, frozen: away(5, 13), wrong: 1},
		"one that was awake while another was not": {requests: []request{ask("c", 32, 33)}, frozen: away(5, 31), wrong: 1},
		"in the air of a frozen one": {
			requests: []request{ask("a", 4, 32), ask("b", 21, 22)},
			frozen:   away(5, 31),
			outlived: 1,
		},
		"in the air of a killed one": {
			requests: []request{ask("a", 4, 22), ask("b", 21, 22)},
			killed:   away(5, 5),
			outlived: 1,
		},
		"in the air of one that was frozen later": {
			requests: []request{ask("a", 4, 22), ask("b", 21, 24)},
			frozen:   away(23, 39),
			wrong:    1,
		},
		"in the air of one that was frozen before": {
			requests: []request{ask("a", 6, 22), ask("b", 21, 24)},
			frozen:   away(2, 3),
			wrong:    1,
		},
		"in the air when its lease ended": {
			requests: []request{ask("a", 14, 32), ask("b", 21, 24)},
			frozen:   away(18, 31),
			wrong:    1,
		},
		"in the air of a lease that had not ended": {
			requests: []request{ask("a", 4, 12), ask("b", 11, 12)},
			frozen:   away(5, 31),
			taken:    10,
			wrong:    1,
		},
		"a killed one does not wake": {requests: []request{ask("a", 22, 23)}, killed: away(5, 21), wrong: 1},
	} {
		h := history{
			requests: c.requests,
			frozen:   c.frozen,
			killed:   c.killed,
			tenures: map[string][]tenure{"lock": {
				{"a", 1, at(0), at(15)}, {"b", 2, at(cmp.Or(c.taken, 20)), at(40)},
			}},
		}
		v := h.judge()
		if len(v.wrong) != c.wrong || total(v.woken) != c.woken || v.outlived != c.outlived {
			t.Errorf(
				"%s: %d wrong, %d woken, %d in the air; want %d, %d, %d: %q",
				name,
				len(v.wrong),
				total(v.woken),
				v.outlived,
				c.wrong,
				c.woken,
				c.outlived,
				v.wrong,
			)
		}
	}
}
