package chaos_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// moveBolt locks or unlocks a door.
func (g *guests) moveBolt(ctx context.Context, device string) {
	path := []string{"/locks/lock_door", "/locks/unlock_door"}[g.random.IntN(2)]
	if a, ok := g.ask(ctx, path, map[string]any{"device_id": device}); ok && a.status == http.StatusOK {
		g.did["bolt"]++
		g.bolts[a.text("action_attempt", "action_attempt_id")] = true
		g.remembers(a)
	}
}

// command is an attempt to move a bolt, and when a server started it.
type command struct {
	attempt, of string
	begun       time.Time
}

// judgeCommands reports commands to a lock without a started attempt, and second commands for one attempt. The attempts
// of a lock start one after another.
func judgeCommands(complain func(string, ...any), commands []command, sent []request) {
	by, count := map[string][]command{}, map[string]int{}
	for _, c := range commands {
		by[c.of] = append(by[c.of], c)
	}
	for _, all := range by {
		slices.SortFunc(all, func(a, b command) int { return a.begun.Compare(b.begun) })
	}
	for _, r := range sent {
		all := by[r.of]
		n, _ := slices.BinarySearchFunc(
			all,
			r.begin,
			func(c command, at time.Time) int { return cmp.Or(c.begun.Compare(at), -1) },
		)
		if n == 0 {
			complain("%s, which no attempt asked for", r)
			continue
		}
		if attempt := all[n-1].attempt; count[attempt] > 0 {
			complain("%s, a second time for attempt %s", r, attempt)
		} else {
			count[attempt]++
		}
	}
}

// judgeBolts checks that the cloud received each bolt command at most once, whatever happened to its server.
func (s *storm) judgeBolts(complain func(string, ...any)) string {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), `select a.action_attempt_id::text, 'lock:' || d.vendor_ref, a.started_at
		from action_attempts a join devices d using (device_id) where a.action_type in ('LOCK_DOOR', 'UNLOCK_DOOR')`)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	var begun []command
	asked := 0
	for rows.Next() {
		var c command
		var at *time.Time
		if err := rows.Scan(&c.attempt, &c.of, &at); err != nil {
			s.Fatal(err)
		}
		if asked++; !slices.ContainsFunc(s.guests, func(g *guests) bool { return g.bolts[c.attempt] }) {
			complain("the cloud did not receive attempt %s to move a bolt", c.attempt)
		}
		if at != nil {
			c.begun = *at
			begun = append(begun, c)
		}
	}
	if rows.Err() != nil {
		s.Fatal(rows.Err())
	}
	var sent []request
	s.witness.mu.Lock()
	for _, r := range s.witness.seen {
		if strings.HasPrefix(r.of, "lock:") && r.what == "POST lock actions" {
			sent = append(sent, r)
		}
	}
	s.witness.mu.Unlock()
	judgeCommands(complain, begun, sent)
	if len(sent) == 0 {
		complain("no bolt was moved: that was no load")
	}
	return fmt.Sprintf("\nbolts to be moved         %6d  of which the cloud received %d", asked, len(sent))
}

// toldTheCloud is the outcome of a command that the cloud received from any server.
const toldTheCloud = "the cloud was told"

// countCommands counts the bolt commands that arrive at the cloud of the surviving server.
func (k *keyed) countCommands(c *app.Config) {
	around := c.Wrap
	c.Wrap = func(next http.Handler) http.Handler {
		return around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			part := strings.Split(strings.TrimPrefix(r.URL.Path, "/sandbox/cloud/locks/"), "/")
			if len(part) == 2 && r.Method == http.MethodPost && part[1] == "actions" {
				k.mu.Lock()
				k.told[part[0]]++
				k.mu.Unlock()
			}
			next.ServeHTTP(w, r)
		}))
	}
}

// commands returns how many bolt commands the cloud received for a lock.
func (k *keyed) commands(t *testing.T, lock string) int {
	t.Helper()
	var ref string
	if err := k.pool.QueryRow(t.Context(), "select vendor_ref from devices where device_id = $1", lock).
		Scan(&ref); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.told[ref]
}

func TestJudgeCommands_Duplicates(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Unix(1_000_000+int64(second), 0) }
	commands := []command{{"second", "lock", at(20)}, {"first", "lock", at(10)}, {"other", "another lock", at(5)}}
	for name, c := range map[string]struct {
		sent  []int // commands to the lock
		wrong int
	}{
		"each once":                       {[]int{11, 21}, 0},
		"concurrent commands":             {[]int{10}, 0},
		"one twice":                       {[]int{11, 12, 21}, 1},
		"the last one again":              {[]int{21, 40}, 1},
		"one without an attempt":          {[]int{9}, 1},
		"none, as its server was killed":  {nil, 0},
		"one three times, the other once": {[]int{11, 12, 13, 22}, 2},
	} {
		wrong := 0
		var sent []request
		for _, second := range c.sent {
			sent = append(sent, request{"a", "lock", "POST lock actions", at(second), at(second)})
		}
		if judgeCommands(func(string, ...any) { wrong++ }, commands, sent); wrong != c.wrong {
			t.Errorf("%s: %d complaints, want %d", name, wrong, c.wrong)
		}
	}
}
