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

// Of codes that end.
const (
	soonest  = 10 * time.Second // after they are made or given another end
	latest   = 60 * time.Second
	lastEnds = 15 * time.Second // of half of those that are left when a storm is over
	farEnd   = time.Hour        // of the others: it has to be on their locks

	sooner = 3 // times, in the short form
)

// endLate is how long after its end a code is gone at the latest, whatever is cut off, killed or frozen meanwhile: two long cuts and the pauses
// that follow them.
const endLate = 2 * time.Minute

// endEarly is how long before its end a code may be told to have gone: an event has the time at which its transaction began, which may
// have waited for its device then, for 5 s at most, and was to find out what is over by now when it had it.
const endEarly = 6 * time.Second

// soonEnd is when a code ends that does while the storm lasts. Vendors keep no fractions of seconds.
func (g *guests) soonEnd() time.Time {
	in := soonest + time.Duration(g.random.Int64N(int64(latest-soonest)))
	if g.pace > 0 {
		in /= sooner
	}
	return time.Now().Add(in).UTC().Truncate(time.Second)
}

// isOver is whether the time of a code is, so that it need not be there any more.
func (c *owned) isOver() bool { return !c.ends.IsZero() && !time.Now().Before(c.ends) }

// parts has a guest know that the time of a code is over.
func (g *guests) parts(c *owned) {
	delete(g.codes, c.id)
	g.ended[c.id] = c
}

// refusedAsOver is whether a request about a code was refused because its time was over by then.
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

// lastWishes gives the codes that end another end, when a storm is over: half of them a near one, half a far one.
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

// outlive waits until the time of all codes that end soon is over.
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

// judgeEnds checks that each code that ended was taken away then, and no sooner, and what was told of that.
func (s *storm) judgeEnds(complain func(string, ...any)) string {
	s.Helper()
	created, deleted := s.tales("access_code.created", "access_code_id"), s.tales("access_code.deleted", "access_code_id")
	gone := s.deletions()
	ended, kept := 0, 0
	var late time.Duration
	for _, g := range s.guests {
		kept += g.did[endKept]
		for id, c := range g.ended {
			ended++
			if created[id] != 1 || deleted[id] != 1 {
				complain("of code %s, which has ended, access_code.created was told %d times and access_code.deleted %d times", id, created[id], deleted[id])
				continue
			}
			after := gone[id].Sub(c.ends)
			late = max(late, after)
			if after < -endEarly || after > testenv.Timeout(endLate) {
				complain("code %s was gone %s after its end", id, after)
			}
		}
	}
	if ended == 0 || s.long && kept == 0 {
		complain("%d codes have ended, and %d ends are on locks: that was no load", ended, kept)
	}
	return fmt.Sprintf("\ncodes that ended          %6d  and were gone at most %s after; ends that are on locks: %d", ended, late.Round(100*time.Millisecond), kept)
}

// endKept is counted for each end that is on a lock as it should be.
const endKept = "end that is on a lock"

// deletions is when codes were deleted, by what was told of it.
func (s *storm) deletions() map[string]time.Time {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), "select payload->>'access_code_id', occurred_at from events where event_type = 'access_code.deleted'")
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

// place is what a vendor calls a lock, and whether that keeps when its codes end.
type place struct {
	ref       string
	keepsEnds bool
}

func (s *storm) places() map[string]place {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), "select device_id::text, vendor_ref, coalesce((capabilities->>'native_schedule')::boolean, false) from devices")
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

// slot is a code in a lock's own memory.
type slot struct {
	pin, name string
	ends      time.Time
}

// memory is what is really on a lock.
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

// look asks the cloud for the memory of a lock or an access system.
func (s *storm) look(at, token string, memory any) {
	s.Helper()
	lookInto(s, "http://"+s.vendor+"/sandbox/cloud/sandbox/"+at+"/memory", token, memory)
}

// lookInto asks for a memory at its address, which only those can who stand before it.
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
