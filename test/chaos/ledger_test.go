package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// settle waits until nothing is to be done any more.
func (s *storm) settle() {
	s.Helper()
	var what string
	var n int
	begun := time.Now()
	for _, rest := range []struct{ what, count string }{
		{"action attempts that are pending", "select count(*) from action_attempts where status = 'pending'"},
		{"codes on their way", "select count(*) from access_codes where is_managed and status in ('setting', 'removing')"},
		{"devices that are due", "select count(*) from devices where due_at <= now() - interval '10 seconds'"},
		{"deliveries that are pending", "select count(*) from deliveries where state = 'pending'"},
	} {
		what = rest.what
		until(s, "there are no "+what, func() bool {
			if err := s.pool.QueryRow(s.Context(), rest.count).Scan(&n); err != nil {
				return false
			}
			if time.Since(begun) > patience-time.Second {
				s.Logf("%d %s", n, what)
			}
			return n == 0
		})
	}
}

// audit compares what guests were told with what is on the locks and what endpoints were sent.
func (s *storm) audit(seed, faults int, took time.Duration) {
	s.Helper()
	var wrong []string
	complain := func(format string, v ...any) { wrong = append(wrong, fmt.Sprintf(format, v...)) }
	did := map[string]int{}
	var living, reported, slots int
	failed := map[string]int{}
	for _, g := range s.guests {
		for op, n := range g.did {
			did[op] += n
		}
		for _, device := range g.devices {
			codes := s.codes(g.client, device)
			onLock := s.memory(device)
			slots += len(onLock)
			names := map[string]int{}
			for _, c := range codes {
				names[c.text("name")]++
				pin, status := c.text("code"), c.text("status")
				errs, _ := c.body["errors"].([]any)
				has := count(onLock, pin)
				switch {
				case len(errs) > 0:
					reported++
				case c.managed && status != "set":
					complain("code %s of %s has the status %s, and no error says why", c.text("access_code_id"), device, status)
				case pin != "" && has != 1:
					complain("the PIN of code %s is %d times on %s", c.text("access_code_id"), has, device)
				}
				if g.deleted[c.text("access_code_id")] != nil && len(errs) == 0 {
					complain("code %s was deleted and is still there", c.text("access_code_id"))
				}
			}
			if len(onLock) > len(codes) {
				complain("%d codes are on %s, and %d have an owner", len(onLock), device, len(codes))
			}
			for name, n := range names {
				if g.made[name] > 0 && n > 1 {
					complain("%q was made once and is there %d times", name, n)
				}
			}
		}
		for _, c := range g.codes {
			living++
			if c.adopted {
				continue // what became of it is checked with the others on its lock
			}
			a, ok := g.ask(s.Context(), "/access_codes/get", map[string]any{"access_code_id": c.id})
			if !ok || a.status != 200 {
				complain("code %s was made, and get answers %d", c.id, a.status)
			} else if name := a.text("access_code", "name"); name != c.name || c.pin != "" && a.text("access_code", "code") != c.pin {
				complain("code %s is not as it was changed last: it is %q instead of %q, its PIN %t", c.id, name, c.name, a.text("access_code", "code") == c.pin)
			}
		}
		for _, id := range g.tries {
			switch a, _ := g.ask(s.Context(), "/action_attempts/get", map[string]any{"action_attempt_id": id}); a.text("action_attempt", "status") {
			case "success":
			case "error":
				failed[a.text("action_attempt", "action_type")+" "+a.text("action_attempt", "error", "type")]++
			default:
				complain("attempt %s: %d %s", id, a.status, a.text("action_attempt", "status"))
			}
		}
	}
	events := s.events()
	for _, key := range s.receiver.missing(events) {
		complain("an event has not arrived: %s", key)
	}
	s.once(complain, "access_code.created")
	s.once(complain, "access_code.deleted")
	byItself := 0
	for _, i := range s.instances {
		byItself += i.byItself
	}
	c := s.guests[0].client
	c.mu.Lock()
	defer c.mu.Unlock()
	s.receiver.mu.Lock()
	defer s.receiver.mu.Unlock()
	s.Logf(`
seed %d, %d faults in %s: %v
requests answered         %6d  %v
  asked again             %6d  as no answer came
  refused                 %6d  %v
codes that guests have    %6d  and slots in use on their locks: %d
  reported as failed      %6d  by errors of the code
attempts that failed      %6d  and said so: %v
events written            %6d  and owed to two endpoints
messages received         %6d  %d of them a second time, with the same bytes
work of killed servers    %6d  times taken over, at most %s after the kill
starts that failed        %6d  times, as the database was away
wrong                     %6d`, seed, faults, took.Round(time.Second), s.counts, c.answers, did, c.again, total(c.refused), c.refused, living, slots, reported, total(failed), failed,
		len(events), s.receiver.messages, s.receiver.duplicates, s.takeovers, s.worst.Round(100*time.Millisecond), byItself, len(wrong))
	if len(wrong) > 0 {
		s.Errorf("wrong:\n%s", strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
	if s.worst > 30*time.Second {
		s.Errorf("work of a killed server was taken over after %s", s.worst)
	}
	if did["create"] == 0 || did["update"] == 0 || did["delete"] == 0 || did["convert"] == 0 {
		s.Errorf("that was no load: %v", did)
	}
}

// listed is a code as the API lists it.
type listed struct {
	answer
	managed bool
}

// codes are all on a device.
func (s *storm) codes(c *client, device string) (all []listed) {
	s.Helper()
	for path, managed := range map[string]bool{"/access_codes/list": true, "/access_codes/unmanaged/list": false} {
		a, ok := c.ask(s.Context(), path, map[string]any{"device_id": device, "limit": 1000})
		if !ok || a.status != 200 {
			s.Fatalf("%s answers %d", path, a.status)
		}
		some, _ := a.body["access_codes"].([]any)
		for _, one := range some {
			body, _ := one.(map[string]any)
			all = append(all, listed{answer{body: body}, managed})
		}
	}
	return all
}

// events are those that both webhooks are owed.
func (s *storm) events() (ids []uuid.UUID) {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), "select event_id from events where created_at >= (select max(created_at) from webhooks)")
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			s.Fatal(err)
		}
		ids = append(ids, id)
	}
	if rows.Err() != nil {
		s.Fatal(rows.Err())
	}
	return ids
}

// once checks that there is no more than one event of a type about one code.
func (s *storm) once(complain func(string, ...any), eventType string) {
	s.Helper()
	var twice int
	if err := s.pool.QueryRow(s.Context(), `select count(*) from (select payload->>'access_code_id' from events where event_type = $1 group by 1 having count(*) > 1) x`, eventType).Scan(&twice); err != nil {
		s.Fatal(err)
	}
	if twice > 0 {
		complain("%s was told twice of %d codes", eventType, twice)
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

func total(m map[string]int) (n int) {
	for _, v := range slices.Collect(maps.Values(m)) {
		n += v
	}
	return n
}
