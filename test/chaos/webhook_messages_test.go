package chaos_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// meaning returns a checksum of JSON that does not depend on its formatting.
func meaning(raw []byte) [sha256.Size]byte {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return sha256.Sum256(raw)
	}
	return meant(v)
}

func meant(v any) [sha256.Size]byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(b)
}

// judgeMessages compares what each endpoint received with the events of the API, and returns the number of compared
// messages.
func (s *storm) judgeMessages(complain func(string, ...any), events []uuid.UUID) (told int) {
	s.Helper()
	const atOnce = 500
	for ids := range slices.Chunk(events, atOnce) {
		a, ok := s.guests[0].ask(
			s.Context(),
			"/events/list",
			map[string]any{"since": time.Unix(0, 0).UTC(), "event_ids": ids, "limit": atOnce},
		)
		some, _ := a.body["events"].([]any)
		if !ok || a.status != http.StatusOK || len(some) != len(ids) {
			complain(
				"of %d events the API returns %d: %d %s",
				len(ids),
				len(some),
				a.status,
				a.text("error", "message"),
			)
			continue
		}
		for _, e := range some {
			body, _ := e.(map[string]any)
			id := fmt.Sprint(body["event_id"])
			for _, path := range []string{"/fast/", "/slow/"} {
				s.receiver.mu.Lock()
				sent, came := s.receiver.meanings[path+id]
				s.receiver.mu.Unlock()
				if came && sent != meant(e) { // missing ones are reported elsewhere
					complain("event %s, %s, differs from what %s received", id, body["event_type"], path)
				}
			}
			told++
		}
	}
	return told
}

// oversleep finds endpoints without work in progress that are due later than their next delivery: a sweep would not
// find them sooner.
func (s *storm) oversleep() {
	s.Helper()
	until(s, "the database knows when endpoints are due", func() bool {
		rows, err := s.pool.Query(
			s.Context(),
			`select w.webhook_id::text, coalesce(extract(epoch from w.due_at - d.at), -1)::float8
			from webhooks w join workspaces s using (workspace_id) cross join lateral (
				select greatest(w.paused_until, next_attempt_at) as at from deliveries where webhook_id = w.webhook_id and state = 'pending'
				order by next_attempt_at limit 1) d
			where w.disabled_at is null and not s.is_suspended and (w.due_at is null or w.due_at > d.at + interval '5 seconds')
				and not exists (select 1 from leases l where l.key = 'endpoint:' || w.webhook_id::text and l.held_until > now())`,
		)
		if err != nil {
			return false
		}
		defer rows.Close()
		var found []string
		for rows.Next() {
			var webhook string
			var seconds float64
			if rows.Scan(&webhook, &seconds) != nil {
				return false
			}
			found = append(
				found,
				fmt.Sprintf("webhook %s is due %.1f s after its pending deliveries (-1: never)", webhook, seconds),
			)
		}
		if rows.Err() != nil {
			return false
		}
		s.late = append(s.late, found...)
		return true
	})
}
