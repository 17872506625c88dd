package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Parameters of network cuts in a storm.
const (
	theCloud     = "cloud"
	theEndpoints = "endpoints"
)

const (
	leaseLasts = 15 * time.Second
	shortCut   = 2 * time.Second  // an immediate retry succeeds
	longCut    = 20 * time.Second // longer than a lease, so that work is aborted, waits, and starts over
	debounce   = 5 * time.Second  // servers report an offline lock after this time, which is less than a long cut
)

// cut is a cut of the cloud or of the endpoints.
type cut struct {
	of   string
	long bool
}

// planCuts decides what is cut off after which fault: the cloud and the endpoints once per five faults each, and at
// least once. The first cut of each is long, and so is every fourth after it. The seed decides after which faults.
func planCuts(faults int, random *rand.Rand) map[int]cut {
	plan, each := map[int]cut{}, max(1, faults/5)
	for n, after := range random.Perm(faults)[:min(faults, 2*each)] {
		plan[after] = cut{of: []string{theCloud, theEndpoints}[n%2], long: n/2%4 == 0}
	}
	return plan
}

// cutOff is the record of a cut.
type cutOff struct {
	lasted time.Duration
	lost   int64 // connections that it has ended or rejected
}

// cutOff cuts off the cloud or the endpoints of all servers. During a long cut of the cloud, some locks are offline,
// too.
func (s *storm) cutOff(c cut) {
	s.Helper()
	if c.long && s.long && c.of == theCloud {
		away := make([]string, len(s.guests))
		for i, g := range s.guests {
			away[i] = g.devices[len(s.cuts[theCloud])%len(g.devices)]
			s.simulate("disconnect", away[i])
			s.offline[away[i]]++
		}
		defer func() {
			for _, device := range away { // reported during the cut, since the server decides this without the cloud
				until(s, "an event reports lock "+device+" is offline", func() bool {
					var n int
					err := s.pool.QueryRow(s.Context(), "select count(*) from events where event_type = 'device.disconnected' and "+
						"payload->>'device_id' = $1", device).
						Scan(&n)
					return err == nil && n >= s.offline[device]
				})
				s.simulate("connect", device)
			}
		}()
	}
	all, lasts := s.cloud, shortCut
	if c.of == theEndpoints {
		all = gates{s.endpoints}
	}
	if c.long {
		lasts = longCut
	}
	before, begun := all.lost(), time.Now()
	all.during(func() {
		if s.long {
			<-time.After(lasts)
			return
		}
		until(s, "a cut of the "+c.of+" is noticed", func() bool { return all.lost() > before })
	})
	s.cuts[c.of] = append(s.cuts[c.of], cutOff{time.Since(begun), all.lost() - before})
}

// simulate makes something happen at a lock that servers must notice before they answer.
func (s *storm) simulate(what, device string) {
	s.Helper()
	if a, ok := s.guests[0].ask(
		s.Context(),
		"/devices/simulate/"+what,
		map[string]any{"device_id": device},
	); !ok ||
		a.status != http.StatusOK {
		s.Fatalf("%s lock %s: %d %s", what, device, a.status, a.text("error", "message"))
	}
}

// judgeCuts describes the cuts. A storm fails if something was not cut off, not for long, or without an effect.
func (s *storm) judgeCuts(complain func(string, ...any)) (told string) {
	s.Helper()
	for _, of := range []string{theCloud, theEndpoints} {
		var longest, total time.Duration
		var lost int64
		for _, c := range s.cuts[of] {
			longest, total, lost = max(longest, c.lasted), total+c.lasted, lost+c.lost
		}
		told += fmt.Sprintf("\n%-25s %6d  times for %s together, the longest time for %s: %d connections were lost",
			of+" cut off", len(s.cuts[of]), total.Round(time.Second), longest.Round(100*time.Millisecond), lost)
		if s.long && longest <= leaseLasts {
			complain("of %d cuts of the %s none was longer than a lease: that was no storm", len(s.cuts[of]), of)
		}
		if lost == 0 {
			complain("the cut of the %s had no effect", of)
		}
	}
	var again, most int
	if err := s.pool.QueryRow(s.Context(), "select count(*), coalesce(max(attempts), 0) from deliveries where "+
		"attempts > 1").
		Scan(&again, &most); err != nil {
		s.Fatal(err)
	}
	if s.long && again == 0 {
		complain("no delivery had to be tried again, with the endpoints cut off %d times", len(s.cuts[theEndpoints]))
	}
	return told + fmt.Sprintf(
		"\ndeliveries tried again    %6d  of which none more often than %d times",
		again,
		most,
	) + s.judgeOffline(
		complain,
	)
}

// judgeOffline checks that the events report each outage of a lock and its end.
func (s *storm) judgeOffline(complain func(string, ...any)) string {
	s.Helper()
	gone, back := s.tales("device.disconnected", "device_id"), s.tales("device.connected", "device_id")
	for _, device := range s.locks {
		if n := s.offline[device]; gone[device] != n || back[device]-s.connected[device] != n {
			complain(
				"lock %s was offline %d times, with %d events of outages and %d of returns",
				device,
				n,
				gone[device],
				back[device]-s.connected[device],
			)
		}
	}
	if s.long && len(gone) == 0 {
		complain("no lock was said to be offline: that was no storm")
	}
	return fmt.Sprintf("\nlocks offline             %6d  times, and back", total(gone))
}

// hasten makes deliveries due that would be retried in minutes after two failures.
func (s *storm) hasten() {
	s.Helper()
	for _, now := range []string{
		"update deliveries set next_attempt_at = now() where state = 'pending' and next_attempt_at > now() + interval " +
			"'30 seconds'",
		"update webhooks set due_at = now() where due_at is not null",
	} {
		until(s, "the database makes late work due", func() bool {
			_, err := s.pool.Exec(s.Context(), now)
			return err == nil
		})
	}
}

// For every seed, the plan cuts off both, and each for long.
func TestPlanCuts_CutsOffBoth(t *testing.T) {
	t.Parallel()
	for faults, want := range map[int][2]int{
		2:  {1, 1},
		4:  {1, 1},
		12: {2, 1},
		50: {10, 3},
	} { // cuts of each, and long ones
		for seed := range uint64(100) {
			times, long := map[string]int{}, map[string]int{}
			plan := planCuts(faults, rand.New(rand.NewPCG(seed, 3)))
			for after, c := range plan {
				if after < 0 || after >= faults {
					t.Errorf("a cut after fault %d of %d", after, faults)
				}
				times[c.of]++
				if c.long {
					long[c.of]++
				}
			}
			for _, of := range []string{theCloud, theEndpoints} {
				if times[of] != want[0] || long[of] != want[1] {
					t.Errorf(
						"%d faults, seed %d: %d cuts of the %s, %d of them long; want %v",
						faults,
						seed,
						times[of],
						of,
						long[of],
						want,
					)
				}
			}
		}
	}
	after := map[string]bool{}
	for seed := range uint64(20) {
		after[fmt.Sprint(slices.Sorted(maps.Keys(planCuts(4, rand.New(rand.NewPCG(seed, 3))))))] = true
	}
	if len(after) < 2 {
		t.Errorf(
			"with every seed, the cuts come after the faults %s",
			strings.Join(slices.Collect(maps.Keys(after)), ", "),
		)
	}
}
