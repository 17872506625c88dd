package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// settlesWithin is how long anything takes once nothing is killed or cut off: failed work is retried within a minute.
const settlesWithin = 2 * time.Minute

// settle waits until no work is left.
func (s *storm) settle() {
	s.Helper()
	var what string
	var n int
	begun := time.Now()
	for _, rest := range []struct{ what, count string }{
		{"action attempts that are pending", "select count(*) from action_attempts where status = 'pending'"},
		{"codes on their way", "select count(*) from access_codes where is_managed and status in ('setting', 'removing')"},
		{"devices that are offline", "select count(*) from devices where not online"},
		{"codes whose time is over", "select count(*) from access_codes where is_managed and ends_at <= now()"},
		{"devices that are due", "select count(*) from devices where due_at <= now() - interval '10 seconds'"},
		{"accounts that are due", "select count(*) from connected_accounts where due_at <= now() - interval '10 seconds'"},
		{"events without fan-out", "select count(*) from events where fanned_out_at is null"},
		{"deliveries that are pending", "select count(*) from deliveries where state = 'pending'"},
		{"access systems that are due", "select count(*) from acs_systems where due_at <= now() - interval '10 seconds'"},
		{"endpoints that are due", "select count(*) from webhooks where due_at <= now() - interval '10 seconds'"},
		{"requests that are waited for", "select count(*) from idempotency_keys where answer_sealed is null and " +
			"held_until > clock_timestamp()"},
	} {
		switch what = rest.what; what {
		case "access systems that are due":
			if s.staff != nil {
				s.staff.settled(s)
			}
		case "deliveries that are pending":
			s.oversleep()
			s.hasten()
		}
		began := time.Now()
		until(s, "there are no "+what, func() bool {
			if err := s.pool.QueryRow(s.Context(), rest.count).Scan(&n); err != nil {
				return false
			}
			if time.Since(begun) > testenv.Timeout(testenv.WaitTimeout)-time.Second {
				s.Logf("%d %s", n, what)
			}
			return n == 0
		})
		took := time.Since(began)
		if s.settled = max(s.settled, took); took > testenv.Timeout(settlesWithin) {
			s.late = append(s.late, fmt.Sprintf("%s were there for %s after the storm", what, took.Round(time.Second)))
		}
	}
}

// audit compares what guests were answered with what is on the locks and what endpoints received.
func (s *storm) audit(faults int, took time.Duration) {
	s.Helper()
	var wrong []string
	complain := func(format string, v ...any) { wrong = append(wrong, fmt.Sprintf(format, v...)) }
	for _, l := range s.late {
		complain("%s", l)
	}
	did := map[string]int{}
	var living, reported, slots int
	failed := map[string]int{}
	for _, g := range s.guests {
		g.learnOutcomes(s.Context(), complain, failed)
		for op, n := range g.did {
			did[op] += n
		}
	}
	s.judgeConversions(complain)
	for _, g := range s.guests {
		for _, device := range g.devices {
			some, failed := s.lock(complain, g, device)
			slots += some
			reported += failed
		}
		for _, c := range g.codes {
			living++
			if c.adopted && !c.converted {
				continue // its result is checked with the other codes of its lock
			}
			a, ok := g.ask(s.Context(), "/access_codes/get", map[string]any{"access_code_id": c.id})
			if !ok || a.status != 200 {
				complain("code %s was created or converted, and get answers %d", c.id, a.status)
			} else if ends, err := time.Parse(time.RFC3339Nano, a.text("access_code", "ends_at")); !ends.Equal(c.ends) || err != nil && !c.ends.IsZero() {
				complain(
					"code %s ends at %q, but its last acknowledged end is %s",
					c.id,
					a.text("access_code", "ends_at"),
					c.ends,
				)
			} else if name := a.text("access_code", "name"); name != c.name || c.pin != "" && a.text("access_code", "code") != c.pin {
				told := a.text("access_code", "code")
				complain(
					"code %s differs from its last change: it is %q instead of %q, right PIN %t, shown %t; converted %t, %s, on "+
						"%s, errors %v",
					c.id,
					name,
					c.name,
					told == c.pin,
					told != "",
					c.converted,
					a.text("access_code", "status"),
					c.device,
					a.body["access_code"].(map[string]any)["errors"],
				)
			}
		}
	}
	events := s.events()
	for _, key := range s.receiver.missing(events) {
		complain("an event has not arrived: %s", key)
	}
	told := s.judgeMessages(complain, events)
	s.told(complain)
	judgeFailures(complain, living, reported, len(attempts(s.guests)), failed)
	ends, bolts, staff, cuts, together := s.judgeEnds(
		complain,
	), s.judgeBolts(
		complain,
	), s.judgeStaff(
		complain,
	), s.judgeCuts(
		complain,
	), s.oneAtATime(
		complain,
	)
	byItself := 0
	for _, i := range s.instances {
		byItself += i.byItself
	}
	c := s.guests[0].client
	c.mu.Lock()
	defer c.mu.Unlock()
	judgeRefusals(complain, c.asked, c.refused)
	s.receiver.mu.Lock()
	defer s.receiver.mu.Unlock()
	s.Logf(
		`
seed %d, %d faults in %s: %v
requests answered         %6d  %v
  asked again             %6d  as no answer came
  refused                 %6d  %v
codes that guests have    %6d  and slots in use on their locks: %d
  reported as failed      %6d  by errors of the code
attempts that failed      %6d  and said so: %v
events written            %6d  and owed to two endpoints
messages received         %6d  %d of them a second time, with the same bytes; %d events are told by the API as they were sent
leases of servers gone    %6d  that others took over, at most %s after the kill or the freeze; %d more ran out with nothing due
settled                   %s  after the storm, for what took longest
starts that failed        %6d  times, as the database was away%s%s%s%s%s
wrong                     %6d`,
		s.seed,
		faults,
		took.Round(time.Second),
		s.counts,
		c.answers,
		did,
		c.again,
		total(c.refused),
		c.refused,
		living,
		slots,
		reported,
		total(failed),
		failed,
		len(
			events,
		),
		s.receiver.messages,
		s.receiver.duplicates,
		told,
		s.takeovers,
		s.worst.Round(100*time.Millisecond),
		s.dropped,
		s.settled.Round(100*time.Millisecond),
		byItself,
		ends,
		bolts,
		staff,
		cuts,
		together,
		len(wrong),
	)
	if len(wrong) > 0 {
		s.Errorf("wrong:\n%s", strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
	if faults >= 20 && s.takeovers == 0 { // with fewer faults, all servers may have been idle
		s.Errorf("no work was taken over, so the test proves nothing about takeover")
	}
	if s.long && s.worst > 30*time.Second {
		s.Errorf("work of a killed server was taken over after %s: %s", s.worst, s.slowest)
	}
	if !hasDone(did, deeds) {
		s.Errorf("that was no load: %v", did)
	}
}

// learnOutcomes asks for the results of all attempts, and counts failures by message.
func (g *guests) learnOutcomes(ctx context.Context, complain func(string, ...any), failed map[string]int) {
	g.outcomes = map[string]string{}
	for _, id := range g.tries {
		a, _ := g.ask(ctx, "/action_attempts/get", map[string]any{"action_attempt_id": id})
		g.outcomes[id] = a.text("action_attempt", "status")
		switch g.outcomes[id] {
		case "success":
		case "error":
			failed[a.text("action_attempt", "action_type")+" "+a.text("action_attempt", "error", "type")]++
		default:
			complain("attempt %s: %d %s", id, a.status, g.outcomes[id])
		}
	}
}

// expected are failures that guests cause: adopting what another guest has deleted or what the vendor does not support,
// or changing what was deleted meanwhile.
var expected = map[string]bool{
	"CONVERT_ACCESS_CODE_TO_MANAGED access_code_not_found": true,
	"CONVERT_ACCESS_CODE_TO_MANAGED cannot_be_managed":     true,
	"UPDATE_ACCESS_CODE access_code_deleted":               true,
}

// few limits unexplained failures to one of so many codes, users, or attempts.
const few = 50

// judgeFailures limits unexplained failures: a server that fails every request would otherwise keep all its promises.
func judgeFailures(complain func(string, ...any), living, reported, attempts int, failed map[string]int) {
	if reported > 1+living/few {
		complain("%d of %d codes are reported as failed", reported, living)
	}
	for what, n := range failed {
		if !expected[what] && n > 1+attempts/few {
			complain("%d of %d attempts have failed with %s", n, attempts, what)
		}
	}
}

func attempts(all []*guests) (ids []string) {
	for _, g := range all {
		ids = append(ids, g.tries...)
	}
	return ids
}

// listed is a code in the API.
type listed struct {
	answer
	managed bool
}

// codes returns all codes of a device.
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

// events returns the events that both webhooks must receive.
func (s *storm) events() (ids []uuid.UUID) {
	s.Helper()
	rows, err := s.pool.Query(
		s.Context(),
		"select event_id from events where created_at >= $1",
		s.subscribed,
	)
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

// told checks the events of each code of the guests: one creation, one deletion if it was deleted, and none of other
// codes.
func (s *storm) told(complain func(string, ...any)) {
	s.Helper()
	created, deleted, set := s.tales(
		"access_code.created",
		"access_code_id",
	), s.tales(
		"access_code.deleted",
		"access_code_id",
	), s.tales(
		"access_code.set_on_device",
		"access_code_id",
	)
	for _, g := range s.guests {
		for id, c := range g.codes {
			if c.adopted {
				continue
			}
			if created[id] != 1 || deleted[id] != 0 {
				complain(
					"existing code %s has %d access_code.created and %d access_code.deleted events",
					id,
					created[id],
					deleted[id],
				)
			}
			if a, _ := g.ask(
				s.Context(),
				"/access_codes/get",
				map[string]any{"access_code_id": id},
			); a.text("access_code", "status") == "set" &&
				set[id] == 0 {
				complain("code %s is set without an event", id)
			}
		}
		for id, c := range g.deleted {
			if !c.adopted && (created[id] != 1 || deleted[id] != 1) {
				complain(
					"deleted code %s has %d access_code.created and %d access_code.deleted events",
					id,
					created[id],
					deleted[id],
				)
			}
		}
	}
	for what, tales := range map[string]map[string]int{"made": created, "deleted": deleted} {
		for id, n := range tales {
			if n > 1 {
				complain("code %s has several events that it was %s: %d", id, what, n)
			}
			if !s.isKnown(id) {
				complain("an event says that code %s was %s, but no guest has or had it", id, what)
			}
		}
	}
}

// isKnown reports whether a guest knows a code.
func (s *storm) isKnown(id string) bool {
	return slices.ContainsFunc(s.guests, func(g *guests) bool { return g.knows(id) })
}

func (g *guests) knows(id string) bool {
	return g.codes[id] != nil || g.deleted[id] != nil || g.ended[id] != nil
}

// tales counts the events of a type by code, or by another field.
func (s *storm) tales(eventType, of string) map[string]int {
	s.Helper()
	rows, err := s.pool.Query(
		s.Context(),
		"select payload->>$2, count(*) from events where event_type = $1 group by 1",
		eventType,
		of,
	)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	all := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			s.Fatal(err)
		}
		all[id] = n
	}
	if rows.Err() != nil {
		s.Fatal(rows.Err())
	}
	return all
}

func total(m map[string]int) (n int) {
	for _, v := range slices.Collect(maps.Values(m)) {
		n += v
	}
	return n
}

func TestJudgeFailures_RejectsServerThatFailsEverything(t *testing.T) {
	t.Parallel()
	for want, c := range map[int]struct {
		living, reported, attempts int
		failed                     map[string]int
	}{
		0: {36, 1, 5000, map[string]int{"UPDATE_ACCESS_CODE access_code_deleted": 4104, "CREATE_ACCESS_CODE unknown": 100}},
		1: {36, 3, 5000, nil},
		2: {36, 36, 5000, map[string]int{"CREATE_ACCESS_CODE unknown": 5000}},
	} {
		n := 0
		judgeFailures(func(string, ...any) { n++ }, c.living, c.reported, c.attempts, c.failed)
		if n != want {
			t.Errorf("%+v: %d complaints, want %d", c, n, want)
		}
	}
}
