package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Parameters of codes that end.
const (
	soonest  = 10 * time.Second // after their creation or their last change
	latest   = 60 * time.Second
	lastEnds = 15 * time.Second // of half of the codes that are left at the end of a storm
	farEnd   = time.Hour        // of the others: it must be on their locks

	sooner = 3 // times, in the short form
)

// endLate is how long after its end a code may still exist, whatever is cut off, killed, or frozen: two long cuts and
// the pauses after them.
const endLate = 2 * time.Minute

// endEarly is how long before its end a code may be reported as deleted. Events have the time at which their
// transaction began. The transaction may then have waited for its device, for at most 5 s, before it checked the end.
const endEarly = 6 * time.Second

// soonEnd returns the end of a code that ends during the storm. Vendors store whole seconds.
func (g *guests) soonEnd() time.Time {
	in := soonest + time.Duration(g.random.Int64N(int64(latest-soonest)))
	if g.pace > 0 {
		in /= sooner
	}
	return time.Now().Add(in).UTC().Truncate(time.Second)
}

// isOver reports whether a code has ended, so that it need not exist.
func (c *owned) isOver() bool { return !c.ends.IsZero() && !time.Now().Before(c.ends) }

// parts tells a guest that a code has ended.
func (g *guests) parts(c *owned) {
	delete(g.codes, c.id)
	g.ended[c.id] = c
}

// refusedAsOver reports whether a request about a code was rejected because the code had ended.
func (g *guests) refusedAsOver(path string, c *owned, a answer) bool {
	gone := a.status == http.StatusNotFound || a.text("error", "type") == "access_code_being_deleted"
	if !gone || !c.isOver() {
		return false
	}
	g.parts(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused[a.refusal(path)]--; g.refused[a.refusal(path)] == 0 {
		delete(g.refused, a.refusal(path))
	}
	return true
}

// lastWishes changes the ends of the remaining codes at the end of a storm: half to a near end, half to a far one.
func (g *guests) lastWishes(ctx context.Context) {
	left := []time.Duration{lastEnds, farEnd}
	if g.pace > 0 {
		left[0] /= sooner
	}
	for _, id := range slices.Sorted(maps.Keys(g.codes)) {
		c := g.codes[id]
		if c.ends.IsZero() {
			continue
		}
		slices.Reverse(left)
		ends := time.Now().Add(left[0]).UTC().Truncate(time.Second)
		a, ok := g.ask(ctx, "/access_codes/update", map[string]any{"access_code_id": id, "ends_at": ends})
		if ok && a.status == http.StatusOK {
			g.did["update of an end"]++
			c.ends = ends
			g.remembers(a)
		} else {
			g.refusedAsOver("/access_codes/update", c, a)
		}
	}
}

// outlive waits until all codes with a near end have ended.
func (s *storm) outlive() {
	s.Helper()
	until(s, "the time of codes is over", func() bool {
		left := 0
		for _, g := range s.guests {
			for _, c := range g.codes {
				switch {
				case c.isOver():
					g.parts(c)
				case !c.ends.IsZero() && time.Until(c.ends) < farEnd/2:
					left++
				}
			}
		}
		return left == 0
	})
}

// judgeEnds checks that each ended code was deleted then and not earlier, with the right events.
func (s *storm) judgeEnds(complain func(string, ...any)) string {
	s.Helper()
	created, deleted := s.tales(
		"access_code.created",
		"access_code_id",
	), s.tales(
		"access_code.deleted",
		"access_code_id",
	)
	gone := s.deletions()
	ended, kept := 0, 0
	var late time.Duration
	for _, g := range s.guests {
		kept += g.did[endKept]
		for id, c := range g.ended {
			ended++
			if created[id] != 1 || deleted[id] != 1 {
				complain(
					"ended code %s has %d access_code.created and %d access_code.deleted events",
					id,
					created[id],
					deleted[id],
				)
				continue
			}
			after := gone[id].Sub(c.ends)
			late = max(late, after)
			if after < -endEarly || after > testenv.Timeout(endLate) {
				complain("code %s was deleted %s after its end", id, after)
			}
		}
	}
	if ended == 0 || s.long && kept == 0 {
		complain("%d codes have ended, and %d ends are on locks: that was no load", ended, kept)
	}
	return fmt.Sprintf(
		"\ncodes that ended          %6d  and were deleted at most %s after; ends that are on locks: %d",
		ended,
		late.Round(100*time.Millisecond),
		kept,
	)
}

// endKept is counted for each correct end in the memory of a lock.
const endKept = "end that is on a lock"

// deletions returns the times of the deletion events by code.
func (s *storm) deletions() map[string]time.Time {
	s.Helper()
	rows, err := s.pool.Query(
		s.Context(),
		"select payload->>'access_code_id', occurred_at from events where event_type = 'access_code.deleted'",
	)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	all := map[string]time.Time{}
	for rows.Next() {
		var id string
		var at time.Time
		if err := rows.Scan(&id, &at); err != nil {
			s.Fatal(err)
		}
		all[id] = at
	}
	if rows.Err() != nil {
		s.Fatal(rows.Err())
	}
	return all
}

// place is the vendor's id of a lock, and whether the lock stores the end of codes.
type place struct {
	ref       string
	keepsEnds bool
}

func (s *storm) places() map[string]place {
	s.Helper()
	rows, err := s.pool.Query(
		s.Context(),
		"select device_id::text, vendor_ref, coalesce((capabilities->>'native_schedule')::boolean, false) from devices",
	)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	all := map[string]place{}
	for rows.Next() {
		var id string
		var p place
		if err := rows.Scan(&id, &p.ref, &p.keepsEnds); err != nil {
			s.Fatal(err)
		}
		all[id] = p
	}
	if rows.Err() != nil {
		s.Fatal(rows.Err())
	}
	return all
}

// slot is a code in the memory of a lock.
type slot struct {
	pin, name string
	ends      time.Time
}

// memory reads the memory of a lock.
func (s *storm) memory(device string) (slots []slot) {
	s.Helper()
	var memory struct {
		Codes []struct {
			Name string    `json:"name"`
			PIN  string    `json:"code"`
			Ends time.Time `json:"ends_at"`
		} `json:"access_codes"`
	}
	s.look("locks/"+s.places()[device].ref, s.witness.tokenOf("GET locks"), &memory)
	for _, c := range memory.Codes {
		slots = append(slots, slot{c.PIN, c.Name, c.Ends.UTC()})
		s.secrets.Learn("code", c.PIN)
	}
	return slots
}

// look reads the memory of a lock or an access system from the cloud.
func (s *storm) look(at, token string, memory any) {
	s.Helper()
	lookInto(s, "http://"+s.vendor+"/sandbox/cloud/sandbox/"+at+"/memory", token, memory)
}

// lookInto reads a memory at its address in the simulated cloud.
func lookInto(t testing.TB, url, token string, memory any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(memory); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("look into %s: %s %v", url, res.Status, err)
	}
}
